#ifndef LTX_ENGINE_MEDIA_MP4_WRITER_H_
#define LTX_ENGINE_MEDIA_MP4_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/pipeline/frame_rate.h"

namespace ltx::media {

struct Mp4Options {
  int width = 0;
  int height = 0;
  pipeline::FrameRate frame_rate;
  /// Samples per second; 0: no sound.
  int audio_sample_rate = 0;
  /// H.264 constant rate factor and preset: the reference's output settings.
  int crf = 19;
  std::string preset = "veryfast";
  /// Encoder threads, 0: as many as libav* sees fit. The same number gives the same bytes.
  int threads = 0;
};

/// How many samples per channel belong to a clip: round(frames / rate * sample_rate).
int64_t AudioSamplesForFrames(int64_t frames, const pipeline::FrameRate& frame_rate,
                              int sample_rate);

/// Writes one mp4: H.264 yuv420p BT.709 limited and two-channel AAC, `moov` in front, exact
/// rational frame rate. Frames go in as they come; the file appears under its name in Finish(), or
/// never. Not thread-safe.
class Mp4Writer {
 public:
  /// INVALID_ARGUMENT for odd or empty sizes, NOT_FOUND / PERMISSION_DENIED for the path,
  /// FAILED_PRECONDITION if the linked FFmpeg lacks libx264 or aac.
  static absl::StatusOr<std::unique_ptr<Mp4Writer>> Create(absl::string_view path,
                                                           const Mp4Options& options);
  /// Removes what was written unless Finish() succeeded.
  ~Mp4Writer();
  Mp4Writer(const Mp4Writer&) = delete;
  Mp4Writer& operator=(const Mp4Writer&) = delete;

  /// i420 [n, H * 3/2, W], of each frame the planes Y, Cb, Cr.
  absl::Status AddFrames(absl::Span<const uint8_t> i420);

  /// Encodes the frames that are still under way and, beside them on a thread of its own, the
  /// sound, waveform [2, N] in [-1, 1] (empty without sound): cut, or extended by silence, to
  /// AudioSamplesForFrames of the frames added. Then writes the trailer and puts the file in place.
  /// Returns its size in bytes.
  absl::StatusOr<int64_t> Finish(absl::Span<const float> waveform);

 private:
  struct State;
  explicit Mp4Writer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ltx::media

#endif  // LTX_ENGINE_MEDIA_MP4_WRITER_H_
