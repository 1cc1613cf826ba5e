#include "engine/pipeline/diffusion_stage.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/audio_vae/latent_grid.h"
#include "engine/dit/x0.h"
#include "engine/pipeline/error_details.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::pipeline {
namespace {

using sampling::kModalities;
using sampling::Modality;
using sampling::ModalityName;
using sampling::PerModality;

dit::StreamKind KindOf(Modality modality) {
  return modality == Modality::kVideo ? dit::StreamKind::kVideo : dit::StreamKind::kAudio;
}

int64_t TokensOf(const StageSpec& spec, Modality modality) {
  return modality == Modality::kVideo ? spec.video.tokens() : spec.audio_tokens;
}

std::vector<float> PositionsOf(const StageSpec& spec, Modality modality) {
  if (modality == Modality::kVideo) return sampling::VideoPositions(spec.video, spec.frame_rate);
  std::vector<float> positions;
  for (const std::array<float, 2>& bounds :
       audio_vae::LatentGrid{}.TokenBounds(spec.audio_tokens)) {
    positions.insert(positions.end(), bounds.begin(), bounds.end());
  }
  return positions;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DiffusionStage>> DiffusionStage::Start(
    const dit::Transformer* transformer, const StageSpec& spec,
    const text::PromptContexts& contexts, sampling::NoiseSource* noise,
    const StageObserver& observer) {
  std::unique_ptr<DiffusionStage> stage(new DiffusionStage(transformer, spec.number, observer));
  PerModality<sampling::LatentState> states;
  for (const Modality m : kModalities) {
    LTX_ASSIGN_OR_RETURN(states[m], stage->StartState(m, spec, noise));
    LTX_RETURN_IF_ERROR(stage->PrepareStream(m, spec, contexts, states[m]));
  }
  sampling::DenoisingLoop::Options options;
  options.sampler = spec.sampler;
  options.sigmas = spec.sigmas;
  // The loop lives inside the stage, so that these pointers stay valid for as long as it runs.
  DiffusionStage* const self = stage.get();
  Device* const device = &transformer->device();
  const int number = spec.number;
  options.noise = [noise, device, number](const sampling::LoopDraw& draw, const Shape& shape,
                                          DType dtype) {
    const auto use =
        draw.half_step ? sampling::NoiseDraw::Use::kHalfStep : sampling::NoiseDraw::Use::kLoop;
    return noise->Draw(*device, {use, number, draw.modality, draw.index}, shape, dtype);
  };
  if (observer) {
    options.observer = [self](absl::string_view name, const Tensor& x) {
      self->Observe(std::string(name), x);
    };
  }
  LTX_ASSIGN_OR_RETURN(
      stage->loop_, sampling::DenoisingLoop::Create(device, std::move(options), std::move(states)));
  return stage;
}

absl::StatusOr<sampling::LatentState> DiffusionStage::StartState(
    Modality modality, const StageSpec& spec, sampling::NoiseSource* noise) const {
  Device& device = transformer_->device();
  const DType dtype = transformer_->dtype();
  const checkpoint::TransformerConfig& config = transformer_->config();
  const int64_t channels =
      modality == Modality::kVideo ? config.in_channels : config.audio_in_channels;
  const Shape shape{1, TokensOf(spec, modality), channels};
  Tensor initial = spec.initial[modality];
  if (initial.defined()) {
    if (initial.shape() != shape) {
      return absl::InternalError(absl::StrCat("stage ", spec.number, " ", ModalityName(modality),
                                              " starts from ", initial.shape().ToString(),
                                              ", needs ", shape.ToString()));
    }
    LTX_ASSIGN_OR_RETURN(initial, device.Cast(initial, dtype));
    Observe(absl::StrCat(ModalityName(modality), ".initial"), initial);
  } else {
    LTX_ASSIGN_OR_RETURN(initial, ZeroTensor(device, shape, dtype));
  }
  LTX_ASSIGN_OR_RETURN(sampling::LatentState state, sampling::GeneratedState(device, initial));
  const int index = modality == Modality::kVideo ? 0 : 1;
  LTX_ASSIGN_OR_RETURN(
      const Tensor drawn,
      noise->Draw(device, {sampling::NoiseDraw::Use::kInitial, spec.number, modality, index}, shape,
                  dtype));
  LTX_ASSIGN_OR_RETURN(state.latent, sampling::AddNoise(device, state, drawn, spec.noise_scale));
  Observe(absl::StrCat(ModalityName(modality), ".noised"), state.latent);
  Observe(absl::StrCat(ModalityName(modality), ".denoise_mask"), state.device_mask);
  return state;
}

absl::Status DiffusionStage::PrepareStream(Modality modality, const StageSpec& spec,
                                           const text::PromptContexts& contexts,
                                           const sampling::LatentState& state) {
  Device& device = transformer_->device();
  Stream& stream = streams_[modality];
  dit::StreamLayout layout;
  layout.tokens = TokensOf(spec, modality);
  layout.positions = PositionsOf(spec, modality);
  // The first latent frame is a single pixel frame in every run, with or without keyframe slots.
  if (modality == Modality::kVideo) layout.keyframes_mask = sampling::FirstFrameMask(spec.video);
  if (observer_) {
    const int64_t axes = modality == Modality::kVideo ? 3 : 1;
    LTX_ASSIGN_OR_RETURN(const Tensor positions,
                         TensorFromFloats(device, layout.positions, {1, axes, layout.tokens, 2}));
    Observe(absl::StrCat(ModalityName(modality), ".positions"), positions);
  }
  LTX_ASSIGN_OR_RETURN(stream.input.prepared, transformer_->Prepare(KindOf(modality), layout));
  const Tensor& context = modality == Modality::kVideo ? contexts.video : contexts.audio;
  LTX_ASSIGN_OR_RETURN(stream.input.context, device.Cast(context, transformer_->dtype()));
  stream.mask = state.mask;
  return absl::OkStatus();
}

absl::StatusOr<sampling::Estimates> DiffusionStage::Denoise(
    const sampling::Evaluation& evaluation) const {
  const auto sigma = static_cast<float>(evaluation.sigma);
  PerModality<dit::Modality> inputs;
  for (const Modality m : kModalities) {
    inputs[m] = streams_[m].input;
    inputs[m].latent = evaluation.latents[m];
    inputs[m].sigma = {sigma};
    inputs[m].timesteps = sampling::TokenTimesteps(streams_[m].mask, sigma);
  }
  LTX_ASSIGN_OR_RETURN(const dit::Prediction prediction,
                       dit::PredictDenoised(*transformer_, &inputs.video, &inputs.audio));
  sampling::Estimates estimates;
  estimates.denoised = {prediction.denoised.video, prediction.denoised.audio};
  return estimates;
}

absl::Status DiffusionStage::Step() {
  LTX_ASSIGN_OR_RETURN(const sampling::Evaluation evaluation, loop_->Next());
  LTX_ASSIGN_OR_RETURN(const sampling::Estimates estimates, Denoise(evaluation));
  LTX_RETURN_IF_ERROR(loop_->Accept(estimates));
  for (const Modality m : kModalities) {
    LTX_ASSIGN_OR_RETURN(const bool finite, transformer_->device().AllFinite(latent(m)));
    if (!finite) {
      const std::string where = absl::StrCat("stage", number_, " step ", loop_->completed(), " of ",
                                             steps(), ", ", ModalityName(m), " latent");
      return WithDetail(absl::InternalError(absl::StrCat("NaN or infinity in ", where)),
                        {std::string(kReasonNonFinite), "", where, ""});
    }
  }
  return absl::OkStatus();
}

void DiffusionStage::Observe(const std::string& name, const Tensor& x) const {
  if (observer_) observer_(absl::StrCat("s", number_, ".", name), x);
}

}  // namespace ltx::pipeline
