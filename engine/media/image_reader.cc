#include "engine/media/image_reader.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/media/av_handles.h"
#include "engine/media/icc_profile.h"
#include "engine/media/image_header.h"
#include "engine/media/jpeg_color.h"
#include "engine/media/media_sniffer.h"
#include "engine/media/rgb_converter.h"
#include "kernels/status_macros.h"

namespace ltx::media {
namespace {

/// Interpolated chroma: as close to libjpeg as swscale comes.
constexpr int kPictureScaling = SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT;

AVCodecID CodecOf(MediaFormat format) {
  switch (format) {
    case MediaFormat::kPng:
      return AV_CODEC_ID_PNG;
    case MediaFormat::kJpeg:
      return AV_CODEC_ID_MJPEG;
    case MediaFormat::kWebp:
      return AV_CODEC_ID_WEBP;
    default:
      return AV_CODEC_ID_BMP;
  }
}

/// The one frame of the file. No demuxer is asked: the bytes go to the decoder of their magic.
absl::StatusOr<FramePtr> DecodeFrame(absl::Span<const uint8_t> file, MediaFormat format,
                                     absl::string_view name, const MediaLimits& limits) {
  const AVCodec* const codec = avcodec_find_decoder(CodecOf(format));
  if (codec == nullptr) {
    return FormatError(name, absl::StrCat("this build cannot decode ", MediaFormatName(format)));
  }
  const CodecContextPtr decoder(avcodec_alloc_context3(codec));
  const PacketPtr packet(av_packet_alloc());
  FramePtr frame(av_frame_alloc());
  if (decoder == nullptr || packet == nullptr || frame == nullptr) {
    return AvStatus(AVERROR(ENOMEM), name);
  }
  decoder->max_pixels = DecoderMaxPixels(limits.max_pixels);
  decoder->thread_count = 1;
  decoder->err_recognition = AV_EF_CRCCHECK | AV_EF_BITSTREAM | AV_EF_BUFFER | AV_EF_EXPLODE;
  int error = avcodec_open2(decoder.get(), codec, nullptr);
  if (error >= 0) error = av_new_packet(packet.get(), static_cast<int>(file.size()));
  if (error < 0) return AvStatus(error, name);
  std::memcpy(packet->data, file.data(), file.size());
  error = avcodec_send_packet(decoder.get(), packet.get());
  if (error >= 0) error = avcodec_send_packet(decoder.get(), nullptr);
  if (error >= 0) error = avcodec_receive_frame(decoder.get(), frame.get());
  if (error == AVERROR(ENOMEM)) return AvStatus(error, name);
  if (error < 0 || (frame->flags & AV_FRAME_FLAG_CORRUPT) != 0 || frame->decode_error_flags != 0) {
    return FormatError(name, absl::StrCat("the ", MediaFormatName(format), " file is damaged"));
  }
  return frame;
}

/// How a sample of an exactly convertible format lies in memory.
struct PackedLayout {
  int pixel_bytes;
  /// Byte offsets of red, green, blue; all equal for grey.
  int red, green, blue;
};

std::optional<PackedLayout> PackedLayoutOf(int format) {
  switch (format) {
    case AV_PIX_FMT_GRAY8:
      return PackedLayout{1, 0, 0, 0};
    case AV_PIX_FMT_YA8:
      return PackedLayout{2, 0, 0, 0};
    // Big-endian: the high byte comes first, and it alone is kept.
    case AV_PIX_FMT_GRAY16BE:
      return PackedLayout{2, 0, 0, 0};
    case AV_PIX_FMT_YA16BE:
      return PackedLayout{4, 0, 0, 0};
    case AV_PIX_FMT_RGB24:
      return PackedLayout{3, 0, 1, 2};
    case AV_PIX_FMT_BGR24:
      return PackedLayout{3, 2, 1, 0};
    case AV_PIX_FMT_RGBA:
      return PackedLayout{4, 0, 1, 2};
    case AV_PIX_FMT_ARGB:
      return PackedLayout{4, 1, 2, 3};
    case AV_PIX_FMT_BGRA:
    case AV_PIX_FMT_BGR0:
      return PackedLayout{4, 2, 1, 0};
    case AV_PIX_FMT_RGB48BE:
      return PackedLayout{6, 0, 2, 4};
    case AV_PIX_FMT_RGBA64BE:
      return PackedLayout{8, 0, 2, 4};
    default:
      return std::nullopt;
  }
}

bool IsGrey(int format) {
  return format == AV_PIX_FMT_GRAY8 || format == AV_PIX_FMT_YA8 || format == AV_PIX_FMT_GRAY16BE ||
         format == AV_PIX_FMT_YA16BE || format == AV_PIX_FMT_MONOBLACK;
}

/// CMYK and YCCK, which the decoder has multiplied out already.
bool IsFourColour(int format) {
  return format == AV_PIX_FMT_GBRAP || format == AV_PIX_FMT_YUVA444P;
}

const uint8_t* Row(const AVFrame& frame, int plane, int y) {
  return frame.data[plane] + static_cast<ptrdiff_t>(y) * frame.linesize[plane];
}

/// RGB of one pixel of the formats without a packed layout that convert exactly.
void PalettePixel(const AVFrame& frame, int x, int y, uint8_t* rgb) {
  uint32_t colour;  // Native 0xAARRGGBB.
  std::memcpy(&colour, frame.data[1] + size_t{4} * Row(frame, 0, y)[x], sizeof(colour));
  rgb[0] = static_cast<uint8_t>(colour >> 16);
  rgb[1] = static_cast<uint8_t>(colour >> 8);
  rgb[2] = static_cast<uint8_t>(colour);
}

/// The forms of JPEG that libjpeg converts in a known way.
std::optional<ChromaSteps> JpegSteps(int format) {
  switch (format) {
    case AV_PIX_FMT_YUVJ420P:
      return ChromaSteps{2, 2};
    case AV_PIX_FMT_YUVJ422P:
      return ChromaSteps{2, 1};
    case AV_PIX_FMT_YUVJ444P:
      return ChromaSteps{1, 1};
    default:
      return std::nullopt;
  }
}

absl::Status ToRgb(const AVFrame& frame, absl::Span<uint8_t> rgb) {
  if (const auto steps = JpegSteps(frame.format); steps.has_value()) {
    const auto plane = [&](int i) { return SamplePlane{frame.data[i], frame.linesize[i]}; };
    JpegPlanesToRgb(plane(0), plane(1), plane(2), frame.width, frame.height, *steps, rgb);
    return absl::OkStatus();
  }
  const std::optional<PackedLayout> packed = PackedLayoutOf(frame.format);
  const bool palette = frame.format == AV_PIX_FMT_PAL8;
  const bool bilevel = frame.format == AV_PIX_FMT_MONOBLACK;
  const bool planar = frame.format == AV_PIX_FMT_GBRP || frame.format == AV_PIX_FMT_GBRAP;
  if (!packed.has_value() && !palette && !bilevel && !planar) {
    return RgbConverter(kPictureScaling).Convert(frame, rgb);
  }
  uint8_t* out = rgb.data();
  for (int y = 0; y < frame.height; ++y) {
    for (int x = 0; x < frame.width; ++x, out += 3) {
      if (packed.has_value()) {
        const uint8_t* const pixel = Row(frame, 0, y) + ptrdiff_t{packed->pixel_bytes} * x;
        out[0] = pixel[packed->red];
        out[1] = pixel[packed->green];
        out[2] = pixel[packed->blue];
      } else if (palette) {
        PalettePixel(frame, x, y, out);
      } else if (bilevel) {
        const bool white = (Row(frame, 0, y)[x / 8] >> (7 - x % 8) & 1) != 0;
        out[0] = out[1] = out[2] = white ? 255 : 0;
      } else {
        out[0] = Row(frame, 2, y)[x];
        out[1] = Row(frame, 0, y)[x];
        out[2] = Row(frame, 1, y)[x];
      }
    }
  }
  return absl::OkStatus();
}

/// Converts by the profile; on failure the picture stays as it is and says so.
void ApplyProfile(const AVFrame& frame, absl::Span<const uint8_t> profile, DecodedImage* image) {
  if (IsFourColour(frame.format)) {
    image->warnings.push_back("the ICC profile of a CMYK picture is not applied");
    return;
  }
  std::vector<uint8_t> grey;
  if (IsGrey(frame.format)) {
    for (size_t i = 0; i < image->rgb.size(); i += 3) grey.push_back(image->rgb[i]);
  }
  absl::StatusOr<std::vector<uint8_t>> converted =
      ConvertToSrgb(grey.empty() ? image->rgb : grey, grey.empty() ? 3 : 1, profile);
  if (converted.ok()) {
    image->rgb = *std::move(converted);
  } else {
    image->warnings.push_back(absl::StrCat(converted.status().message(), ": not applied"));
  }
}

/// EXIF 3: half a turn, 6: a quarter clockwise, 8: a quarter counter-clockwise; mirrored ones stay.
void Rotate(int orientation, DecodedImage* image) {
  if (orientation != 3 && orientation != 6 && orientation != 8) return;
  const int width = image->width;
  const int height = image->height;
  const bool quarter = orientation != 3;
  const int out_width = quarter ? height : width;
  std::vector<uint8_t> turned(image->rgb.size());
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      int to_x = width - 1 - x;
      int to_y = height - 1 - y;
      if (orientation == 6) {
        to_x = height - 1 - y;
        to_y = x;
      } else if (orientation == 8) {
        to_x = y;
        to_y = width - 1 - x;
      }
      std::copy_n(&image->rgb[(static_cast<size_t>(y) * width + x) * 3], 3,
                  &turned[(static_cast<size_t>(to_y) * out_width + to_x) * 3]);
    }
  }
  image->rgb = std::move(turned);
  if (quarter) std::swap(image->width, image->height);
}

}  // namespace

