#include "server/governor/lease_monitor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "server/reasons.h"

namespace ltx::server {

LeaseMonitor::LeaseMonitor(std::vector<PlannedUnit> plan, bool seconds_known, Limit<double> allowed)
    : plan_(std::move(plan)), seconds_known_(seconds_known), allowed_(std::move(allowed)) {}

void LeaseMonitor::Finish(double seconds) {
  elapsed_ += seconds;
  if (completed_ >= static_cast<int>(plan_.size())) return;
  const PlannedUnit& unit = plan_[completed_];
  const int kind = static_cast<int>(unit.kind);
  const auto book = [&](Pace* pace) {
    pace->measured += seconds;
    pace->planned += unit.seconds;
  };
  book(&all_[kind]);
  const bool first_of_phase = completed_ == 0 || plan_[completed_ - 1].phase != unit.phase;
  if (!first_of_phase) book(&steady_[kind]);
  ++completed_;
}

int LeaseMonitor::EndPhase() {
  if (completed_ == 0) return 0;
  const std::string& phase = plan_[completed_ - 1].phase;
  const auto rest = plan_.begin() + completed_;
  const auto end =
      std::find_if(rest, plan_.end(), [&](const PlannedUnit& unit) { return unit.phase != phase; });
  const auto count = static_cast<int>(end - rest);
  plan_.erase(rest, end);
  return count;
}

double LeaseMonitor::RatioOf(CostKind kind) const {
  const Pace& steady = steady_[static_cast<int>(kind)];
  const Pace& pace = steady.planned > 0 ? steady : all_[static_cast<int>(kind)];
  return pace.planned > 0 ? pace.measured / pace.planned : 1.0;
}

double LeaseMonitor::remaining() const {
  double seconds = 0;
  if (!seconds_known_) return seconds;
  for (size_t i = completed_; i < plan_.size(); ++i) {
    seconds += plan_[i].seconds * RatioOf(plan_[i].kind);
  }
  return seconds;
}

absl::Status LeaseMonitor::Check() const {
  if (!allowed_.value.has_value() || projected() <= *allowed_.value) return absl::OkStatus();
  Verdict verdict;
  verdict.decision = Decision::kRefuse;
  verdict.reason = std::string(kReasonTimeProjection);
  verdict.projected = absl::StrFormat("%.4g s", projected());
  verdict.allowed = absl::StrFormat("%.4g s", *allowed_.value);
  verdict.message = absl::StrFormat(
      "stopped after %d of %d units: the job would take %s; %s allows %s", completed_, plan_.size(),
      verdict.projected, allowed_.source, verdict.allowed);
  verdict.arithmetic = absl::StrFormat("time: %.4g s so far + %.4g s for the rest = %.4g s",
                                       elapsed_, remaining(), projected());
  return ToStatus(verdict);
}

}  // namespace ltx::server
