#include "engine/sampling/denoising_loop.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/sampling/euler_loops.h"
#include "engine/sampling/res2s_loop.h"
#include "kernels/status_macros.h"

namespace ltx::sampling {
namespace {

absl::Status CheckSigmas(const std::vector<float>& sigmas, bool must_fall) {
  if (sigmas.size() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("a schedule of ", sigmas.size(), " sigmas; needs at least 2"));
  }
  for (size_t i = 0; i < sigmas.size(); ++i) {
    const bool last = i + 1 == sigmas.size();
    const bool legal = std::isfinite(sigmas[i]) && (sigmas[i] > 0.0f || (last && sigmas[i] == 0));
    const bool ordered =
        i == 0 || (must_fall ? sigmas[i] < sigmas[i - 1] : sigmas[i] <= sigmas[i - 1]);
    if (!legal || !ordered) {
      return absl::InvalidArgumentError(absl::StrCat(
          "sigma ", i, " = ", sigmas[i], "; must be finite, positive (the last may be 0) and ",
          must_fall ? "fall" : "not rise"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSampler(const Sampler& sampler) {
  struct Option {
    absl::string_view name;
    float value, high;
  };
  // The gamma of gradient estimation has no natural end; ten times the paper's is far beyond use.
  for (const Option& option : {Option{"eta", sampler.eta, 1.0f},
                               {"s_noise", sampler.s_noise, 10.0f},
                               {"gamma", sampler.gamma, 20.0f}}) {
    if (option.value >= 0.0f && option.value <= option.high) continue;
    return absl::InvalidArgumentError(absl::StrCat("sampler ", option.name, " is ", option.value,
                                                   "; 0 to ", option.high, " would be legal"));
  }
  return absl::OkStatus();
}

bool InjectsNoise(const Sampler& sampler) {
  switch (sampler.kind) {
    case Sampler::Kind::kEuler:
    case Sampler::Kind::kGradientEstimating:
      return false;
    case Sampler::Kind::kEulerAncestral:
      return sampler.eta > 0.0f;
    case Sampler::Kind::kEulerCfgPp:
      return sampler.eta > 0.0f && sampler.s_noise > 0.0f;
    case Sampler::Kind::kRes2s:
      return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DenoisingLoop>> DenoisingLoop::Create(
    Device* device, Options options, PerModality<LatentState> states) {
  LTX_RETURN_IF_ERROR(CheckSampler(options.sampler));
  LTX_RETURN_IF_ERROR(CheckSigmas(options.sigmas, options.sampler.kind == Sampler::Kind::kRes2s));
  if (!states.video.present() && !states.audio.present()) {
    return absl::InvalidArgumentError("a denoising loop needs at least one modality");
  }
  if (InjectsNoise(options.sampler) && !options.noise) {
    return absl::FailedPreconditionError(
        absl::StrCat("the sampler ", options.sampler.ToString(), " needs a source of noise"));
  }
  switch (options.sampler.kind) {
    case Sampler::Kind::kEuler:
      return std::unique_ptr<DenoisingLoop>(
          new EulerLoop(device, std::move(options), std::move(states)));
    case Sampler::Kind::kEulerAncestral:
    case Sampler::Kind::kEulerCfgPp:
      return std::unique_ptr<DenoisingLoop>(
          new AncestralLoop(device, std::move(options), std::move(states)));
    case Sampler::Kind::kGradientEstimating:
      return std::unique_ptr<DenoisingLoop>(
          new GradientEstimatingLoop(device, std::move(options), std::move(states)));
    case Sampler::Kind::kRes2s:
      return std::unique_ptr<DenoisingLoop>(
          new Res2sLoop(device, std::move(options), std::move(states)));
  }
  return absl::InternalError("a sampler of unknown kind");
}

int DenoisingLoop::EvaluationCount(const Sampler& sampler, int steps, bool ends_at_zero) {
  if (sampler.kind != Sampler::Kind::kRes2s) return steps;
  return 2 * steps + (ends_at_zero ? 1 : 0);
}

DenoisingLoop::DenoisingLoop(Device* device, Options options, PerModality<LatentState> states)
    : device_(device),
      options_(std::move(options)),
      evaluations_(EvaluationCount(options_.sampler, static_cast<int>(options_.sigmas.size()) - 1,
                                   options_.sigmas.back() == 0.0f)),
      states_(std::move(states)) {}

Evaluation DenoisingLoop::Position() const {
  Evaluation position;
  position.step = completed_;
  position.sigma = options_.sigmas[completed_];
  return position;
}

absl::StatusOr<Evaluation> DenoisingLoop::Next() const {
  if (done()) return absl::FailedPreconditionError("the denoising loop is done");
  Evaluation evaluation = Position();
  evaluation.index = completed_;
  for (const Modality m : kModalities) evaluation.latents[m] = states_[m].latent;
  return evaluation;
}

absl::Status DenoisingLoop::Accept(const Estimates& estimates) {
  if (done()) return absl::FailedPreconditionError("the denoising loop is done");
  const bool needs_unconditioned = sampler().kind == Sampler::Kind::kEulerCfgPp;
  for (const Modality m : kModalities) {
    if (!states_[m].present()) continue;
    LTX_RETURN_IF_ERROR(CheckEstimate(m, estimates.denoised[m], "denoised"));
    if (needs_unconditioned) {
      LTX_RETURN_IF_ERROR(CheckEstimate(m, estimates.unconditioned[m], "unconditioned"));
    }
  }
  for (const Modality m : kModalities) {
    if (!states_[m].present()) continue;
    Observe(m, "in", states_[m].latent);
    Observe(m, "x0", estimates.denoised[m]);
    LTX_ASSIGN_OR_RETURN(states_[m].latent, Advance(m, estimates));
  }
  ++completed_;
  return absl::OkStatus();
}

absl::Status DenoisingLoop::CheckEstimate(Modality modality, const Tensor& estimate,
                                          absl::string_view what) const {
  const Tensor& latent = states_[modality].latent;
  if (estimate.defined() && estimate.shape() == latent.shape() &&
      estimate.dtype() == latent.dtype()) {
    return absl::OkStatus();
  }
  return absl::InternalError(
      absl::StrCat("evaluation ", completed_, " gave ", what, " ", ModalityName(modality), " ",
                   estimate.defined()
                       ? absl::StrCat(estimate.shape().ToString(), " ", DTypeName(estimate.dtype()))
                       : "nothing",
                   " for ", latent.shape().ToString(), " ", DTypeName(latent.dtype())));
}

void DenoisingLoop::Observe(Modality modality, absl::string_view what, const Tensor& x) const {
  if (!options_.observer) return;
  options_.observer(absl::StrCat("call", completed_, ".", ModalityName(modality), ".", what), x);
}

absl::StatusOr<Tensor> DenoisingLoop::DrawNoise(Modality modality, DType dtype, bool half_step) {
  return options_.noise({modality, draws_++, half_step}, states_[modality].latent.shape(), dtype);
}

absl::StatusOr<Tensor> DenoisingLoop::Pinned(Modality modality, const Tensor& x) const {
  const LatentState& state = states_[modality];
  LTX_ASSIGN_OR_RETURN(const Tensor clean, device_->Cast(state.clean, x.dtype()));
  return device_->BlendClean(x, clean, state.device_mask);
}

}  // namespace ltx::sampling
