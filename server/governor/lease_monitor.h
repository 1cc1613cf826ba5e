#ifndef LTX_SERVER_GOVERNOR_LEASE_MONITOR_H_
#define LTX_SERVER_GOVERNOR_LEASE_MONITOR_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/governor/cost_unit.h"
#include "server/governor/verdict.h"

namespace ltx::server {

/// One unit of a plan with its projected seconds, first use included.
struct PlannedUnit {
  CostKind kind = CostKind::kText;
  std::string phase;
  double seconds = 0;
};

/// Watches a running job: after every unit it projects the job's end anew, from what the units have
/// taken so far, and says stop as soon as the job would outrun its lease. Pure arithmetic.
///
/// What is left of a kind is projected as planned, times how much longer (or shorter) than planned
/// this job's own units of the kind took; kinds that have not run yet, as planned. The first unit
/// of a phase counts for the total, but not for that ratio, where others follow: it holds
/// preparation.
class LeaseMonitor {
 public:
  /// `allowed` as BudgetsOf gives it. A plan whose seconds are not known is only held to what has
  /// passed.
  LeaseMonitor(std::vector<PlannedUnit> plan, bool seconds_known, Limit<double> allowed);

  /// Unit `completed()` of the plan took so long.
  void Finish(double seconds);
  /// The phase of the unit finished last is over, whatever was planned for it. Returns how many
  /// planned units that leaves out.
  int EndPhase();

  int completed() const { return completed_; }
  /// Seconds spent in units.
  double elapsed() const { return elapsed_; }
  /// Projected seconds of the rest.
  double remaining() const;
  double projected() const { return elapsed_ + remaining(); }

  /// OK, or the refusal (RESOURCE_EXHAUSTED, TIME_PROJECTION_EXCEEDS_LEASE) with the arithmetic.
  absl::Status Check() const;

 private:
  /// Per kind: measured and planned seconds of the units that count for the ratio.
  struct Pace {
    double measured = 0;
    double planned = 0;
  };
  double RatioOf(CostKind kind) const;

  std::vector<PlannedUnit> plan_;
  const bool seconds_known_;
  const Limit<double> allowed_;
  int completed_ = 0;
  double elapsed_ = 0;
  std::array<Pace, kCostKindCount> steady_{};
  std::array<Pace, kCostKindCount> all_{};
};

}  // namespace ltx::server

#endif  // LTX_SERVER_GOVERNOR_LEASE_MONITOR_H_
