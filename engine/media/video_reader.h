#ifndef LTX_ENGINE_MEDIA_VIDEO_READER_H_
#define LTX_ENGINE_MEDIA_VIDEO_READER_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/media/media_errors.h"

namespace ltx::media {

/// What a clip is.
struct VideoFacts {
  int width = 0;
  int height = 0;
  /// Frames handed out; of a whole clip, its length.
  int64_t frames = 0;
  /// Average rate; 0/1 if the file does not tell.
  int64_t frame_rate_numerator = 0;
  int64_t frame_rate_denominator = 1;
  /// Frames over rate; 0 without a rate.
  double seconds = 0;
  std::string codec;  ///< FFmpeg's name, e.g. "h264".
  bool has_audio = false;
};

/// Which frames of a clip: by index in order of display, or by time.
struct VideoWindow {
  int64_t first_frame = 0;
  int64_t max_frames = std::numeric_limits<int64_t>::max();
  /// Set: frames with start <= t < start + duration instead, t from the time stamps. Frames without
  /// one are counted off by the frame rate.
  std::optional<double> start_seconds;
  double duration_seconds = std::numeric_limits<double>::infinity();
};

/// Takes one frame, u8 [H, W, 3]; a status other than OK ends the reading with it.
using VideoFrameSink = std::function<absl::Status(absl::Span<const uint8_t> rgb)>;

/// Decodes the first video stream of an mp4 or matroska file in memory, as the reference does:
/// matrix and range of the frames are honoured (untagged: BT.601 limited), rotation, pixel aspect,
/// interlacing and transfer curves are not, and the frame rate is left alone. Without a sink frames
/// are decoded and counted, not converted.
///
/// INVALID_ARGUMENT naming `name`: MEDIA_FORMAT for what is no such clip, is damaged or yields no
/// frame, MEDIA_LIMIT above a limit, which is found before the frame beyond it is kept.
absl::StatusOr<VideoFacts> ReadVideo(absl::Span<const uint8_t> file, absl::string_view name,
                                     const MediaLimits& limits, const VideoWindow& window,
                                     const VideoFrameSink& sink);

}  // namespace ltx::media

#endif  // LTX_ENGINE_MEDIA_VIDEO_READER_H_
