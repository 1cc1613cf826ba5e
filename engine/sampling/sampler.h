#ifndef LTX_ENGINE_SAMPLING_SAMPLER_H_
#define LTX_ENGINE_SAMPLING_SAMPLER_H_

#include <cstdint>
#include <string>

namespace ltx::sampling {

/// How the latents of a stage advance from one noise level to the next, and with which options. The
/// defaults are the reference's.
struct Sampler {
  enum class Kind : uint8_t {
    /// Deterministic first-order step along the velocity.
    kEuler,
    /// Euler to a lower noise level, then noise back up to the next one, preserving variance under
    /// alpha = 1 - sigma (reference: diffusion_steps.py:EulerAncestralDiffusionStep).
    kEulerAncestral,
    /// Ancestral, with the direction taken from the prediction for the negative prompt (reference:
    /// EulerCfgPpDiffusionStep; arXiv 2406.08070).
    kEulerCfgPp,
    /// Euler along a velocity extrapolated from the last two (reference:
    /// gradient_estimating_euler_denoising_loop; openreview o2ND9v0CeK).
    kGradientEstimating,
    /// Second-order exponential integrator with noise at the half step and at the step (reference:
    /// res2s_audio_video_denoising_loop). Two evaluations a step, and a last one for schedules that
    /// end at 0.
    kRes2s,
  };
  Kind kind = Kind::kEuler;
  /// How much noise a step injects, 0 none and 1 all that the level allows. Of res_2s the whole
  /// steps alone; its half steps always take 0.5.
  float eta = 1.0f;
  /// Ancestral and CFG++: factor on the injected noise.
  float s_noise = 1.0f;
  /// Gradient estimation: weight of the velocity's change.
  float gamma = 2.0f;
  /// res_2s: take the state from which both half steps start as the fixed point that the noised
  /// half step implies, where steps are small.
  bool refine_anchor = true;
  /// res_2s: mix noise in at the same level for all tokens, then pull kept tokens back. Otherwise
  /// each token has its own level, mask * sigma, and a single kept token stops all noise.
  bool uniform_noise = true;

  /// res_2s as the HQ recipe runs it.
  static Sampler Res2s() {
    Sampler sampler;
    sampler.kind = Kind::kRes2s;
    sampler.eta = 0.5f;
    return sampler;
  }

  /// Name and options, e.g. "euler" or "euler_ancestral eta=1 s_noise=1".
  std::string ToString() const;
};

}  // namespace ltx::sampling

#endif  // LTX_ENGINE_SAMPLING_SAMPLER_H_
