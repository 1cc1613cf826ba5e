#include "engine/sampling/schedules.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/sampling/incomplete_beta.h"
#include "kernels/status_macros.h"

namespace ltx::sampling {
namespace {

constexpr int64_t kBaseShiftTokens = 1024;
constexpr int64_t kMaxShiftTokens = 4096;
constexpr int64_t kTokenLimit = 32768;

/// Shift and length of the beta schedule's table (reference: BetaScheduler).
constexpr double kBetaShift = 2.37;
constexpr int kBetaLevels = 10000;

absl::Status CheckSteps(int steps, int fewest) {
  if (steps >= fewest && steps <= kMaxScheduleSteps) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("steps is ", steps, "; ", fewest, " to ", kMaxScheduleSteps, " would be legal"));
}

absl::Status CheckOpenInterval(absl::string_view name, double value, double low, double high) {
  if (value > low && value < high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is ", value, "; above ", low, " and below ", high, " would be legal"));
}

}  // namespace

absl::StatusOr<std::vector<float>> Ltx2Schedule(int steps, const Ltx2ScheduleOptions& options) {
  LTX_RETURN_IF_ERROR(CheckSteps(steps, options.stretch ? 2 : 1));
  if (options.tokens < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("tokens is ", options.tokens, "; 1 or more would be legal"));
  }
  if (options.stretch) {
    LTX_RETURN_IF_ERROR(CheckOpenInterval("terminal", options.terminal, 0.0, 1.0));
  }
  const double slope =
      (options.max_shift - options.base_shift) / (kMaxShiftTokens - kBaseShiftTokens);
  const double intercept = options.base_shift - slope * kBaseShiftTokens;
  const auto tokens = static_cast<double>(std::min(options.tokens, kTokenLimit));
  const double shift = tokens * slope + intercept;
  if (!std::isfinite(shift)) {
    return absl::InvalidArgumentError(absl::StrCat("max_shift ", options.max_shift,
                                                   " and base_shift ", options.base_shift,
                                                   " must be finite"));
  }
  // s = e^shift / (e^shift + q) with q = 1/t - 1 at time t = 1 - i/n. Its complement 1 - s is small
  // and the stretch divides by it, hence it is what is computed: z = q e^-shift / (1 + q e^-shift).
  const auto complement = [&](int i) {
    const double q = static_cast<double>(i) / (steps - i) * std::exp(-shift);
    return q / (1.0 + q);
  };
  const double stretch = options.stretch ? (1.0 - options.terminal) / complement(steps - 1) : 1.0;
  std::vector<float> sigmas;
  for (int i = 0; i < steps; ++i) {
    sigmas.push_back(static_cast<float>(1.0 - complement(i) * stretch));
  }
  sigmas.push_back(0.0f);
  return sigmas;
}

absl::StatusOr<std::vector<float>> LinearQuadraticSchedule(
    int steps, const LinearQuadraticScheduleOptions& options) {
  LTX_RETURN_IF_ERROR(CheckSteps(steps, 1));
  LTX_RETURN_IF_ERROR(CheckOpenInterval("threshold_noise", options.threshold_noise, 0.0, 1.0));
  if (steps == 1) return std::vector<float>{1.0f, 0.0f};
  const int linear_steps = options.linear_steps.value_or(steps / 2);
  if (linear_steps < 1 || linear_steps > steps) {
    return absl::InvalidArgumentError(
        absl::StrCat("linear_steps is ", linear_steps, "; 1 to ", steps, " would be legal"));
  }
  const double threshold = options.threshold_noise;
  const double linear = linear_steps;
  const double quadratic = steps - linear_steps;
  const double rise = linear - threshold * steps;
  std::vector<float> sigmas;
  for (int i = 0; i < steps; ++i) {
    double y = i * threshold / linear;
    if (i >= linear_steps) {
      const double a = rise / (linear * quadratic * quadratic);
      const double b = threshold / linear - 2 * rise / (quadratic * quadratic);
      y = a * i * i + b * i + a * linear * linear;
    }
    sigmas.push_back(static_cast<float>(1.0 - y));
  }
  sigmas.push_back(0.0f);
  return sigmas;
}

absl::StatusOr<std::vector<float>> BetaSchedule(int steps, const BetaScheduleOptions& options) {
  LTX_RETURN_IF_ERROR(CheckSteps(steps, 1));
  // Beyond these the distribution is a point or a coin toss, and its quantiles are no schedule.
  LTX_RETURN_IF_ERROR(CheckOpenInterval("alpha", options.alpha, 0.01, 1000.0));
  LTX_RETURN_IF_ERROR(CheckOpenInterval("beta", options.beta, 0.01, 1000.0));
  std::vector<float> sigmas;
  int last_index = kBetaLevels;
  for (int i = 0; i < steps; ++i) {
    const double quantile = InverseRegularizedIncompleteBeta(1.0 - static_cast<double>(i) / steps,
                                                             options.alpha, options.beta);
    const int index = static_cast<int>(std::nearbyint(quantile * (kBetaLevels - 1)));
    // Quantiles fall with i, so equal entries are neighbours.
    if (index == last_index) continue;
    last_index = index;
    const double time = static_cast<double>(index + 1) / kBetaLevels;
    const double shifted = std::exp(kBetaShift);
    sigmas.push_back(static_cast<float>(shifted / (shifted + (1.0 / time - 1.0))));
  }
  sigmas.push_back(0.0f);
  return sigmas;
}

}  // namespace ltx::sampling
