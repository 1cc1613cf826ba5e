#include "engine/media/media_sniffer.h"

#include <array>

#include "absl/strings/str_join.h"

namespace ltx::media {
namespace {

constexpr std::array<absl::string_view, 10> kNames = {"png",      "jpeg", "webp", "bmp", "mp4",
                                                      "matroska", "wav",  "flac", "ogg", "mp3"};

absl::string_view Text(absl::Span<const uint8_t> bytes, size_t offset, size_t size) {
  if (bytes.size() < offset + size) return {};
  return {reinterpret_cast<const char*>(bytes.data()) + offset, size};
}

/// A frame header of MPEG audio: eleven sync bits, a layer, and no reserved bit rate or sample
/// rate.
bool IsMp3Frame(absl::Span<const uint8_t> bytes) {
  if (bytes.size() < 4 || bytes[0] != 0xFF || (bytes[1] & 0xE0) != 0xE0) return false;
  const bool version = (bytes[1] & 0x18) != 0x08;
  const bool layer_3 = (bytes[1] & 0x06) == 0x02;
  return version && layer_3 && (bytes[2] & 0xF0) != 0xF0 && (bytes[2] & 0x0C) != 0x0C;
}

}  // namespace

absl::string_view MediaFormatName(MediaFormat format) {
  return kNames[static_cast<size_t>(format)];
}

std::string MediaFormatNames() { return absl::StrJoin(kNames, ", "); }

std::optional<MediaFormat> SniffMedia(absl::Span<const uint8_t> bytes) {
  if (Text(bytes, 0, 8) == "\x89PNG\r\n\x1A\n") return MediaFormat::kPng;
  if (Text(bytes, 0, 3) == "\xFF\xD8\xFF") return MediaFormat::kJpeg;
  if (Text(bytes, 0, 4) == "RIFF") {
    if (Text(bytes, 8, 4) == "WEBP") return MediaFormat::kWebp;
    if (Text(bytes, 8, 4) == "WAVE") return MediaFormat::kWav;
    return std::nullopt;
  }
  // Two letters are weak evidence; the reserved words after the file's size are zero.
  if (Text(bytes, 0, 2) == "BM" && Text(bytes, 6, 4) == absl::string_view("\0\0\0\0", 4)) {
    return MediaFormat::kBmp;
  }
  if (Text(bytes, 4, 4) == "ftyp") return MediaFormat::kMp4;
  if (Text(bytes, 0, 4) == "\x1A\x45\xDF\xA3") return MediaFormat::kMatroska;
  if (Text(bytes, 0, 4) == "fLaC") return MediaFormat::kFlac;
  if (Text(bytes, 0, 4) == "OggS") return MediaFormat::kOgg;
  if (Text(bytes, 0, 3) == "ID3" || IsMp3Frame(bytes)) return MediaFormat::kMp3;
  return std::nullopt;
}

}  // namespace ltx::media
