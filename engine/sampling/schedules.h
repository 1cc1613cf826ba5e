#ifndef LTX_ENGINE_SAMPLING_SCHEDULES_H_
#define LTX_ENGINE_SAMPLING_SCHEDULES_H_

#include <array>

namespace ltx::sampling {

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
