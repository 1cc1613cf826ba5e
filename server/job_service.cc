#include "server/job_service.h"

#include <memory>
#include <utility>

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

grpc::ServerUnaryReactor* JobService::GetJob(grpc::CallbackServerContext* context,
                                             const v1::GetJobRequest* request, v1::Job* response) {
  return AnswerJob(context, jobs_->Find(request->job_id()), response);
}

grpc::ServerUnaryReactor* JobService::ListJobs(grpc::CallbackServerContext* context,
                                               const v1::ListJobsRequest* request,
                                               v1::ListJobsResponse* response) {
  absl::StatusOr<v1::ListJobsResponse> page = jobs_->List(*request);
  if (page.ok()) *response = *std::move(page);
  return Answer(context, page.status());
}

grpc::ServerWriteReactor<v1::GenerateVideoEvent>* JobService::WatchJob(
    grpc::CallbackServerContext*, const v1::WatchJobRequest* request) {
  const std::shared_ptr<JobStream> stream = JobStream::Create();
  const absl::StatusOr<std::shared_ptr<Job>> job = jobs_->Find(request->job_id());
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
  return AnswerJob(context, jobs_->Cancel(request->job_id()), response);
}

grpc::ServerUnaryReactor* JobService::DeleteJob(grpc::CallbackServerContext* context,
                                                const v1::DeleteJobRequest* request,
                                                v1::DeleteJobResponse*) {
  return Answer(context, jobs_->Delete(request->job_id()));
}

}  // namespace ltx::server
