#ifndef LTX_ENGINE_MEDIA_MEDIA_ERRORS_H_
#define LTX_ENGINE_MEDIA_MEDIA_ERRORS_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace ltx::media {

/// Reasons of refused input, as engine/pipeline/error_details.h has them.
/// Not a file of the kinds that are read, or a damaged one.
inline constexpr absl::string_view kReasonMediaFormat = "MEDIA_FORMAT";
/// Larger or longer than the limits allow.
inline constexpr absl::string_view kReasonMediaLimit = "MEDIA_LIMIT";

/// Bounds that input must keep; they hold before memory is taken.
struct MediaLimits {
  /// Width times height of a picture or of one frame.
  int64_t max_pixels = int64_t{4096} * 4096;
  /// Of one clip: the longest that the models make.
  int64_t max_frames = 1001;
  /// Bytes of all frames of one clip as RGB: what decoding it costs, in time or in memory.
  int64_t max_decoded_bytes = int64_t{8} << 30;
  /// Of a sound, and of a clip's sound.
  double max_seconds = 120;
  /// Asked before every frame of a clip or a sound: a status other than OK ends the reading with
  /// it. May be empty.
  std::function<absl::Status()> keep_going;
};

/// INVALID_ARGUMENT, reason MEDIA_FORMAT: "NAME: what".
absl::Status FormatError(absl::string_view name, absl::string_view what);

/// INVALID_ARGUMENT, reason MEDIA_LIMIT, naming the quantity, the value and the limit. `quantity`
/// is "pixels", "frames", "decoded bytes", "seconds" or the like.
absl::Status LimitError(absl::string_view name, absl::string_view quantity, double value,
                        double limit);

}  // namespace ltx::media

#endif  // LTX_ENGINE_MEDIA_MEDIA_ERRORS_H_
