#include "server/plan_mapping.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "engine/pipeline/error_details.h"
#include "kernels/memory_ledger.h"
#include "server/governor/plan_cost.h"
#include "server/reasons.h"
#include "server/request_mapping.h"

namespace ltx::server {
namespace {

absl::Status BadLease(absl::string_view field, const std::string& value) {
  return pipeline::WithDetail(
      absl::InvalidArgumentError(absl::StrCat(field, " ", value, " is not a positive number")),
      {std::string(kReasonLease), std::string(field), value, "a positive number, or not set"});
}

v1::Rung RungToWire(const Rung& rung) {
  v1::Rung wire;
  wire.set_name(rung.name);
  wire.set_width(static_cast<int32_t>(rung.geometry.width));
  wire.set_height(static_cast<int32_t>(rung.geometry.height));
  wire.set_num_frames(static_cast<int32_t>(rung.geometry.num_frames));
  wire.set_max_seconds(rung.max_seconds);
  wire.set_max_bytes(rung.max_bytes);
  return wire;
}

v1::PlanResponse::Decision DecisionToWire(Decision decision) {
  switch (decision) {
    case Decision::kAdmit:
      return v1::PlanResponse::DECISION_ADMIT;
    case Decision::kWait:
      return v1::PlanResponse::DECISION_WAIT;
    case Decision::kRefuse:
      return v1::PlanResponse::DECISION_REFUSE;
  }
  return v1::PlanResponse::DECISION_UNSPECIFIED;
}

void AddPhases(const GovernorPlan& plan, v1::PlanResponse* wire) {
  for (size_t i = 0; i < plan.demand.phases.size(); ++i) {
    const PhaseDemand& demand = plan.demand.phases[i];
    v1::PhaseProjection* const phase = wire->add_phases();
    phase->set_phase(v1::PHASE_MUX);
    phase->set_units(demand.units);
    phase->set_seconds(demand.seconds);
    phase->set_peak_bytes(demand.peak_bytes);
    if (i >= plan.memory.size()) continue;
    phase->set_phase(ToWire(plan.memory[i].phase));
    for (int owner = 0; owner < kMemoryOwnerCount; ++owner) {
      if (plan.memory[i].by_owner[owner] == 0) continue;
      v1::MemoryAmounts* const amounts = phase->add_memory();
      amounts->set_owner(std::string(MemoryOwnerName(static_cast<MemoryOwner>(owner))));
      amounts->set_peak_bytes(plan.memory[i].by_owner[owner]);
    }
  }
}

}  // namespace

absl::StatusOr<Lease> LeaseFromWire(const v1::GenerateVideoRequest& request, absl::Time deadline,
                                    absl::Time now) {
  Lease lease;
  if (request.has_max_seconds()) {
    if (!(request.max_seconds() > 0)) {
      return BadLease("max_seconds", absl::StrCat(request.max_seconds()));
    }
    lease.max_seconds = request.max_seconds();
  }
  if (request.has_max_bytes()) {
    if (request.max_bytes() <= 0) return BadLease("max_bytes", absl::StrCat(request.max_bytes()));
    lease.max_bytes = request.max_bytes();
  }
  if (deadline != absl::InfiniteFuture()) {
    lease.deadline_seconds = absl::ToDoubleSeconds(deadline - now);
  }
  return lease;
}

v1::PlanResponse ToWire(const GovernorPlan& plan, const RungLadder& ladder, const Supply& supply) {
  v1::PlanResponse wire;
  wire.set_decision(DecisionToWire(plan.verdict.decision));
  wire.set_reason(plan.verdict.reason);
  wire.set_message(plan.verdict.message);
  *wire.mutable_parameters() = ToWire(plan.parameters);
  AddPhases(plan, &wire);
  wire.set_seconds_known(plan.demand.seconds_known);
  wire.set_projected_seconds(plan.demand.total_seconds());
  wire.set_first_use_seconds(plan.demand.first_use_seconds);
  wire.set_allowed_seconds(plan.budgets.seconds.value.value_or(0));
  wire.set_allowed_seconds_source(plan.budgets.seconds.source);
  wire.set_projected_bytes(plan.demand.total_bytes());
  wire.set_resident_bytes(plan.demand.resident_bytes);
  wire.set_allowed_bytes(plan.budgets.bytes.value.value_or(0));
  wire.set_allowed_bytes_source(plan.budgets.bytes.source);
  if (const Rung* const rung = ladder.RungFor(plan.demand.geometry); rung != nullptr) {
    *wire.mutable_rung() = RungToWire(*rung);
  }
  wire.set_largest_fitting_rung(plan.verdict.largest_rung);
  wire.set_jobs_ahead(supply.jobs_ahead);
  wire.set_wait_seconds(plan.verdict.wait_seconds);
  wire.set_arithmetic(plan.verdict.arithmetic);
  for (const std::string& warning : plan.parameters.warnings) wire.add_warnings(warning);
  for (const std::string& note : plan.notes) wire.add_warnings(note);
  return wire;
}

}  // namespace ltx::server
