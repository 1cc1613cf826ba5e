#include "server/governor/verdict.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/pipeline/error_details.h"
#include "server/reasons.h"
#include "server/rpc_details.h"

namespace ltx::server {
namespace {

std::string HumanSeconds(double seconds) { return absl::StrFormat("%.4g s", seconds); }

template <typename T>
void Lower(const T& value, const std::string& source, Limit<T>* limit) {
  if (limit->value.has_value() && *limit->value <= value) return;
  limit->value = value;
  limit->source = source;
}

Verdict Refuse(absl::string_view reason, std::string projected, std::string allowed,
               const std::string& message, Verdict verdict) {
  verdict.decision = Decision::kRefuse;
  verdict.reason = std::string(reason);
  verdict.projected = std::move(projected);
  verdict.allowed = std::move(allowed);
  verdict.message = message;
  return verdict;
}

/// The sums of a demand, for people.
std::string TimeArithmetic(const Demand& demand) {
  if (!demand.seconds_known) return "time: not known, nothing has been measured yet";
  std::string sum = "time:";
  absl::string_view separator = " ";
  for (const PhaseDemand& phase : demand.phases) {
    absl::StrAppend(&sum, separator, phase.phase, " ", phase.units, " x ",
                    HumanSeconds(phase.units > 0 ? phase.seconds / phase.units : 0));
    separator = " + ";
  }
  if (demand.first_use_seconds > 0) {
    absl::StrAppend(&sum, separator, "first use ", HumanSeconds(demand.first_use_seconds));
  }
  return absl::StrCat(sum, " = ", HumanSeconds(demand.total_seconds()));
}

std::string MemoryArithmetic(const Demand& demand) {
  const auto highest = std::max_element(
      demand.phases.begin(), demand.phases.end(),
      [](const PhaseDemand& a, const PhaseDemand& b) { return a.peak_bytes < b.peak_bytes; });
  return absl::StrCat("memory: resident ", HumanBytes(demand.resident_bytes), " + largest phase ",
                      highest == demand.phases.end() ? "none" : highest->phase, " ",
                      HumanBytes(demand.peak_bytes), " = ", HumanBytes(demand.total_bytes()));
}

}  // namespace

absl::string_view DecisionName(Decision decision) {
  switch (decision) {
    case Decision::kAdmit:
      return "admit";
    case Decision::kWait:
      return "wait";
    case Decision::kRefuse:
      return "refuse";
  }
  return "?";
}

std::string HumanBytes(int64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes >= 1'000'000'000) return absl::StrFormat("%.2f GB", value * 1e-9);
  if (bytes >= 1'000'000) return absl::StrFormat("%.1f MB", value * 1e-6);
  if (bytes >= 1'000) return absl::StrFormat("%.1f KB", value * 1e-3);
  return absl::StrCat(bytes, " bytes");
}

Budgets BudgetsOf(const Rung* rung, const Lease& lease, int64_t device_bytes) {
  Budgets budgets;
  if (device_bytes > 0) Lower(device_bytes, "the device", &budgets.bytes);
  if (rung != nullptr) {
    const std::string source = absl::StrCat("rung ", rung->name);
    if (rung->max_bytes > 0) Lower(rung->max_bytes, source, &budgets.bytes);
    if (rung->max_seconds > 0) Lower(rung->max_seconds, source, &budgets.seconds);
  }
  if (lease.max_bytes.has_value()) {
    Lower(*lease.max_bytes, "the request's max_bytes", &budgets.bytes);
  }
  if (lease.max_seconds.has_value()) {
    Lower(*lease.max_seconds, "the request's max_seconds", &budgets.seconds);
  }
  return budgets;
}

Verdict Decide(const RungLadder& ladder, const Lease& lease, const Demand& demand,
               const Supply& supply) {
  const Rung* const rung = ladder.RungFor(demand.geometry);
  Verdict verdict;
  verdict.arithmetic = absl::StrCat(TimeArithmetic(demand), "\n", MemoryArithmetic(demand));
  if (rung == nullptr) {
    verdict.arithmetic.clear();
    const std::string largest = ladder.rungs().empty() ? "none" : ladder.rungs().back().name;
    return Refuse(kReasonNoRung, demand.geometry.ToString(), largest,
                  absl::StrCat(demand.geometry.ToString(),
                               " belongs to no rung of this server; the largest is ", largest),
                  std::move(verdict));
  }
  verdict.rung = rung->name;
  const Budgets budgets = BudgetsOf(rung, lease, supply.device_bytes);
  // A refusal shows the sum that is too large, not the other one.
  if (budgets.bytes.value.has_value() && demand.total_bytes() > *budgets.bytes.value) {
    verdict.arithmetic = MemoryArithmetic(demand);
    return Refuse(kReasonMemoryProjection, HumanBytes(demand.total_bytes()),
                  HumanBytes(*budgets.bytes.value),
                  absl::StrCat(demand.geometry.ToString(), " needs ",
                               HumanBytes(demand.total_bytes()), " of device memory; ",
                               budgets.bytes.source, " allows ", HumanBytes(*budgets.bytes.value)),
                  std::move(verdict));
  }
  const double seconds = demand.total_seconds();
  if (demand.seconds_known && budgets.seconds.value.has_value() &&
      seconds > *budgets.seconds.value) {
    verdict.arithmetic = TimeArithmetic(demand);
    return Refuse(
        kReasonTimeProjection, HumanSeconds(seconds), HumanSeconds(*budgets.seconds.value),
        absl::StrCat(demand.geometry.ToString(), " would take ", HumanSeconds(seconds), "; ",
                     budgets.seconds.source, " allows ", HumanSeconds(*budgets.seconds.value)),
        std::move(verdict));
  }
  if (demand.seconds_known && lease.deadline_seconds.has_value()) {
    const Verdict in_time = DecideDeadline(seconds, *lease.deadline_seconds, supply);
    if (in_time.decision == Decision::kRefuse) {
      verdict.arithmetic = TimeArithmetic(demand);
      return Refuse(in_time.reason, in_time.projected, in_time.allowed, in_time.message,
                    std::move(verdict));
    }
  }
  verdict.wait_seconds = supply.seconds_ahead;
  if (budgets.bytes.value.has_value() &&
      demand.total_bytes() + supply.held_bytes > *budgets.bytes.value) {
    verdict.decision = Decision::kWait;
    verdict.reason = std::string(kReasonMemoryHeld);
    verdict.message = absl::StrCat("fits once the ", HumanBytes(supply.held_bytes),
                                   " that running jobs hold are free");
  } else if (supply.jobs_ahead > 0) {
    verdict.decision = Decision::kWait;
    verdict.message = absl::StrCat("fits; ", supply.jobs_ahead, " jobs come first");
  } else {
    verdict.message = "fits";
  }
  return verdict;
}

Verdict DecideDeadline(double seconds, double deadline_seconds, const Supply& supply) {
  const double needed = supply.seconds_ahead + seconds;
  if (needed <= deadline_seconds) return {};
  return Refuse(
      kReasonDeadlineProjection, HumanSeconds(needed), HumanSeconds(deadline_seconds),
      absl::StrCat("done in ", HumanSeconds(needed), " (", HumanSeconds(supply.seconds_ahead),
                   " of waiting behind ", supply.jobs_ahead, " jobs, ", HumanSeconds(seconds),
                   " of work); the deadline is in ", HumanSeconds(std::max(0.0, deadline_seconds))),
      {});
}

std::string LargestFittingRung(const RungLadder& ladder, const Lease& lease, const Supply& supply,
                               const std::function<std::optional<Demand>(const Rung&)>& project) {
  for (auto rung = ladder.rungs().rbegin(); rung != ladder.rungs().rend(); ++rung) {
    const std::optional<Demand> demand = project(*rung);
    if (demand.has_value() &&
        Decide(ladder, lease, *demand, supply).decision != Decision::kRefuse) {
      return rung->name;
    }
  }
  return "";
}

absl::Status ToStatus(const Verdict& verdict) {
  if (verdict.decision != Decision::kRefuse) return absl::OkStatus();
  absl::StatusCode code = absl::StatusCode::kResourceExhausted;
  std::string subject = "device:0/memory";
  if (verdict.reason == kReasonTimeProjection) subject = "device:0/time";
  if (verdict.reason == kReasonDeadlineProjection) code = absl::StatusCode::kDeadlineExceeded;
  if (verdict.reason == kReasonNoRung) code = absl::StatusCode::kInvalidArgument;
  std::string message = verdict.message;
  if (!verdict.largest_rung.empty()) {
    absl::StrAppend(&message, "; the largest rung that fits is ", verdict.largest_rung);
  }
  if (!verdict.arithmetic.empty()) absl::StrAppend(&message, ". ", verdict.arithmetic);
  absl::Status status(code, message);
  status = pipeline::WithDetail(
      std::move(status), {verdict.reason, "", verdict.projected,
                          verdict.largest_rung.empty()
                              ? verdict.allowed
                              : absl::StrCat(verdict.allowed, "; rung ", verdict.largest_rung)});
  if (code != absl::StatusCode::kResourceExhausted) return status;
  AttachQuotaFailure(subject,
                     absl::StrCat("projected ", verdict.projected, ", allowed ", verdict.allowed),
                     &status);
  return status;
}

}  // namespace ltx::server
