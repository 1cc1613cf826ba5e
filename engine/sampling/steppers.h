#ifndef LTX_ENGINE_SAMPLING_STEPPERS_H_
#define LTX_ENGINE_SAMPLING_STEPPERS_H_

#include "absl/status/statusor.h"
#include "engine/sampling/sampler.h"
#include "kernels/device.h"

namespace ltx::sampling {

/// Single steps from noise level `sigma` to `sigma_next` < sigma (reference: diffusion_steps.py).
/// Levels, alpha = 1 - level and the coefficients follow the reference in f32 where it does, since
/// differences of nearly equal levels make its rounding visible. `x` is the latent at sigma and
/// `x0` its prediction, f32 [B, T, C]; so are `noise` and the results. The Euler step itself is
/// Device::EulerStep.

/// y = down x + (1 - down) x0, then keep y + inject noise.
struct AncestralStep {
  float down = 0.0f;
  float keep = 1.0f;
  float inject = 0.0f;

  /// With eta, s_noise of the sampler; sigma_next > 0.
  static AncestralStep Between(const Sampler& sampler, float sigma, float sigma_next);
  /// `noise` is undefined for eta = 0, which injects nothing and keeps all.
  absl::StatusOr<Tensor> Apply(Device& device, const Tensor& x, const Tensor& x0,
                               const Tensor& noise) const;
};

/// alpha_next x0 + down (x - alpha u) / sigma + inject noise, u the prediction for the negative
/// prompt. The level ratios sigma / alpha take the place of the levels in the usual ancestral step.
struct CfgPpStep {
  float sigma = 0.0f;
  float alpha = 0.0f;
  float alpha_next = 0.0f;
  float down = 0.0f;
  float inject = 0.0f;

  static CfgPpStep Between(const Sampler& sampler, float sigma, float sigma_next);
  absl::StatusOr<Tensor> Apply(Device& device, const Tensor& x, const Tensor& x0,
                               const Tensor& unconditioned, const Tensor& noise) const;
};

/// Runge-Kutta weights of res_2s for a step of size h = ln(sigma / sigma_next), half step in the
/// middle: x + h a21 e1, then x + h (b1 e1 + b2 e2) with e_i = x0_i - x (reference:
/// utils/res2s.py).
struct Res2sWeights {
  double a21 = 0.0;
  double b1 = 0.0;
  double b2 = 0.0;

  static Res2sWeights Of(double h);
};

/// Noise mixed into an advanced state: sample * x + advanced * x' + noise * z, where x is the state
/// before the advance and x' the one after it (reference: Res2sDiffusionStep).
struct SdeMix {
  double sample = 0.0;
  double advanced = 1.0;
  double noise = 0.0;

  /// Mixes nothing in for sigma_next = 0 or eta = 0.
  static SdeMix Between(double sigma, double sigma_next, double eta);
};

}  // namespace ltx::sampling

#endif  // LTX_ENGINE_SAMPLING_STEPPERS_H_
