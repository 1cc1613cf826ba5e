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
  const auto shift = static_cast<float>(std::exp(tokens * slope + intercept));
  if (!std::isfinite(shift) || shift == 0.0f) {
    return absl::InvalidArgumentError(absl::StrCat(
        "max_shift ", options.max_shift, " and base_shift ", options.base_shift, " shift ", tokens,
        " tokens by a factor of ", shift, "; a positive f32 number would be legal"));
  }
  // Every operation rounds where the reference's does, fused where PyTorch's linspace is.
  const float step = -1.0f / static_cast<float>(steps);
  const auto shifted = [&](int i) {
    const float time = i < (steps + 1) / 2 ? std::fma(step, static_cast<float>(i), 1.0f)
                                           : std::fma(-step, static_cast<float>(steps - i), 0.0f);
    return 1.0f / (shift + (1.0f / time - 1.0f)) * shift;
  };
  std::vector<float> sigmas;
  for (int i = 0; i < steps; ++i) sigmas.push_back(shifted(i));
  if (options.stretch) {
    const float scale = (1.0f - sigmas.back()) / static_cast<float>(1.0 - options.terminal);
    if (!(scale > 0.0f)) {
      return absl::InvalidArgumentError(
          absl::StrCat("max_shift ", options.max_shift, " leaves no level below 1 of ", steps,
                       " steps to stretch to the terminal one; a smaller one would be legal"));
    }
    for (float& sigma : sigmas) sigma = 1.0f - (1.0f - sigma) / scale;
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
