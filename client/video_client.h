#ifndef LTX_CLIENT_VIDEO_CLIENT_H_
#define LTX_CLIENT_VIDEO_CLIENT_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/ltx/v1/job_service.grpc.pb.h"
#include "proto/ltx/v1/video_service.grpc.pb.h"

namespace ltx::client {

class MediaReceiver;

/// A gRPC status as an absl::Status: same code; the message ends with what the server's
/// google.rpc details add (field and legal values, when to come back).
absl::Status FromWire(const grpc::Status& status);

/// A connection to an ltx_server.
///
///   auto client = VideoClient::Connect("localhost:50051", absl::Seconds(5));
///   v1::GenerateVideoRequest request;
///   request.set_prompt("a red circle moves up, a low hum");
///   auto report = (*client)->Generate(request, "clip.mp4", {});
class VideoClient {
 public:
  /// `address` is HOST:PORT. UNAVAILABLE if nobody answers within `timeout`.
  static absl::StatusOr<std::unique_ptr<VideoClient>> Connect(const std::string& address,
                                                              absl::Duration timeout);

  /// Over a channel of OpenChannel(), with TLS and a token.
  static std::unique_ptr<VideoClient> Over(const std::shared_ptr<grpc::Channel>& channel);

  /// Who shares the device with whom; sent along with all that is generated. Before any call.
  void SetTenant(std::string tenant) { tenant_ = std::move(tenant); }

  struct GenerateOptions {
    /// Called for every event but media chunks, on the calling thread.
    std::function<void(const v1::GenerateVideoEvent&)> on_event;
    /// The job must be done by then.
    absl::Time deadline = absl::InfiniteFuture();
  };

  /// One at a time. A partial result goes to `output_path` with ".partial.safetensors" behind it,
  /// and the message of the error names it. Runs a request and writes the clip to `output_path`
  /// (whole or not at all), unless the request names a path of the server's. Blocks until the end.
  /// Any status of the service; DATA_LOSS if the media arrive damaged; NOT_FOUND /
  /// PERMISSION_DENIED for `output_path`, told before anything is sent.
  absl::StatusOr<v1::GenerationReport> Generate(const v1::GenerateVideoRequest& request,
                                                const std::string& output_path,
                                                const GenerateOptions& options);

  /// Queues a request whose job goes on without this client, and returns the job's id as soon as
  /// the server has written it down. Sets `detach`; otherwise as Generate().
  absl::StatusOr<std::string> Submit(v1::GenerateVideoRequest request, absl::Duration timeout);

  /// Follows a job from an event on and writes its clip to `output_path`; without one media are not
  /// asked for. Otherwise as Generate(). NOT_FOUND for an unknown job.
  absl::StatusOr<v1::GenerationReport> Watch(v1::WatchJobRequest request,
                                             const std::string& output_path,
                                             const GenerateOptions& options);

  /// Ends the running Generate() or Watch(), from any thread; it then returns CANCELLED. If none
  /// runs, the next one is ended: a caller cannot know how far that of another thread has come. A
  /// job is cancelled with its Generate(), unless it is detached; a Watch() leaves it alone.
  void Cancel();

  absl::StatusOr<v1::Job> GetJob(const std::string& job_id);
  absl::StatusOr<v1::ListJobsResponse> ListJobs(const v1::ListJobsRequest& request);
  absl::StatusOr<v1::Job> CancelJob(const std::string& job_id);
  absl::Status DeleteJob(const std::string& job_id);

  absl::StatusOr<v1::HealthResponse> Health(absl::Duration timeout);

  /// What a request would cost, and whether it would be admitted, with `deadline` as the job's.
  absl::StatusOr<v1::PlanResponse> Plan(const v1::GenerateVideoRequest& request,
                                        absl::Time deadline = absl::InfiniteFuture());
  /// The server's rungs, planned as requests like this one.
  absl::StatusOr<v1::ListRungsResponse> Rungs(const v1::GenerateVideoRequest& request);

  /// Uploads the content of a file, or a prompt, to condition on. `kind` may be unspecified: the
  /// content tells. Any status of the service; NOT_FOUND if the file cannot be read.
  absl::StatusOr<v1::ConditionResponse> UploadFile(const std::string& path, v1::ConditionKind kind,
                                                   absl::Duration timeout);
  absl::StatusOr<v1::ConditionResponse> UploadPrompt(const std::string& prompt,
                                                     absl::Duration timeout);
  absl::Status DeleteCondition(const std::string& handle, absl::Duration timeout);

 private:
  absl::StatusOr<v1::ConditionResponse> Upload(v1::ConditionHeader header,
                                               absl::string_view content, absl::Duration timeout);
  explicit VideoClient(const std::shared_ptr<grpc::Channel>& channel);

  struct Running;
  using Reader = grpc::ClientReaderInterface<v1::GenerateVideoEvent>;

  /// Opens a stream with `start` and reads it to its end.
  absl::StatusOr<v1::GenerationReport> ReadStream(
      const std::function<std::unique_ptr<Reader>(grpc::ClientContext*)>& start,
      MediaReceiver* receiver, const GenerateOptions& options);

  std::string tenant_;
  std::unique_ptr<v1::VideoService::Stub> stub_;
  std::unique_ptr<v1::JobService::Stub> jobs_;
  std::shared_ptr<Running> running_;
};

}  // namespace ltx::client

#endif  // LTX_CLIENT_VIDEO_CLIENT_H_
