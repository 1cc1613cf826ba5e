#include "server/governor/governor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"
#include "server/governor/plan_cost.h"
#include "server/reasons.h"

namespace ltx::server {
namespace {

const MemoryLedger::Amounts& Of(const MemoryLedger::Snapshot& snapshot, MemoryOwner owner) {
  return snapshot.by_owner[static_cast<int>(owner)];
}

}  // namespace

Governor::Governor(const pipeline::Model* model, Options options)
    : model_(model), options_(std::move(options)), idle_(model->device().ledger().Read()) {}

absl::StatusOr<std::unique_ptr<Governor>> Governor::Create(const pipeline::Model* model,
                                                           const checkpoint::ModelSet& files,
                                                           Options options) {
  auto governor = std::unique_ptr<Governor>(new Governor(model, std::move(options)));
  LTX_ASSIGN_OR_RETURN(governor->projector_, pipeline::PlanProjector::Create(model, files));
  return governor;
}

int64_t Governor::HeldBytes() const {
  const pipeline::FusedCache* const fused = model_->fused_cache();
  return ActivationBytes() + (fused == nullptr ? 0 : fused->stats().bytes_in_use);
}

int64_t Governor::ActivationBytes() const {
  const MemoryLedger::Snapshot now = model_->device().ledger().Read();
  int64_t held = 0;
  for (int i = 0; i < kMemoryOwnerCount; ++i) {
    const auto owner = static_cast<MemoryOwner>(i);
    if (!GoesWithRequest(owner)) continue;
    held += Of(now, owner).live_bytes - Of(idle_, owner).live_bytes;
  }
  return std::max<int64_t>(held, 0);
}

int64_t Governor::ResidentBytes() const {
  const MemoryLedger::Snapshot now = model_->device().ledger().Read();
  // Caches and recordings grow while the server runs; everything else that is resident was there
  // at the start.
  int64_t resident = idle_.total.live_bytes;
  for (const MemoryOwner owner : {MemoryOwner::kCache, MemoryOwner::kRecordings}) {
    resident += Of(now, owner).live_bytes - Of(idle_, owner).live_bytes;
  }
  return resident;
}

int64_t Governor::ExpectedBytes(const GovernorPlan& plan, pipeline::Phase phase,
                                int64_t fused_bytes) const {
  int64_t others = 0;
  for (const pipeline::PhaseMemory& memory : plan.memory) {
    if (memory.phase != phase) continue;
    others = std::max(
        others, memory.peak_bytes - memory.by_owner[static_cast<int>(MemoryOwner::kWeightsDit)]);
  }
  return ResidentBytes() + others + fused_bytes;
}

int64_t Governor::FusedRoom(const GovernorPlan& plan, pipeline::Phase phase,
                            int64_t activation_bytes) const {
  if (options_.device_bytes == 0) return std::numeric_limits<int64_t>::max();
  return std::max<int64_t>(
      0, options_.device_bytes - activation_bytes - ExpectedBytes(plan, phase, 0));
}

absl::StatusOr<GovernorPlan> Governor::Project(const pipeline::GenerationRequest& request) {
  LTX_ASSIGN_OR_RETURN(const pipeline::PlanProjection projection, projector_->Project(request));
  GovernorPlan plan;
  plan.request = request;
  plan.parameters = projection.parameters;
  plan.memory = projection.phases;
  plan.new_attentions = projection.new_attentions;
  plan.demand.geometry = {request.width, request.height, request.num_frames};
  plan.demand.resident_bytes = ResidentBytes();
  plan.demand.peak_bytes = projection.peak_bytes;
  for (const pipeline::UnitProjection& unit : projection.units) {
    plan.costs.push_back(CostOf(unit));
    plan.units.push_back(
        {plan.costs.back().kind, std::string(pipeline::PhaseName(unit.unit.phase)), 0});
  }
  const double seconds = static_cast<double>(request.num_frames) / request.frame_rate.value();
  plan.costs.push_back(MuxCost(request.width, request.height, request.num_frames,
                               std::llround(seconds * model_->sample_rate())));
  plan.units.push_back({CostKind::kMux, kMuxPhase, 0});

  absl::MutexLock lock(&mutex_);
  const CostModel::Total total = costs_.PredictAll(plan.costs);
  plan.demand.seconds_known = total.known;
  plan.demand.seconds = total.seconds;
  plan.demand.first_use_seconds = total.first_use_seconds;
  size_t phase = 0;
  for (size_t i = 0; i < plan.units.size(); ++i) {
    PlannedUnit& unit = plan.units[i];
    unit.seconds = total.units[i].seconds + total.units[i].first_use_seconds;
    if (i == 0 || unit.phase != plan.units[i - 1].phase) {
      PhaseDemand demand;
      demand.phase = unit.phase;
      if (phase < projection.phases.size()) {
        demand.peak_bytes = projection.phases[phase++].peak_bytes;
      }
      plan.demand.phases.push_back(demand);
    }
    plan.demand.phases.back().units += 1;
    plan.demand.phases.back().seconds += total.units[i].seconds;
  }
  return plan;
}

Supply Governor::Complete(Supply supply) const {
  supply.device_bytes = options_.device_bytes;
  supply.held_bytes = HeldBytes();
  return supply;
}

absl::StatusOr<GovernorPlan> Governor::WeighAs(const pipeline::GenerationRequest& request,
                                               const Rung* rung, const Lease& lease,
                                               const Supply& supply) {
  LTX_ASSIGN_OR_RETURN(GovernorPlan plan, Project(request));
  plan.budgets = BudgetsOf(rung, lease, options_.device_bytes);
  plan.verdict = Decide(options_.ladder, lease, plan.demand, supply);
  return plan;
}

absl::StatusOr<GovernorPlan> Governor::Fit(const pipeline::GenerationRequest& request,
                                           const Rung* rung, const Lease& lease,
                                           const Supply& supply) {
  LTX_ASSIGN_OR_RETURN(GovernorPlan plan, WeighAs(request, rung, lease, supply));
  const bool too_large =
      plan.verdict.decision == Decision::kRefuse && plan.verdict.reason == kReasonMemoryProjection;
  const bool may_split = plan.parameters.guidance.has_value() &&
                         plan.parameters.guidance->batched &&
                         request.guidance_batching == pipeline::GuidanceBatching::kAuto;
  if (!too_large || !may_split) return plan;
  pipeline::GenerationRequest split = request;
  split.guidance_batching = pipeline::GuidanceBatching::kSequential;
  LTX_ASSIGN_OR_RETURN(GovernorPlan sequential, WeighAs(split, rung, lease, supply));
  if (sequential.verdict.reason == kReasonMemoryProjection) return plan;
  sequential.notes.push_back(
      absl::StrCat("guidance passes follow each other: as one batch they would need ",
                   plan.verdict.projected, ", allowed are ", plan.verdict.allowed));
  return sequential;
}

absl::StatusOr<GovernorPlan> Governor::Weigh(const pipeline::GenerationRequest& request,
                                             const Lease& lease, Supply supply) {
  supply = Complete(supply);
  const Rung* const own =
      options_.ladder.RungFor({request.width, request.height, request.num_frames});
  LTX_ASSIGN_OR_RETURN(GovernorPlan plan, Fit(request, own, lease, supply));
  if (plan.verdict.decision == Decision::kRefuse) {
    plan.verdict.largest_rung = LargestFittingRung(
        options_.ladder, lease, supply, [&](const Rung& rung) -> std::optional<Demand> {
          const auto weighed = WeighRung(rung, request, lease, supply);
          if (!weighed.ok()) return std::nullopt;
          return weighed->demand;
        });
  }
  return plan;
}

absl::StatusOr<GovernorPlan> Governor::WeighRung(const Rung& rung,
                                                 const pipeline::GenerationRequest& request,
                                                 const Lease& lease, const Supply& supply) {
  pipeline::GenerationRequest of_rung = request;
  of_rung.num_frames = rung.geometry.num_frames;
  // Without a picture there is only a length.
  if (request.width > 0 && request.height > 0) {
    of_rung.width = rung.geometry.width;
    of_rung.height = rung.geometry.height;
  }
  return Fit(of_rung, &rung, lease, supply);
}

std::vector<GovernorPlan> Governor::WeighRungs(const pipeline::GenerationRequest& request,
                                               const Lease& lease, const Supply& supply) {
  std::vector<GovernorPlan> plans;
  for (const Rung& rung : options_.ladder.rungs()) {
    absl::StatusOr<GovernorPlan> plan = WeighRung(rung, request, lease, Complete(supply));
    if (plan.ok()) plans.push_back(*std::move(plan));
  }
  return plans;
}

LeaseMonitor Governor::Monitor(const GovernorPlan& plan) {
  return LeaseMonitor(plan.units, plan.demand.seconds_known, plan.budgets.seconds);
}

void Governor::ObserveUnit(const GovernorPlan& plan, size_t index, double seconds,
                           const Preparation& prepared) {
  if (index >= plan.costs.size()) return;
  CostUnit measured = plan.costs[index];
  measured.preparation = prepared;
  absl::MutexLock lock(&mutex_);
  costs_.Observe(measured, seconds);
}

std::string Governor::CostsToJson() const {
  absl::MutexLock lock(&mutex_);
  return costs_.ToJson();
}

absl::Status Governor::CostsFromJson(absl::string_view text) {
  absl::MutexLock lock(&mutex_);
  return costs_.FromJson(text);
}

bool Governor::KnowsCosts(const GovernorPlan& plan) const {
  absl::MutexLock lock(&mutex_);
  return std::all_of(plan.costs.begin(), plan.costs.end(),
                     [this](const CostUnit& cost)
                         ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return costs_.knows(cost.kind); });
}

}  // namespace ltx::server
