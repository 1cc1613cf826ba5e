#include "client/plan_table.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/progress_line.h"

namespace ltx::client {
namespace {

std::string SecondsText(double seconds) { return absl::StrFormat("%.2f s", seconds); }
std::string BytesText(int64_t bytes) {
  return absl::StrFormat("%.1f MB", static_cast<double>(bytes) * 1e-6);
}

std::string TimeText(const v1::PlanResponse& plan) {
  return plan.seconds_known() ? SecondsText(plan.projected_seconds()) : "not known";
}

/// "600.00 s (rung 768x448x25)", or "no limit".
std::string AllowedText(bool limited, const std::string& amount, const std::string& source) {
  return limited ? absl::StrCat(amount, " (", source, ")") : "no limit";
}

const char* DecisionText(v1::PlanResponse::Decision decision) {
  switch (decision) {
    case v1::PlanResponse::DECISION_ADMIT:
      return "admit";
    case v1::PlanResponse::DECISION_WAIT:
      return "wait";
    case v1::PlanResponse::DECISION_REFUSE:
      return "refuse";
    default:
      return "?";
  }
}

}  // namespace

std::string PlanText(const v1::PlanResponse& plan) {
  const v1::EffectiveParameters& parameters = plan.parameters();
  std::string text = absl::StrCat("verdict  ", DecisionText(plan.decision()));
  if (!plan.reason().empty()) absl::StrAppend(&text, " [", plan.reason(), "]");
  absl::StrAppend(&text, ": ", plan.message(), "\n");
  for (const std::string& warning : plan.warnings()) {
    absl::StrAppend(&text, "warning  ", warning, "\n");
  }
  absl::StrAppendFormat(&text, "clip     %dx%d, %d frames, recipe %s, rung %s\n",
                        parameters.width(), parameters.height(), parameters.num_frames(),
                        parameters.recipe(),
                        plan.has_rung() ? plan.rung().name() : std::string("none"));
  absl::StrAppendFormat(&text, "\n%-14s %6s %12s %14s\n", "phase", "units", "time", "memory");
  for (const v1::PhaseProjection& phase : plan.phases()) {
    const bool on_device = phase.phase() != v1::PHASE_MUX;
    absl::StrAppendFormat(&text, "%-14s %6d %12s %14s\n", PhaseText(phase.phase()), phase.units(),
                          plan.seconds_known() ? SecondsText(phase.seconds()) : "-",
                          on_device ? BytesText(phase.peak_bytes()) : "-");
  }
  if (plan.first_use_seconds() > 0) {
    absl::StrAppendFormat(&text, "%-14s %6s %12s\n", "first use", "",
                          SecondsText(plan.first_use_seconds()));
  }
  absl::StrAppendFormat(&text, "%-14s %6s %12s %14s\n", "resident", "", "",
                        BytesText(plan.resident_bytes()));
  absl::StrAppendFormat(&text, "%-14s %6s %12s %14s\n\n", "in all", "", TimeText(plan),
                        BytesText(plan.projected_bytes()));
  absl::StrAppend(&text, "allowed  time ",
                  AllowedText(plan.allowed_seconds() > 0, SecondsText(plan.allowed_seconds()),
                              plan.allowed_seconds_source()),
                  ", memory ",
                  AllowedText(plan.allowed_bytes() > 0, BytesText(plan.allowed_bytes()),
                              plan.allowed_bytes_source()),
                  "\n");
  if (plan.jobs_ahead() > 0) {
    absl::StrAppendFormat(&text, "queue    %d jobs ahead, %s\n", plan.jobs_ahead(),
                          SecondsText(plan.wait_seconds()));
  }
  if (!plan.largest_fitting_rung().empty()) {
    absl::StrAppend(&text, "fits     rung ", plan.largest_fitting_rung(), "\n");
  }
  return text;
}

std::string RungsText(const v1::ListRungsResponse& rungs) {
  std::string text = absl::StrFormat("%-20s %-8s %12s %24s %14s %28s\n", "rung", "verdict", "time",
                                     "allowed", "memory", "allowed");
  for (const v1::PlanResponse& plan : rungs.plans()) {
    absl::StrAppendFormat(
        &text, "%-20s %-8s %12s %24s %14s %28s\n", plan.rung().name(),
        DecisionText(plan.decision()), TimeText(plan),
        AllowedText(plan.allowed_seconds() > 0, SecondsText(plan.allowed_seconds()),
                    plan.allowed_seconds_source()),
        BytesText(plan.projected_bytes()),
        AllowedText(plan.allowed_bytes() > 0, BytesText(plan.allowed_bytes()),
                    plan.allowed_bytes_source()));
  }
  return text;
}

}  // namespace ltx::client
