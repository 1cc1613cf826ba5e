#ifndef LTX_SERVER_GOVERNOR_VERDICT_H_
#define LTX_SERVER_GOVERNOR_VERDICT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/governor/rung_ladder.h"

namespace ltx::server {

/// What a request allows itself to cost. Its fields lower the budgets of its rung, never raise
/// them.
struct Lease {
  /// Seconds of device time; absent: the rung's.
  std::optional<double> max_seconds;
  /// Peak bytes of device memory; absent: the rung's.
  std::optional<int64_t> max_bytes;
  /// Seconds from now until the caller hangs up, waiting included; absent: never.
  std::optional<double> deadline_seconds;
};

/// One line of a projection: `units` pieces of work of a phase.
struct PhaseDemand {
  std::string phase;
  int units = 0;
  double seconds = 0;
  /// Beyond what is resident.
  int64_t peak_bytes = 0;
};

/// What a request is projected to need.
struct Demand {
  Geometry geometry;
  std::vector<PhaseDemand> phases;
  /// False: nothing has been measured yet, seconds say nothing.
  bool seconds_known = false;
  /// Of all phases, and what is paid once per shape and process.
  double seconds = 0;
  double first_use_seconds = 0;
  /// Weights and caches, and the peak over them.
  int64_t resident_bytes = 0;
  int64_t peak_bytes = 0;

  double total_seconds() const { return seconds + first_use_seconds; }
  int64_t total_bytes() const { return resident_bytes + peak_bytes; }
};

/// What the server has to offer at the moment.
struct Supply {
  /// Bytes that this process may use on the device in all; 0: not known, no limit.
  int64_t device_bytes = 0;
  /// Bytes that jobs which have started hold beyond what is resident.
  int64_t held_bytes = 0;
  /// Projected seconds until the jobs before this one are done.
  double seconds_ahead = 0;
  int jobs_ahead = 0;
};

/// A limit and who set it.
template <typename T>
struct Limit {
  /// Nothing: no limit.
  std::optional<T> value;
  /// "rung 768x448x25", "the request's max_seconds", "the device".
  std::string source;
};
struct Budgets {
  Limit<double> seconds;
  Limit<int64_t> bytes;
};
/// The smallest of what rung, request and device allow. `rung` may be null.
Budgets BudgetsOf(const Rung* rung, const Lease& lease, int64_t device_bytes);

enum class Decision : uint8_t {
  /// It may start now.
  kAdmit,
  /// It fits, but later.
  kWait,
  /// It never fits, or not in the time it has.
  kRefuse,
};
absl::string_view DecisionName(Decision decision);

struct Verdict {
  Decision decision = Decision::kAdmit;
  /// Of a refusal or a wait: one of server/reasons.h, else empty.
  std::string reason;
  /// One sentence with the numbers.
  std::string message;
  /// What decided: projected against allowed, with their unit ("10801.5 s").
  std::string projected;
  std::string allowed;
  /// kWait: when it is thought to start.
  double wait_seconds = 0;
  /// The sums behind the numbers, one line for time and one for memory; of a refusal the one that
  /// is too large.
  std::string arithmetic;
  /// Name of the rung the request belongs to; empty: none contains it.
  std::string rung;
  /// kRefuse: the largest rung that would fit, empty if none does or nobody asked.
  std::string largest_rung;
};

/// Pure arithmetic: the same arguments give the same verdict.
Verdict Decide(const RungLadder& ladder, const Lease& lease, const Demand& demand,
               const Supply& supply);

/// The part of Decide() that looks at the clock: `seconds` of work behind the queue, against a
/// deadline in `deadline_seconds`.
Verdict DecideDeadline(double seconds, double deadline_seconds, const Supply& supply);

/// Name of the largest rung whose own geometry would not be refused; empty if none. `project` gives
/// the demand of a clip of a rung's size, or nothing where the request makes no sense there.
std::string LargestFittingRung(const RungLadder& ladder, const Lease& lease, const Supply& supply,
                               const std::function<std::optional<Demand>(const Rung&)>& project);

/// The refusal as a status: RESOURCE_EXHAUSTED, DEADLINE_EXCEEDED or INVALID_ARGUMENT (no rung),
/// with ErrorDetail and google.rpc.QuotaFailure. OK for kAdmit and kWait.
absl::Status ToStatus(const Verdict& verdict);

/// "999 bytes", "12.3 KB", "12.3 MB" or "12.34 GB".
std::string HumanBytes(int64_t bytes);

}  // namespace ltx::server

#endif  // LTX_SERVER_GOVERNOR_VERDICT_H_
