#ifndef LTX_SERVER_CLIP_ENCODER_H_
#define LTX_SERVER_CLIP_ENCODER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "engine/media/mp4_writer.h"
#include "kernels/host_copy.h"

namespace ltx::server {

/// Encodes a clip on a thread of its own, so that the device works on while frames are encoded. All
/// calls come from one thread, the one that drives the device.
class ClipEncoder {
 public:
  /// Errors are those of media::Mp4Writer::Create.
  static absl::StatusOr<std::unique_ptr<ClipEncoder>> Start(const std::string& path,
                                                            const media::Mp4Options& options);
  /// Waits for the frame that is being encoded. Leaves no file unless Finish() succeeded.
  ~ClipEncoder();
  ClipEncoder(const ClipEncoder&) = delete;
  ClipEncoder& operator=(const ClipEncoder&) = delete;

  /// The next frames, I420 [n, H * 3/2, W]. Does not wait.
  void Add(HostBytes i420);
  /// Frames added so far.
  int64_t added() const { return added_; }
  /// Waits until the encoder has taken in so many frames of the clip, which must have been added.
  /// Releases what is no longer needed. The error that has stopped the encoder, if any.
  absl::Status WaitFor(int64_t frames);
  /// Waits for all frames, adds the sound (as Mp4Writer::Finish says) and puts the file in place.
  /// Returns its size in bytes.
  absl::StatusOr<int64_t> Finish(absl::Span<const float> waveform);

 private:
  ClipEncoder(std::unique_ptr<media::Mp4Writer> writer, int64_t frame_bytes);
  void Run();
  /// Frame by frame, as long as it is not told to stop.
  absl::Status EncodePart(absl::Span<const uint8_t> i420);

  /// The thread's as long as frames are waiting.
  const std::unique_ptr<media::Mp4Writer> writer_;
  const int64_t frame_bytes_;
  int64_t added_ = 0;

  absl::Mutex mutex_;
  std::deque<HostBytes> waiting_ ABSL_GUARDED_BY(mutex_);
  /// Encoded; released by the caller's thread, because devices are driven by one.
  std::vector<HostBytes> spent_ ABSL_GUARDED_BY(mutex_);
  int64_t encoded_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_CLIP_ENCODER_H_
