#include "server/job_service.h"

#include <memory>
#include <utility>

#include "kernels/status_macros.h"
#include "server/jobs/job_stream.h"
#include "server/wire_status.h"

namespace ltx::server {
namespace {

grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context, const absl::Status& status) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(ToWire(status));
  return reactor;
}

/// Answers with what the job is now.
grpc::ServerUnaryReactor* AnswerJob(grpc::CallbackServerContext* context,
                                    const absl::StatusOr<std::shared_ptr<Job>>& job,
                                    v1::Job* response) {
  if (job.ok()) *response = (*job)->Describe(/*brief=*/false);
  return Answer(context, job.status());
}

}  // namespace

absl::StatusOr<std::shared_ptr<Job>> JobService::Find(const grpc::CallbackServerContext& context,
                                                      const std::string& job_id) const {
  LTX_ASSIGN_OR_RETURN(const std::string tenant, authenticator_->Authenticate(context));
  LTX_ASSIGN_OR_RETURN(std::shared_ptr<Job> job, jobs_->Find(job_id));
  if (!authenticator_->identifies() || job->tenant() == tenant) return job;
  return JobManager::Unknown(job_id);
}

grpc::ServerUnaryReactor* JobService::GetJob(grpc::CallbackServerContext* context,
                                             const v1::GetJobRequest* request, v1::Job* response) {
  return AnswerJob(context, Find(*context, request->job_id()), response);
}

grpc::ServerUnaryReactor* JobService::ListJobs(grpc::CallbackServerContext* context,
                                               const v1::ListJobsRequest* request,
                                               v1::ListJobsResponse* response) {
  const absl::StatusOr<std::string> tenant = authenticator_->Authenticate(*context);
  if (!tenant.ok()) return Answer(context, tenant.status());
  v1::ListJobsRequest mine = *request;
  if (authenticator_->identifies()) mine.set_tenant(*tenant);
  absl::StatusOr<v1::ListJobsResponse> page = jobs_->List(mine);
  if (page.ok()) *response = *std::move(page);
  return Answer(context, page.status());
}

grpc::ServerWriteReactor<v1::GenerateVideoEvent>* JobService::WatchJob(
    grpc::CallbackServerContext* context, const v1::WatchJobRequest* request) {
  const std::shared_ptr<JobStream> stream = JobStream::Create();
  const absl::StatusOr<std::shared_ptr<Job>> job = Find(*context, request->job_id());
  if (!job.ok()) {
    stream->Refuse(job.status());
    return stream.get();
  }
  heartbeat_->Add(stream);
  JobStream::Options options;
  options.from_event = request->from_event();
  options.media = !request->skip_media();
  options.media_offset = request->media_offset();
  stream->Attach(*job, std::move(options));
  return stream.get();
}

grpc::ServerUnaryReactor* JobService::CancelJob(grpc::CallbackServerContext* context,
                                                const v1::CancelJobRequest* request,
                                                v1::Job* response) {
  absl::StatusOr<std::shared_ptr<Job>> job = Find(*context, request->job_id());
  if (job.ok()) job = jobs_->Cancel(request->job_id());
  return AnswerJob(context, job, response);
}

grpc::ServerUnaryReactor* JobService::DeleteJob(grpc::CallbackServerContext* context,
                                                const v1::DeleteJobRequest* request,
                                                v1::DeleteJobResponse*) {
  const absl::Status found = Find(*context, request->job_id()).status();
  return Answer(context, found.ok() ? jobs_->Delete(request->job_id()) : found);
}

}  // namespace ltx::server
