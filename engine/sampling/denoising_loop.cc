#include "engine/sampling/denoising_loop.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace ltx::sampling {
namespace {

absl::Status CheckSigmas(const std::vector<float>& sigmas) {
  if (sigmas.size() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("a schedule of ", sigmas.size(), " sigmas; needs at least 2"));
  }
  for (size_t i = 0; i < sigmas.size(); ++i) {
    const bool last = i + 1 == sigmas.size();
    const bool legal = std::isfinite(sigmas[i]) && (sigmas[i] > 0.0f || (last && sigmas[i] == 0));
    if (!legal || (i > 0 && sigmas[i] > sigmas[i - 1])) {
      return absl::InvalidArgumentError(
          absl::StrCat("sigma ", i, " = ", sigmas[i],
                       "; must be finite, positive (the last may be 0) and not rise"));
    }
  }
  return absl::OkStatus();
}

/// Coefficients of one ancestral step: y = down x + (1 - down) x0, then keep y + inject noise.
struct AncestralCoefficients {
  float down_ratio, keep, inject;
};

AncestralCoefficients Coefficients(const Sampler& sampler, float sigma, float sigma_next) {
  const float sigma_down = sigma_next * (1.0f + (sigma_next / sigma - 1.0f) * sampler.eta);
  const float alpha_next = 1.0f - sigma_next;
  const float alpha_down = 1.0f - sigma_down;
  const float variance = sigma_next * sigma_next - sigma_down * sigma_down *
                                                       (alpha_next * alpha_next) /
                                                       (alpha_down * alpha_down);
  return {sigma_down / sigma, alpha_next / alpha_down,
          sampler.s_noise * std::sqrt(std::max(variance, 0.0f))};
}

}  // namespace

std::string Sampler::ToString() const {
  if (kind == Kind::kEuler) return "euler";
  return absl::StrCat("euler_ancestral eta=", eta, " s_noise=", s_noise);
}

absl::StatusOr<std::unique_ptr<DenoisingLoop>> DenoisingLoop::Create(
    Device* device, Options options, PerModality<LatentState> states) {
  LTX_RETURN_IF_ERROR(CheckSigmas(options.sigmas));
  if (!states.video.present() && !states.audio.present()) {
    return absl::InvalidArgumentError("a denoising loop needs at least one modality");
  }
  return std::unique_ptr<DenoisingLoop>(
      new DenoisingLoop(device, std::move(options), std::move(states)));
}

absl::Status DenoisingLoop::Step() {
  if (done()) return absl::FailedPreconditionError("the denoising loop is done");
  PerModality<Tensor> latents;
  for (const Modality m : kModalities) {
    latents[m] = states_[m].latent;
    if (options_.observer && states_[m].present()) {
      options_.observer(absl::StrCat("call", completed_, ".", ModalityName(m), ".in"), latents[m]);
    }
  }
  LTX_ASSIGN_OR_RETURN(const PerModality<Tensor> denoised,
                       options_.denoiser(latents, completed_, options_.sigmas[completed_]));
  for (const Modality m : kModalities) {
    if (!states_[m].present()) continue;
    if (options_.observer) {
      options_.observer(absl::StrCat("call", completed_, ".", ModalityName(m), ".x0"), denoised[m]);
    }
    if (options_.sampler.kind == Sampler::Kind::kEuler) {
      LTX_ASSIGN_OR_RETURN(states_[m].latent, EulerNext(states_[m], denoised[m]));
    } else {
      LTX_ASSIGN_OR_RETURN(states_[m].latent, AncestralNext(m, denoised[m]));
    }
  }
  ++completed_;
  return absl::OkStatus();
}

absl::StatusOr<Tensor> DenoisingLoop::EulerNext(const LatentState& state,
                                                const Tensor& denoised) const {
  LTX_ASSIGN_OR_RETURN(const Tensor blended,
                       device_->BlendClean(denoised, state.clean, state.device_mask));
  return device_->EulerStep(state.latent, blended, options_.sigmas[completed_],
                            options_.sigmas[completed_ + 1]);
}

absl::StatusOr<Tensor> DenoisingLoop::AncestralNext(Modality modality, const Tensor& denoised) {
  const LatentState& state = states_[modality];
  const DType dtype = state.latent.dtype();
  LTX_ASSIGN_OR_RETURN(const Tensor x0, device_->Cast(denoised, DType::kF32));
  LTX_ASSIGN_OR_RETURN(const Tensor clean, device_->Cast(state.clean, DType::kF32));
  LTX_ASSIGN_OR_RETURN(const Tensor blended, device_->BlendClean(x0, clean, state.device_mask));
  const float sigma = options_.sigmas[completed_];
  const float sigma_next = options_.sigmas[completed_ + 1];
  if (sigma_next == 0.0f) return device_->Cast(blended, dtype);

  const AncestralCoefficients step = Coefficients(options_.sampler, sigma, sigma_next);
  LTX_ASSIGN_OR_RETURN(const Tensor x, device_->Cast(state.latent, DType::kF32));
  LTX_ASSIGN_OR_RETURN(const Tensor down,
                       device_->LinearCombination(step.down_ratio, x, 1.0f - step.down_ratio,
                                                  blended, 0.0f, Tensor()));
  if (options_.sampler.eta <= 0.0f) return device_->Cast(down, dtype);

  if (!options_.noise) {
    return absl::FailedPreconditionError("the ancestral sampler needs a source of noise");
  }
  LTX_ASSIGN_OR_RETURN(const Tensor drawn,
                       options_.noise(modality, draws_++, state.latent.shape(), dtype));
  LTX_ASSIGN_OR_RETURN(const Tensor noise, device_->Cast(drawn, DType::kF32));
  LTX_ASSIGN_OR_RETURN(
      const Tensor renoised,
      device_->LinearCombination(step.keep, down, step.inject, noise, 0.0f, Tensor()));
  // Noise would move kept tokens away from what they are to show.
  LTX_ASSIGN_OR_RETURN(const Tensor pinned,
                       device_->BlendClean(renoised, clean, state.device_mask));
  return device_->Cast(pinned, dtype);
}

}  // namespace ltx::sampling
