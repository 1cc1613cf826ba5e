#ifndef LTX_SERVER_JOBS_JOB_STREAM_H_
#define LTX_SERVER_JOBS_JOB_STREAM_H_

#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/ltx/v1/video_service.pb.h"
#include "server/jobs/job.h"

namespace ltx::server {

/// The server's end of one stream of events of a job. Takes events and pieces of the clip from the
/// job as fast as the client reads, so that a slow client costs no memory. Lives until gRPC is done
/// with it.
class JobStream final : public grpc::ServerWriteReactor<v1::GenerateVideoEvent>, public JobWatcher {
 public:
  static std::shared_ptr<JobStream> Create();

  struct Options {
    int64_t from_event = 1;
    bool media = true;
    int64_t media_offset = 0;
    /// Called once, when the call is over, however it ends.
    std::function<void()> on_gone;
  };
  /// Shows this job; once, or Refuse() instead.
  void Attach(std::shared_ptr<Job> job, Options options);
  /// Ends the stream; tells when to come back, if `retry_after` is positive.
  void Refuse(const absl::Status& status, absl::Duration retry_after = absl::ZeroDuration());

  /// Repeats the last event if nothing was sent since `now` - 10 s, so that proxies keep the
  /// connection and people see life.
  void Heartbeat(absl::Time now);

  // JobWatcher.
  void OnJobChanged() override;

  // ServerWriteReactor.
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  enum class Media { kNone, kHeader, kChunks };

  JobStream() = default;
  /// Starts the next write or ends the stream, unless a write is under way.
  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Puts what comes next into in_flight_; false if there is nothing (yet).
  bool TakeNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// The same for the clip, which goes before the last event; false if there is none (left).
  bool TakeMedia() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// As soon as the job is over (or its partial result there), so that the clip cannot make room
  /// for another under our feet.
  void OpenClip() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Write() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(const grpc::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Runs on_gone, if it has not been.
  void Leave();

  absl::Mutex mutex_;
  /// Keeps the object alive until OnDone().
  std::shared_ptr<JobStream> self_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<Job> job_ ABSL_GUARDED_BY(mutex_);
  Options options_ ABSL_GUARDED_BY(mutex_);
  int64_t next_event_ ABSL_GUARDED_BY(mutex_) = 1;
  v1::GenerateVideoEvent in_flight_ ABSL_GUARDED_BY(mutex_);
  v1::GenerateVideoEvent last_event_ ABSL_GUARDED_BY(mutex_);
  absl::Time last_sent_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  /// The client is gone.
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;

  Media media_ ABSL_GUARDED_BY(mutex_) = Media::kNone;
  MediaInfo clip_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::StatusOr<std::shared_ptr<const MediaFile>>> file_ ABSL_GUARDED_BY(mutex_);
  int64_t offset_ ABSL_GUARDED_BY(mutex_) = 0;
  int sequence_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_JOBS_JOB_STREAM_H_
