#ifndef LTX_SERVER_VIDEO_SERVICE_H_
#define LTX_SERVER_VIDEO_SERVICE_H_

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/pipeline/model.h"
#include "proto/ltx/v1/video_service.grpc.pb.h"
#include "server/executor.h"
#include "server/generation_stream.h"
#include "server/metrics/server_metrics.h"

namespace ltx::server {

struct VideoServiceOptions {
  int queue_capacity = 64;
  std::vector<std::string> output_roots;
  /// Existing folder, private to this process.
  std::string work_dir;
  /// For Health.
  std::string model_path;
};

/// ltx.v1.VideoService over one model.
class VideoService final : public v1::VideoService::CallbackService {
 public:
  /// `model` and `metrics` must outlive the service.
  VideoService(const pipeline::Model* model, VideoServiceOptions options, ServerMetrics* metrics);
  ~VideoService() override;

  /// Stops accepting, ends waiting jobs, gives the running one `grace`.
  void Drain(absl::Duration grace) { executor_.Drain(grace); }

  /// OK while new jobs are accepted.
  absl::Status Ready() const;

  grpc::ServerWriteReactor<v1::GenerateVideoEvent>* GenerateVideo(
      grpc::CallbackServerContext* context, const v1::GenerateVideoRequest* request) override;
  grpc::ServerReadReactor<v1::ConditionRequest>* Condition(
      grpc::CallbackServerContext* context, v1::ConditionResponse* response) override;
  grpc::ServerUnaryReactor* Health(grpc::CallbackServerContext* context,
                                   const v1::HealthRequest* request,
                                   v1::HealthResponse* response) override;

 private:
  /// Validates and queues; the stream is told of everything that happens afterwards.
  absl::Status Start(const v1::GenerateVideoRequest& request, absl::Time deadline,
                     const std::shared_ptr<GenerationStream>& stream);
  void FillHealth(v1::HealthResponse* response) const;
  void HeartbeatLoop();

  const pipeline::Model* const model_;
  const VideoServiceOptions options_;
  ServerMetrics* const metrics_;
  const absl::Time started_;
  std::atomic<int> running_phase_{v1::PHASE_UNSPECIFIED};
  std::atomic<uint64_t> next_job_{1};
  const std::string id_prefix_;

  absl::Mutex mutex_;
  std::vector<std::weak_ptr<GenerationStream>> streams_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  Executor executor_;
  std::thread heartbeat_;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_VIDEO_SERVICE_H_
