#ifndef LTX_ENGINE_MEDIA_MEDIA_SNIFFER_H_
#define LTX_ENGINE_MEDIA_MEDIA_SNIFFER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace ltx::media {

/// The kinds of file that are read.
enum class MediaFormat : uint8_t {
  kPng,
  kJpeg,
  kWebp,
  kBmp,
  kMp4,       ///< mp4, mov, m4a: a clip or a sound.
  kMatroska,  ///< mkv, webm: a clip or a sound.
  kWav,
  kFlac,
  kOgg,
  kMp3,
};

/// "png", "mp4", ...
absl::string_view MediaFormatName(MediaFormat format);
/// For messages: all names.
std::string MediaFormatNames();

constexpr bool IsImage(MediaFormat format) { return format <= MediaFormat::kBmp; }
/// Holds streams, which say themselves whether they are pictures or sound.
constexpr bool IsContainer(MediaFormat format) {
  return format == MediaFormat::kMp4 || format == MediaFormat::kMatroska;
}

/// The format by the first bytes alone; names and declared types are never asked.
std::optional<MediaFormat> SniffMedia(absl::Span<const uint8_t> bytes);

}  // namespace ltx::media

#endif  // LTX_ENGINE_MEDIA_MEDIA_SNIFFER_H_
