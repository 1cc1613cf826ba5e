#ifndef LTX_SERVER_VIDEO_SERVICE_H_
#define LTX_SERVER_VIDEO_SERVICE_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/ltx/v1/video_service.grpc.pb.h"
#include "server/auth/authenticator.h"
#include "server/condition/condition_service.h"
#include "server/generation_backend.h"
#include "server/jobs/heartbeat.h"
#include "server/jobs/job_manager.h"
#include "server/metrics/server_metrics.h"

namespace ltx::server {

/// ltx.v1.VideoService.
class VideoService final : public v1::VideoService::CallbackService {
 public:
  /// All must outlive the service.
  VideoService(GenerationBackend* backend, JobManager* jobs, Heartbeat* heartbeat,
               ServerMetrics* metrics, ConditionService* conditions,
               const Authenticator* authenticator)
      : backend_(backend),
        jobs_(jobs),
        heartbeat_(heartbeat),
        metrics_(metrics),
        conditions_(conditions),
        authenticator_(authenticator),
        started_(absl::Now()) {}

  grpc::ServerWriteReactor<v1::GenerateVideoEvent>* GenerateVideo(
      grpc::CallbackServerContext* context, const v1::GenerateVideoRequest* request) override;
  grpc::ServerUnaryReactor* PlanVideo(grpc::CallbackServerContext* context,
                                      const v1::GenerateVideoRequest* request,
                                      v1::PlanResponse* response) override;
  grpc::ServerUnaryReactor* ListRungs(grpc::CallbackServerContext* context,
                                      const v1::ListRungsRequest* request,
                                      v1::ListRungsResponse* response) override;
  grpc::ServerReadReactor<v1::ConditionRequest>* Condition(
      grpc::CallbackServerContext* context, v1::ConditionResponse* response) override;
  grpc::ServerUnaryReactor* DeleteCondition(grpc::CallbackServerContext* context,
                                            const v1::DeleteConditionRequest* request,
                                            v1::DeleteConditionResponse* response) override;
  grpc::ServerUnaryReactor* Health(grpc::CallbackServerContext* context,
                                   const v1::HealthRequest* request,
                                   v1::HealthResponse* response) override;

 private:
  /// Validates and queues, or finds the job of the request's key; the caller owns a share in it.
  absl::StatusOr<std::shared_ptr<Job>> StartJob(const grpc::CallbackServerContext& context,
                                                const v1::GenerateVideoRequest& request);
  absl::StatusOr<v1::PlanResponse> PlanOf(const grpc::CallbackServerContext& context,
                                          const v1::GenerateVideoRequest& request);
  void FillQueue(v1::HealthResponse* response) const;

  GenerationBackend* const backend_;
  JobManager* const jobs_;
  Heartbeat* const heartbeat_;
  ServerMetrics* const metrics_;
  ConditionService* const conditions_;
  const Authenticator* const authenticator_;
  const absl::Time started_;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_VIDEO_SERVICE_H_
