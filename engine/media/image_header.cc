#include "engine/media/image_header.h"

#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "engine/media/media_errors.h"
#include "kernels/status_macros.h"

namespace ltx::media {
namespace {

using Bytes = absl::Span<const uint8_t>;

/// Real profiles have some KiB, printer profiles up to 2 MiB.
constexpr size_t kMaxIccBytes = size_t{4} << 20;

uint32_t Big32(Bytes bytes, size_t at) {
  return uint32_t{bytes[at]} << 24 | uint32_t{bytes[at + 1]} << 16 | uint32_t{bytes[at + 2]} << 8 |
         bytes[at + 3];
}
uint32_t Big16(Bytes bytes, size_t at) { return uint32_t{bytes[at]} << 8 | bytes[at + 1]; }
uint32_t Little16(Bytes bytes, size_t at) { return uint32_t{bytes[at + 1]} << 8 | bytes[at]; }
uint32_t Little24(Bytes bytes, size_t at) {
  return uint32_t{bytes[at + 2]} << 16 | Little16(bytes, at);
}
uint32_t Little32(Bytes bytes, size_t at) {
  return Little16(bytes, at + 2) << 16 | Little16(bytes, at);
}

absl::string_view Text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// `bytes` after `prefix`, if it starts with it.
std::optional<Bytes> After(Bytes bytes, absl::string_view prefix) {
  if (Text(bytes).substr(0, prefix.size()) != prefix) return std::nullopt;
  return bytes.subspan(prefix.size());
}

/// Tag 0x0112 of the first directory of a TIFF block; 0 if it is not there.
int ExifOrientation(Bytes tiff) {
  if (tiff.size() < 8) return 0;
  const absl::string_view order = Text(tiff).substr(0, 2);
  if (order != "II" && order != "MM") return 0;
  const bool little = order == "II";
  const auto word = [&](size_t at) { return little ? Little16(tiff, at) : Big16(tiff, at); };
  const size_t directory = little ? Little32(tiff, 4) : Big32(tiff, 4);
  if (directory > tiff.size() - 2) return 0;
  const size_t entries = word(directory);
  for (size_t i = 0; i < entries; ++i) {
    const size_t at = directory + 2 + 12 * i;
    if (at + 12 > tiff.size()) return 0;
    if (word(at) == 0x0112) return static_cast<int>(word(at + 8));
  }
  return 0;
}

/// tiff:Orientation as an attribute or an element of an XMP packet; 0 if it is not there.
int XmpOrientation(absl::string_view packet) {
  constexpr absl::string_view kName = "tiff:Orientation";
  const size_t at = packet.find(kName);
  if (at == absl::string_view::npos) return 0;
  absl::string_view rest = packet.substr(at + kName.size());
  if (rest.substr(0, 2) == "=\"") {
    rest.remove_prefix(2);
  } else if (rest.substr(0, 1) == ">") {
    rest.remove_prefix(1);
  } else {
    return 0;
  }
  return !rest.empty() && rest[0] >= '0' && rest[0] <= '9' ? rest[0] - '0' : 0;
}

/// Collects orientation from the two places where it may stand.
struct Orientation {
  int exif = 0;
  int xmp = 0;
  int value() const {
    const int found = exif != 0 ? exif : xmp;
    return found >= 1 && found <= 8 ? found : 1;
  }
};

/// Inflates at most kMaxIccBytes; empty if there is more, or what is there is broken.
std::vector<uint8_t> InflateProfile(Bytes compressed) {
  std::vector<uint8_t> profile(kMaxIccBytes);
  uLongf size = profile.size();
  if (uncompress(profile.data(), &size, compressed.data(), compressed.size()) != Z_OK) return {};
  profile.resize(size);
  return profile;
}

absl::StatusOr<ImageHeader> ReadPng(Bytes file, absl::string_view name) {
  constexpr size_t kSignature = 8;
  ImageHeader header;
  header.stripped.assign(file.begin(), file.begin() + kSignature);
  Orientation orientation;
  bool ended = false;
  for (size_t at = kSignature; !ended;) {
    // Length, type, data, checksum.
    if (file.size() - at < 12) return FormatError(name, "the PNG file is truncated");
    const size_t length = Big32(file, at);
    if (length > file.size() - at - 12) return FormatError(name, "the PNG file is truncated");
    const absl::string_view type = Text(file.subspan(at + 4, 4));
    const Bytes data = file.subspan(at + 8, length);
    const Bytes chunk = file.subspan(at, length + 12);
    if (at == kSignature) {
      if (type != "IHDR" || length != 13) return FormatError(name, "the PNG file has no header");
      header.width = Big32(data, 0);
      header.height = Big32(data, 4);
    }
    // A capital letter first: without it there is no picture.
    const bool critical = type[0] >= 'A' && type[0] <= 'Z';
    if (critical || type == "tRNS") {
      header.stripped.insert(header.stripped.end(), chunk.begin(), chunk.end());
    } else if (type == "eXIf") {
      orientation.exif = ExifOrientation(data);
    } else if (type == "iTXt") {
      orientation.xmp = XmpOrientation(Text(data));
    } else if (type == "iCCP") {
      // Name, zero, method zero, zlib stream.
      const size_t zero = Text(data).find('\0');
      if (zero != absl::string_view::npos && zero + 2 <= data.size()) {
        header.icc_profile = InflateProfile(data.subspan(zero + 2));
      }
    }
    ended = type == "IEND";
    at += length + 12;
  }
  header.orientation = orientation.value();
  return header;
}

/// Parts of a profile by their number; joined if none is missing.
std::vector<uint8_t> JoinProfile(const std::map<int, Bytes>& parts, int count) {
  std::vector<uint8_t> profile;
  if (static_cast<int>(parts.size()) != count) return profile;
  for (const auto& [number, part] : parts) profile.insert(profile.end(), part.begin(), part.end());
  if (profile.size() > kMaxIccBytes) profile.clear();
  return profile;
}

absl::StatusOr<ImageHeader> ReadJpeg(Bytes file, absl::string_view name) {
  ImageHeader header;
  Orientation orientation;
  std::map<int, Bytes> profile;
  int profile_parts = 0;
  size_t at = 2;
  while (true) {
    while (at < file.size() && file[at] == 0xFF && at + 1 < file.size() && file[at + 1] == 0xFF) {
      ++at;  // Fill bytes.
    }
    if (file.size() < at + 4 || file[at] != 0xFF) {
      return FormatError(name, "the JPEG file is broken or truncated before its picture");
    }
    const uint8_t marker = file[at + 1];
    if (marker == 0x01 || (marker >= 0xD0 && marker <= 0xD7)) {
      at += 2;
      continue;
    }
    const size_t length = Big16(file, at + 2);
    if (length < 2 || length > file.size() - at - 2) {
      return FormatError(name, "the JPEG file is broken or truncated before its picture");
    }
    const Bytes data = file.subspan(at + 4, length - 2);
    const bool frame_header =
        marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
    if (frame_header && data.size() >= 5) {
      header.height = Big16(data, 1);
      header.width = Big16(data, 3);
    } else if (marker == 0xE1) {
      if (const auto exif = After(data, absl::string_view("Exif\0\0", 6)); exif.has_value()) {
        orientation.exif = ExifOrientation(*exif);
      }
      if (const auto xmp = After(data, absl::string_view("http://ns.adobe.com/xap/1.0/\0", 29));
          xmp.has_value()) {
        orientation.xmp = XmpOrientation(Text(*xmp));
      }
    } else if (marker == 0xE2) {
      const auto icc = After(data, absl::string_view("ICC_PROFILE\0", 12));
      if (icc.has_value() && icc->size() > 2) {
        profile_parts = (*icc)[1];
        profile[(*icc)[0]] = icc->subspan(2);
      }
    }
    at += 2 + length;
    if (marker == 0xDA) break;
  }
  // The decoder would show what it has of a cut file and call it a picture.
  const uint8_t end[] = {0xFF, 0xD9};
  if (std::search(file.begin() + at, file.end(), end, end + 2) == file.end()) {
    return FormatError(name, "the JPEG file is truncated");
  }
  header.orientation = orientation.value();
  header.icc_profile = JoinProfile(profile, profile_parts);
  return header;
}

absl::StatusOr<ImageHeader> ReadWebp(Bytes file, absl::string_view name) {
  ImageHeader header;
  Orientation orientation;
  if (uint64_t{Little32(file, 4)} + 8 > file.size()) {
    return FormatError(name, "the WebP file is truncated");
  }
  for (size_t at = 12; at + 8 <= file.size();) {
    const absl::string_view type = Text(file.subspan(at, 4));
    const size_t length = Little32(file, at + 4);
    if (length > file.size() - at - 8) return FormatError(name, "the WebP file is truncated");
    const Bytes data = file.subspan(at + 8, length);
    const bool first = header.width == 0;
    if (type == "VP8X" && length >= 10) {
      constexpr uint8_t kAnimation = 0x02;
      if ((data[0] & kAnimation) != 0) {
        return FormatError(name, "animated WebP is not read; send a clip as mp4 or webm");
      }
      header.width = int64_t{1} + Little24(data, 4);
      header.height = int64_t{1} + Little24(data, 7);
    } else if (type == "VP8 " && length >= 10 && first) {
      header.width = Little16(data, 6) & 0x3FFF;
      header.height = Little16(data, 8) & 0x3FFF;
    } else if (type == "VP8L" && length >= 5 && first) {
      const uint32_t bits = Little32(data, 1);
      header.width = int64_t{1} + (bits & 0x3FFF);
      header.height = int64_t{1} + (bits >> 14 & 0x3FFF);
    } else if (type == "EXIF") {
      // Some writers keep JPEG's prefix.
      orientation.exif =
          ExifOrientation(After(data, absl::string_view("Exif\0\0", 6)).value_or(data));
    } else if (type == "XMP ") {
      orientation.xmp = XmpOrientation(Text(data));
    } else if (type == "ICCP" && length <= kMaxIccBytes) {
      header.icc_profile.assign(data.begin(), data.end());
    }
    at += 8 + length + length % 2;
  }
  header.orientation = orientation.value();
  return header;
}

absl::StatusOr<ImageHeader> ReadBmp(Bytes file, absl::string_view name) {
  constexpr size_t kFileHeader = 14;
  constexpr uint32_t kCoreHeader = 12;
  if (file.size() < kFileHeader + 12) return FormatError(name, "the BMP file is truncated");
  ImageHeader header;
  if (Little32(file, kFileHeader) == kCoreHeader) {
    header.width = Little16(file, kFileHeader + 4);
    header.height = Little16(file, kFileHeader + 6);
  } else {
    header.width = static_cast<int32_t>(Little32(file, kFileHeader + 4));
    // Negative: rows from top to bottom.
    header.height = std::abs(int64_t{static_cast<int32_t>(Little32(file, kFileHeader + 8))});
  }
  return header;
}

}  // namespace

absl::StatusOr<ImageHeader> ReadImageHeader(Bytes file, MediaFormat format,
                                            absl::string_view name) {
  absl::StatusOr<ImageHeader> header = absl::InternalError("not a picture");
  // The shortest files that the sniffer knows are longer than the offsets read unchecked here.
  switch (format) {
    case MediaFormat::kPng:
      header = ReadPng(file, name);
      break;
    case MediaFormat::kJpeg:
      header = ReadJpeg(file, name);
      break;
    case MediaFormat::kWebp:
      header = ReadWebp(file, name);
      break;
    case MediaFormat::kBmp:
      header = ReadBmp(file, name);
      break;
    default:
      return FormatError(name, absl::StrCat(MediaFormatName(format), " is not a picture"));
  }
  LTX_RETURN_IF_ERROR(header.status());
  if (header->width <= 0 || header->height <= 0) {
    return FormatError(name, absl::StrCat("the ", MediaFormatName(format), " file has no pixels"));
  }
  return header;
}

}  // namespace ltx::media
