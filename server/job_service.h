#ifndef LTX_SERVER_JOB_SERVICE_H_
#define LTX_SERVER_JOB_SERVICE_H_

#include "proto/ltx/v1/job_service.grpc.pb.h"
#include "server/jobs/heartbeat.h"
#include "server/jobs/job_manager.h"

namespace ltx::server {

/// ltx.v1.JobService.
class JobService final : public v1::JobService::CallbackService {
 public:
  /// Both must outlive the service.
  JobService(JobManager* jobs, Heartbeat* heartbeat) : jobs_(jobs), heartbeat_(heartbeat) {}

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
  JobManager* const jobs_;
  Heartbeat* const heartbeat_;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_JOB_SERVICE_H_
