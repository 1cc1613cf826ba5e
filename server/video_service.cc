#include "server/video_service.h"

#include <optional>
#include <string>
#include <utility>

#include "engine/pipeline/error_details.h"
#include "kernels/status_macros.h"
#include "proto/ltx/version.h"
#include "server/jobs/job_stream.h"
#include "server/reasons.h"
#include "server/wire_status.h"
#include "spdlog/spdlog.h"

namespace ltx::server {
namespace {

/// Ends a client stream with a status as soon as it is there.
class RefusingReadReactor final : public grpc::ServerReadReactor<v1::ConditionRequest> {
 public:
  explicit RefusingReadReactor(const absl::Status& status) { Finish(ToWire(status)); }
  void OnDone() override { delete this; }
};

void CountRefused(const absl::Status& status, ServerMetrics* metrics) {
  metrics->CountRequest("", "", status.code());
  const std::optional<pipeline::ErrorDetail> detail = pipeline::GetErrorDetail(status);
  metrics->CountRefusal(detail.has_value() ? detail->reason
                                           : absl::StatusCodeToString(status.code()));
}

/// Ends a unary call with what was found out.
template <typename Response>
grpc::ServerUnaryReactor* Finish(grpc::CallbackServerContext* context,
                                 const absl::StatusOr<Response>& result, Response* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  if (result.ok()) *response = *result;
  reactor->Finish(ToWire(result.status()));
  return reactor;
}

/// Whether the same request may be accepted once jobs have ended: not if it is itself too much.
bool MayComeBack(const absl::Status& status) {
  if (!absl::IsResourceExhausted(status)) return false;
  const std::optional<pipeline::ErrorDetail> detail = pipeline::GetErrorDetail(status);
  return !detail.has_value() ||
         (detail->reason != kReasonMemoryProjection && detail->reason != kReasonTimeProjection);
}

}  // namespace

absl::StatusOr<std::shared_ptr<Job>> VideoService::StartJob(
    const grpc::CallbackServerContext& context, const v1::GenerateVideoRequest& request) {
  JobManager::Submission submission;
  LTX_ASSIGN_OR_RETURN(submission.tenant, authenticator_->Authenticate(context));
  LTX_ASSIGN_OR_RETURN(std::shared_ptr<Job> known, jobs_->Join(request, submission.tenant));
  if (known != nullptr) return known;
  LTX_ASSIGN_OR_RETURN(const v1::GenerateVideoRequest resolved,
                       conditions_->Resolve(submission.tenant, request));
  LTX_ASSIGN_OR_RETURN(GenerationBackend::Prepared prepared, backend_->Prepare(resolved));
  submission.request = request;
  submission.deadline = absl::FromChrono(context.deadline());
  submission.rung = std::move(prepared.rung);
  submission.expected_seconds = prepared.expected_seconds;
  submission.expected_bytes = prepared.expected_bytes;
  submission.make_task = std::move(prepared.make_task);
  return jobs_->Submit(std::move(submission));
}

grpc::ServerWriteReactor<v1::GenerateVideoEvent>* VideoService::GenerateVideo(
    grpc::CallbackServerContext* context, const v1::GenerateVideoRequest* request) {
  const std::shared_ptr<JobStream> stream = JobStream::Create();
  const absl::StatusOr<std::shared_ptr<Job>> job = StartJob(*context, *request);
  if (!job.ok()) {
    spdlog::info("refused: {}", job.status().ToString());
    CountRefused(job.status(), metrics_);
    // A full queue empties at the pace of the jobs so far.
    const double wait = MayComeBack(job.status()) ? jobs_->ReadScheduler().mean_job_seconds : 0.0;
    stream->Refuse(job.status(), absl::Seconds(wait));
    return stream.get();
  }
  heartbeat_->Add(stream);
  JobStream::Options options;
  options.on_gone = [this, job = *job] { jobs_->Leave(job); };
  stream->Attach(*job, std::move(options));
  return stream.get();
}

grpc::ServerUnaryReactor* VideoService::PlanVideo(grpc::CallbackServerContext* context,
                                                  const v1::GenerateVideoRequest* request,
                                                  v1::PlanResponse* response) {
  return Finish(context, PlanOf(*context, *request), response);
}

absl::StatusOr<v1::PlanResponse> VideoService::PlanOf(const grpc::CallbackServerContext& context,
                                                      const v1::GenerateVideoRequest& request) {
  LTX_ASSIGN_OR_RETURN(const std::string tenant, authenticator_->Authenticate(context));
  LTX_ASSIGN_OR_RETURN(const v1::GenerateVideoRequest resolved,
                       conditions_->Resolve(tenant, request));
  LTX_ASSIGN_OR_RETURN(const QueueOutlook outlook, jobs_->Outlook(resolved, tenant));
  return backend_->Plan(resolved, absl::FromChrono(context.deadline()), outlook);
}

grpc::ServerUnaryReactor* VideoService::ListRungs(grpc::CallbackServerContext* context,
                                                  const v1::ListRungsRequest* request,
                                                  v1::ListRungsResponse* response) {
  const absl::Status allowed = authenticator_->Authenticate(*context).status();
  if (!allowed.ok()) return Finish<v1::ListRungsResponse>(context, allowed, response);
  return Finish(context, backend_->ListRungs(*request), response);
}

grpc::ServerReadReactor<v1::ConditionRequest>* VideoService::Condition(
    grpc::CallbackServerContext* context, v1::ConditionResponse* response) {
  const absl::StatusOr<std::string> tenant = authenticator_->Authenticate(*context);
  if (!tenant.ok()) return std::make_unique<RefusingReadReactor>(tenant.status()).release();
  return conditions_->Receive(*tenant, response);
}

grpc::ServerUnaryReactor* VideoService::DeleteCondition(grpc::CallbackServerContext* context,
                                                        const v1::DeleteConditionRequest* request,
                                                        v1::DeleteConditionResponse*) {
  const absl::StatusOr<std::string> tenant = authenticator_->Authenticate(*context);
  const absl::Status status =
      tenant.ok() ? conditions_->store().Delete(*tenant, request->handle()) : tenant.status();
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(ToWire(status));
  return reactor;
}

grpc::ServerUnaryReactor* VideoService::Health(grpc::CallbackServerContext* context,
                                               const v1::HealthRequest*,
                                               v1::HealthResponse* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  if (const auto tenant = authenticator_->Authenticate(*context); !tenant.ok()) {
    reactor->Finish(ToWire(tenant.status()));
    return reactor;
  }
  response->set_server_version(kVersion);
  response->set_uptime_seconds(absl::ToDoubleSeconds(absl::Now() - started_));
  backend_->Describe(response);
  FillQueue(response);
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

void VideoService::FillQueue(v1::HealthResponse* response) const {
  const Scheduler::Snapshot queue = jobs_->ReadScheduler();
  response->set_state(queue.draining ? v1::HealthResponse::STATE_DRAINING
                                     : v1::HealthResponse::STATE_READY);
  const int interactive = queue.waiting[static_cast<int>(JobClass::kInteractive)];
  const int batch = queue.waiting[static_cast<int>(JobClass::kBatch)];
  v1::QueueInfo* const info = response->mutable_queue();
  info->set_waiting(interactive + batch);
  info->set_waiting_interactive(interactive);
  info->set_waiting_batch(batch);
  info->set_capacity(queue.capacity);
  if (!queue.running_ids.empty()) {
    info->set_running_job_id(queue.running_ids.front());
    const absl::StatusOr<std::shared_ptr<Job>> running = jobs_->Find(queue.running_ids.front());
    if (running.ok()) info->set_running_phase((*running)->phase());
  }
  for (const std::string& id : queue.suspended_ids) info->add_suspended_job_ids(id);
  info->set_finished_jobs(queue.succeeded);
  info->set_failed_jobs(queue.failed);
  info->set_refused_jobs(queue.refused);
  info->set_cancelled_jobs(queue.cancelled);
}

}  // namespace ltx::server
