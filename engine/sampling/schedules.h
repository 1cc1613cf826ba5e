#ifndef LTX_ENGINE_SAMPLING_SCHEDULES_H_
#define LTX_ENGINE_SAMPLING_SCHEDULES_H_

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"

namespace ltx::sampling {

/// Noise levels of a denoising stage: n steps are n + 1 values that fall from about 1 to 0, both
/// ends included (reference: components/schedulers.py, utils/constants.py).
///
/// The `ltx2` levels are those of the reference to the bit, evaluated in f32 as there: a model sees
/// a level times 1000 in the phase of its timestep embedding, and guidance multiplies what the last
/// bit does. The other formulas are evaluated in double and rounded once. INVALID_ARGUMENT names
/// the parameter and what would be legal.

/// The token count that the reference's stages schedule for whatever their size is; only the HQ
/// recipe counts the tokens of its latent.
inline constexpr int64_t kDefaultScheduleTokens = 4096;

/// The most steps any schedule has; the beta schedule's table has no more distinct levels.
inline constexpr int kMaxScheduleSteps = 10000;

struct Ltx2ScheduleOptions {
  /// Frames x rows x columns of the latent. Counts above 32768 are taken as 32768: there the levels
  /// of the first steps come within a few f32 roundings of 1, and somewhat above the reference
  /// divides 0 by 0.
  int64_t tokens = kDefaultScheduleTokens;
  /// The shift at 4096 and at 1024 tokens; linear between and beyond.
  double max_shift = 2.05;
  double base_shift = 0.95;
  /// Stretches the levels so that the last one above 0 becomes `terminal`.
  bool stretch = true;
  double terminal = 0.1;
};

/// Equal steps, shifted towards high noise by a token-dependent amount, then stretched (reference:
/// LTX2Scheduler). The default of every stage that is not distilled. Needs at least 2 steps with
/// the stretch (a single step has no second level to stretch to), else 1.
absl::StatusOr<std::vector<float>> Ltx2Schedule(int steps, const Ltx2ScheduleOptions& options = {});

struct LinearQuadraticScheduleOptions {
  /// How far the linear part falls.
  double threshold_noise = 0.025;
  /// Steps of the linear part; absent: half of them, rounded down.
  std::optional<int> linear_steps;
};

/// Small equal steps, then steps that grow quadratically (reference: LinearQuadraticScheduler).
absl::StatusOr<std::vector<float>> LinearQuadraticSchedule(
    int steps, const LinearQuadraticScheduleOptions& options = {});

struct BetaScheduleOptions {
  double alpha = 0.6;
  double beta = 0.6;
};

/// Levels at the quantiles of a beta distribution, out of a table of 10000 shifted ones (reference:
/// BetaScheduler; arXiv 2407.12173). Quantiles that fall on one table entry count once, so the list
/// may be shorter than n + 1.
absl::StatusOr<std::vector<float>> BetaSchedule(int steps, const BetaScheduleOptions& options = {});

/// Fixed noise levels of the distilled models: n steps are n + 1 values and end at 0. They were
/// chosen when the models were distilled, so no formula gives them (reference: utils/constants.py).

/// Stage 1, eight steps.
inline constexpr std::array<float, 9> kDistilledSigmas = {
    1.0f, 0.99375f, 0.9875f, 0.98125f, 0.975f, 0.909375f, 0.725f, 0.421875f, 0.0f};
/// Stage 2, three steps from a partly noised latent.
inline constexpr std::array<float, 4> kDistilledStage2Sigmas = {0.909375f, 0.725f, 0.421875f, 0.0f};
/// Stage 2 when its latent is denoised in tiles on several devices.
inline constexpr std::array<float, 3> kTiledStage2Sigmas = {0.625f, 0.4f, 0.0f};
/// A temporal round of the frame-rate doubling pipeline.
inline constexpr std::array<float, 5> kTemporalRoundSigmas = {0.975f, 0.909375f, 0.725f, 0.421875f,
                                                              0.0f};
/// Stage 2 of the HDR adapter pipeline.
inline constexpr std::array<float, 3> kHdrStage2Sigmas = {0.909375f, 0.725f, 0.0f};

}  // namespace ltx::sampling

#endif  // LTX_ENGINE_SAMPLING_SCHEDULES_H_
