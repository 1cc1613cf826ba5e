#include "server/model_backend.h"

#include <functional>
#include <memory>
#include <utility>

#include "absl/time/clock.h"
#include "engine/checkpoint/model_set.h"
#include "kernels/status_macros.h"
#include "server/generation_task.h"
#include "server/governor/verdict.h"
#include "server/media_kind.h"
#include "server/output_path.h"
#include "server/plan_mapping.h"
#include "server/request_mapping.h"
#include "spdlog/spdlog.h"

namespace ltx::server {

absl::StatusOr<pipeline::GenerationRequest> ModelBackend::Map(
    const v1::GenerateVideoRequest& request) const {
  LTX_ASSIGN_OR_RETURN(pipeline::GenerationRequest mapped, FromWire(request, model_->defaults()));
  LTX_RETURN_IF_ERROR(model_->Validate(mapped));
  return mapped;
}

absl::StatusOr<GenerationBackend::Prepared> ModelBackend::Prepare(
    const v1::GenerateVideoRequest& request) {
  GenerationTask::Order order;
  LTX_ASSIGN_OR_RETURN(order.request, Map(request));
  if (!request.output_path().empty()) {
    LTX_ASSIGN_OR_RETURN(order.output_path,
                         ResolveOutputPath(request.output_path(), MediaKindOf(order.request).ending,
                                           options_.output_roots));
  }
  LTX_ASSIGN_OR_RETURN(const Lease lease,
                       LeaseFromWire(request, absl::InfiniteFuture(), absl::Now()));
  LTX_ASSIGN_OR_RETURN(GovernorPlan plan, governor_->Weigh(order.request, lease, {}));
  LTX_RETURN_IF_ERROR(ToStatus(plan.verdict));
  order.request = plan.request;
  Prepared prepared;
  if (plan.demand.seconds_known) prepared.expected_seconds = plan.demand.total_seconds();
  prepared.expected_bytes = plan.demand.peak_bytes;
  prepared.rung = plan.verdict.rung;
  order.keep_partial_results = request.keep_partial_results();
  order.preview_every_steps = request.preview_every_steps();
  order.projection = projection_;
  order.plan = std::make_shared<const GovernorPlan>(std::move(plan));
  prepared.make_task = [this, order = std::move(order)](const std::string& job_id,
                                                        std::shared_ptr<GenerationSink> sink) {
    return std::make_unique<GenerationTask>(job_id, model_, governor_, order, std::move(sink),
                                            metrics_);
  };
  return prepared;
}

absl::StatusOr<v1::PlanResponse> ModelBackend::Plan(const v1::GenerateVideoRequest& request,
                                                    absl::Time deadline,
                                                    const QueueOutlook& outlook) {
  LTX_ASSIGN_OR_RETURN(const pipeline::GenerationRequest mapped, Map(request));
  LTX_ASSIGN_OR_RETURN(const Lease lease, LeaseFromWire(request, deadline, absl::Now()));
  Supply supply;
  supply.jobs_ahead = outlook.jobs_ahead;
  supply.seconds_ahead = outlook.seconds_ahead;
  LTX_ASSIGN_OR_RETURN(const GovernorPlan plan, governor_->Weigh(mapped, lease, supply));
  return ToWire(plan, governor_->ladder(), supply);
}

absl::StatusOr<v1::ListRungsResponse> ModelBackend::ListRungs(const v1::ListRungsRequest& request) {
  LTX_ASSIGN_OR_RETURN(const pipeline::GenerationRequest mapped, Map(request.request()));
  LTX_ASSIGN_OR_RETURN(const Lease lease,
                       LeaseFromWire(request.request(), absl::InfiniteFuture(), absl::Now()));
  v1::ListRungsResponse response;
  for (const GovernorPlan& plan : governor_->WeighRungs(mapped, lease, {})) {
    *response.add_plans() = ToWire(plan, governor_->ladder(), {});
  }
  return response;
}

absl::Status AdmitByDeadline(const JobSpec& job, const std::function<QueueOutlook()>& outlook) {
  if (job.deadline == absl::InfiniteFuture() || job.expected_seconds <= 0) {
    return absl::OkStatus();
  }
  const QueueOutlook queue = outlook();
  Supply supply;
  supply.jobs_ahead = queue.jobs_ahead;
  supply.seconds_ahead = queue.seconds_ahead;
  return ToStatus(DecideDeadline(job.expected_seconds,
                                 absl::ToDoubleSeconds(job.deadline - absl::Now()), supply));
}

SchedulerHooks ModelHooks(const pipeline::Model* model, const Governor* governor) {
  SchedulerHooks hooks;
  hooks.admit = AdmitByDeadline;
  hooks.may_suspend = [governor](const JobSpec& /*running*/, const JobSpec& next) {
    const int64_t budget = governor->device_bytes();
    return budget == 0 ||
           governor->ResidentBytes() + governor->HeldBytes() + next.expected_bytes <= budget;
  };
  hooks.idle = [model] {
    const absl::StatusOr<bool> more = model->Improve();
    if (!more.ok()) {
      spdlog::warn("an idle device could not be made use of: {}", more.status().ToString());
    }
    return more.value_or(false);
  };
  return hooks;
}

void ModelBackend::Describe(v1::HealthResponse* response) const {
  v1::ModelInfo* model = response->mutable_model();
  model->set_name(model_->name());
  model->set_kind(std::string(checkpoint::ModelKindName(model_->kind())));
  model->set_version(model_->version());
  model->set_path(options_.model_path);
  for (const pipeline::Recipe recipe : model_->recipes()) {
    model->add_recipes(std::string(pipeline::RecipeName(recipe)));
  }
  const pipeline::GenerationRequest defaults = model_->DefaultRequest();
  model->set_default_width(static_cast<int32_t>(defaults.width));
  model->set_default_height(static_cast<int32_t>(defaults.height));
  model->set_default_num_frames(static_cast<int32_t>(defaults.num_frames));
  model->set_default_frame_rate(defaults.frame_rate.value());

  v1::DeviceInfo* device = response->mutable_device();
  device->set_name(model_->device().name());
  device->set_description(model_->device().description());
  device->set_compute_dtype(model_->compute_dtype() == DType::kBF16 ? "bf16" : "f32");
  device->set_threads(model_->device().properties().threads);
  device->set_system_available_bytes(model_->device().SystemAvailableBytes());
  device->set_baseline_available_bytes(options_.baseline_available_bytes);
  device->set_budget_bytes(governor_->device_bytes());
  AddMemory(model_->device().ledger().Read(), response->mutable_memory());
}

ServerMetrics::Reading ModelBackend::ReadMetrics() const {
  const text::PromptCache::Stats prompts = model_->prompt_cache_stats();
  ServerMetrics::Reading reading;
  reading.ledger = model_->device().ledger().Read();
  reading.free_bytes = model_->device().SystemAvailableBytes();
  reading.prompt_cache_hits = prompts.hits;
  reading.prompt_cache_misses = prompts.misses;
  if (const pipeline::FusedCache* const fused = model_->fused_cache(); fused != nullptr) {
    reading.fused_cache_hits = fused->stats().hits;
    reading.fused_cache_misses = fused->stats().fusions;
  }
  return reading;
}

}  // namespace ltx::server
