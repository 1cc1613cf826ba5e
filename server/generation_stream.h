#ifndef LTX_SERVER_GENERATION_STREAM_H_
#define LTX_SERVER_GENERATION_STREAM_H_

#include <grpcpp/support/server_callback.h>

#include <deque>
#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/ltx/v1/video_service.pb.h"
#include "server/generation_sink.h"

namespace ltx::server {

/// The server's end of one GenerateVideo stream: queues events and writes them one after the other,
/// then the media in chunks read as the client takes them. Lives until gRPC and the job are both
/// done with it.
class GenerationStream final : public grpc::ServerWriteReactor<v1::GenerateVideoEvent>,
                               public GenerationSink {
 public:
  static std::shared_ptr<GenerationStream> Create();

  /// Called once when the client is gone or cancels; set before the job is submitted.
  void SetOnCancel(const std::function<void()>& on_cancel);

  // GenerationSink.
  void Send(v1::GenerateVideoEvent event) override;
  void Complete(std::unique_ptr<MediaFile> media, v1::GenerationReport report) override;
  void Fail(const absl::Status& status) override { Refuse(status, absl::ZeroDuration()); }

  /// Fail() that also tells when to come back, if `retry_after` is positive.
  void Refuse(const absl::Status& status, absl::Duration retry_after);

  /// Repeats the last event if nothing was sent since `now` - 10 s, so that proxies keep the
  /// connection and people see life.
  void Heartbeat(absl::Time now);

  // ServerWriteReactor.
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  GenerationStream() = default;
  /// Starts the next write or ends the stream, unless a write is under way.
  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Queues the next chunk of the media, or the report once there is none.
  void QueueMedia() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  /// Keeps the object alive until OnDone().
  std::shared_ptr<GenerationStream> self_ ABSL_GUARDED_BY(mutex_);
  std::function<void()> on_cancel_ ABSL_GUARDED_BY(mutex_);
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<v1::GenerateVideoEvent> events_ ABSL_GUARDED_BY(mutex_);
  v1::GenerateVideoEvent in_flight_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Status status_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<MediaFile> media_ ABSL_GUARDED_BY(mutex_);
  int next_sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  bool report_pending_ ABSL_GUARDED_BY(mutex_) = false;
  v1::GenerationReport report_ ABSL_GUARDED_BY(mutex_);
  v1::GenerateVideoEvent last_event_ ABSL_GUARDED_BY(mutex_);
  absl::Time last_sent_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace ltx::server

#endif  // LTX_SERVER_GENERATION_STREAM_H_
