#include "engine/sampling/euler_loops.h"

#include "engine/sampling/steppers.h"
#include "kernels/status_macros.h"

namespace ltx::sampling {

absl::StatusOr<Tensor> EulerLoop::Advance(Modality modality, const Estimates& estimates) {
  LTX_ASSIGN_OR_RETURN(const Tensor x0, Pinned(modality, estimates.denoised[modality]));
  return device().EulerStep(state(modality).latent, x0, sigmas()[completed()],
                            sigmas()[completed() + 1]);
}

absl::StatusOr<Tensor> AncestralLoop::Advance(Modality modality, const Estimates& estimates) {
  const DType dtype = state(modality).latent.dtype();
  const bool cfg_pp = sampler().kind == Sampler::Kind::kEulerCfgPp;
  LTX_ASSIGN_OR_RETURN(const Tensor wide, device().Cast(estimates.denoised[modality], DType::kF32));
  LTX_ASSIGN_OR_RETURN(const Tensor x0, Pinned(modality, wide));
  const float sigma = sigmas()[completed()];
  const float sigma_next = sigmas()[completed() + 1];
  if (sigma_next == 0.0f) return device().Cast(x0, dtype);

  // The ancestral sampler scales the state even if it adds no noise to it.
  const bool draws = sampler().eta > 0.0f && (!cfg_pp || sampler().s_noise > 0.0f);
  Tensor noise;
  if (draws) {
    LTX_ASSIGN_OR_RETURN(const Tensor drawn, DrawNoise(modality, dtype));
    LTX_ASSIGN_OR_RETURN(noise, device().Cast(drawn, DType::kF32));
  }
  LTX_ASSIGN_OR_RETURN(const Tensor x, device().Cast(state(modality).latent, DType::kF32));
  Tensor next;
  if (cfg_pp) {
    LTX_ASSIGN_OR_RETURN(const Tensor unconditioned,
                         device().Cast(estimates.unconditioned[modality], DType::kF32));
    LTX_ASSIGN_OR_RETURN(next, CfgPpStep::Between(sampler(), sigma, sigma_next)
                                   .Apply(device(), x, x0, unconditioned, noise));
  } else {
    LTX_ASSIGN_OR_RETURN(
        next, AncestralStep::Between(sampler(), sigma, sigma_next).Apply(device(), x, x0, noise));
  }
  // Noise would move kept tokens away from what they are to show.
  if (draws) {
    LTX_ASSIGN_OR_RETURN(next, Pinned(modality, next));
  }
  return device().Cast(next, dtype);
}

absl::StatusOr<Tensor> GradientEstimatingLoop::Advance(Modality modality,
                                                       const Estimates& estimates) {
  LTX_ASSIGN_OR_RETURN(Tensor x0, Pinned(modality, estimates.denoised[modality]));
  const Tensor& x = state(modality).latent;
  const float sigma = sigmas()[completed()];
  const float sigma_next = sigmas()[completed() + 1];
  if (sigma_next == 0.0f) return x0;

  const double inverse = 1.0 / sigma;
  LTX_ASSIGN_OR_RETURN(const Tensor velocity,
                       device().WeightedSum({{x, {inverse}}, {x0, {-inverse}}}, x.dtype()));
  if (velocity_[modality].defined()) {
    const float gamma = sampler().gamma;
    LTX_ASSIGN_OR_RETURN(const Tensor extrapolated,
                         device().LinearCombination(gamma, velocity, 1.0f - gamma,
                                                    velocity_[modality], 0.0f, Tensor()));
    LTX_ASSIGN_OR_RETURN(x0,
                         device().LinearCombination(1.0f, x, -sigma, extrapolated, 0.0f, Tensor()));
  }
  velocity_[modality] = velocity;
  return device().EulerStep(x, x0, sigma, sigma_next);
}

}  // namespace ltx::sampling