absl::StatusOr<DecodedImage> DecodeImage(absl::Span<const uint8_t> file, absl::string_view name,
                                         const MediaLimits& limits) {
  QuietLibav();
  const std::optional<MediaFormat> format = SniffMedia(file);
  if (!format.has_value() || !IsImage(*format)) {
    return FormatError(name, "not a picture: png, jpeg, webp and bmp are read");
  }
  LTX_ASSIGN_OR_RETURN(const ImageHeader header, ReadImageHeader(file, *format, name));
  if (header.width > limits.max_pixels / header.height) {
    return LimitError(name, "pixels",
                      static_cast<double>(header.width) * static_cast<double>(header.height),
                      static_cast<double>(limits.max_pixels));
  }
  const absl::Span<const uint8_t> bytes =
      header.stripped.empty() ? file : absl::MakeConstSpan(header.stripped);
  LTX_ASSIGN_OR_RETURN(const FramePtr frame, DecodeFrame(bytes, *format, name, limits));

  DecodedImage image;
  image.format = std::string(MediaFormatName(*format));
  image.width = frame->width;
  image.height = frame->height;
  image.rgb.resize(static_cast<size_t>(frame->width) * frame->height * 3);
  const absl::Status converted = ToRgb(*frame, absl::MakeSpan(image.rgb));
  if (!converted.ok()) return FormatError(name, converted.message());
  if (!header.icc_profile.empty()) ApplyProfile(*frame, header.icc_profile, &image);
  Rotate(header.orientation, &image);
  return image;
}

}  // namespace ltx::media
