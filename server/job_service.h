#ifndef LTX_SERVER_JOB_SERVICE_H_
#define LTX_SERVER_JOB_SERVICE_H_

#include "proto/ltx/v1/job_service.grpc.pb.h"
#include "server/auth/authenticator.h"
#include "server/jobs/heartbeat.h"
#include "server/jobs/job_manager.h"

namespace ltx::server {

/// ltx.v1.JobService.
class JobService final : public v1::JobService::CallbackService {
 public:
  /// All must outlive the service.
  JobService(JobManager* jobs, Heartbeat* heartbeat, const Authenticator* authenticator)
      : jobs_(jobs), heartbeat_(heartbeat), authenticator_(authenticator) {}

  grpc::ServerUnaryReactor* GetJob(grpc::CallbackServerContext* context,
                                   const v1::GetJobRequest* request, v1::Job* response) override;
  grpc::ServerUnaryReactor* ListJobs(grpc::CallbackServerContext* context,
                                     const v1::ListJobsRequest* request,
                                     v1::ListJobsResponse* response) override;
  grpc::ServerWriteReactor<v1::GenerateVideoEvent>* WatchJob(
      grpc::CallbackServerContext* context, const v1::WatchJobRequest* request) override;
  grpc::ServerUnaryReactor* CancelJob(grpc::CallbackServerContext* context,
                                      const v1::CancelJobRequest* request,
                                      v1::Job* response) override;
  grpc::ServerUnaryReactor* DeleteJob(grpc::CallbackServerContext* context,
                                      const v1::DeleteJobRequest* request,
                                      v1::DeleteJobResponse* response) override;

 private:
  /// The job, if it is the caller's; NOT_FOUND also for those of others.
  absl::StatusOr<std::shared_ptr<Job>> Find(const grpc::CallbackServerContext& context,
                                            const std::string& job_id) const;

  JobManager* const jobs_;
  Heartbeat* const heartbeat_;
  const Authenticator* const authenticator_;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_JOB_SERVICE_H_
