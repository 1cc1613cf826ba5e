#ifndef LTX_ENGINE_MEDIA_IMAGE_READER_H_
#define LTX_ENGINE_MEDIA_IMAGE_READER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/media/media_errors.h"

namespace ltx::media {

struct DecodedImage {
  int width = 0;
  int height = 0;
  /// u8 [H, W, 3], sRGB.
  std::vector<uint8_t> rgb;
  /// "png", "jpeg", ...
  std::string format;
  /// What was done otherwise than asked, e.g. a profile that could not be used.
  std::vector<std::string> warnings;
};

/// Decodes a picture file as the reference does (utils/media_io): orientation 3, 6 and 8 applied
/// and mirrored ones ignored, alpha dropped without compositing, an embedded ICC profile converted
/// to sRGB (perceptual), grey replicated, 16 bits cut to their high byte. CMYK profiles are not
/// applied: the warning says so.
///
/// The size is checked against `limits` before anything is decoded. INVALID_ARGUMENT naming `name`:
/// MEDIA_FORMAT for what is no picture or is broken, MEDIA_LIMIT above a limit.
absl::StatusOr<DecodedImage> DecodeImage(absl::Span<const uint8_t> file, absl::string_view name,
                                         const MediaLimits& limits = {});

}  // namespace ltx::media

#endif  // LTX_ENGINE_MEDIA_IMAGE_READER_H_
