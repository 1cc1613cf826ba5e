#include "engine/pipeline/diffusion_stage.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/audio_vae/latent_grid.h"
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
    const text::PromptContexts& contexts, const text::PromptContexts& negative,
    sampling::NoiseSource* noise, const StageObserver& observer) {
  std::unique_ptr<DiffusionStage> stage(new DiffusionStage(transformer, spec, observer));
  PerModality<sampling::LatentState> states;
  PerModality<GuidedDenoiser::Stream> streams;
  int draws = 0;
  for (const Modality m : kModalities) {
    if (spec.tokens(m) == 0) continue;
    LTX_ASSIGN_OR_RETURN(states[m], stage->StartState(m, draws++, noise));
    LTX_RETURN_IF_ERROR(stage->PrepareStream(m, contexts, negative, states[m], &streams[m]));
  }
  GuidedDenoiser::Options denoiser;
  denoiser.batch_passes = spec.batched;
  denoiser.observer = stage->PrefixedObserver();
  LTX_ASSIGN_OR_RETURN(stage->denoiser_, GuidedDenoiser::Create(transformer, std::move(streams),
                                                                std::move(denoiser)));
  LTX_RETURN_IF_ERROR(stage->StartLoop(noise, std::move(states)));
  return stage;
}

absl::Status DiffusionStage::StartLoop(sampling::NoiseSource* noise,
                                       PerModality<sampling::LatentState> states) {
  sampling::DenoisingLoop::Options options;
  options.sampler = spec_.sampler;
  options.sigmas = spec_.sigmas;
  // The loop lives inside the stage, so that these pointers stay valid for as long as it runs.
  Device* const device = &transformer_->device();
  const int number = spec_.number;
  options.noise = [noise, device, number](const sampling::LoopDraw& draw, const Shape& shape,
                                          DType dtype) {
    const auto use =
        draw.half_step ? sampling::NoiseDraw::Use::kHalfStep : sampling::NoiseDraw::Use::kLoop;
    return noise->Draw(*device, {use, number, draw.modality, draw.index}, shape, dtype);
  };
  options.observer = PrefixedObserver();
  LTX_ASSIGN_OR_RETURN(
      loop_, sampling::DenoisingLoop::Create(device, std::move(options), std::move(states)));
  return absl::OkStatus();
}

absl::StatusOr<sampling::LatentState> DiffusionStage::StartState(
    Modality modality, int draw, sampling::NoiseSource* noise) const {
  Device& device = transformer_->device();
  const DType dtype = transformer_->dtype();
  const checkpoint::TransformerConfig& config = transformer_->config();
  const int64_t channels =
      modality == Modality::kVideo ? config.in_channels : config.audio_in_channels;
  const Shape shape{1, spec_.tokens(modality), channels};
  Tensor initial = spec_.initial[modality];
  if (initial.defined()) {
    if (initial.shape() != shape) {
      return absl::InternalError(absl::StrCat("stage ", spec_.number, " ", ModalityName(modality),
                                              " starts from ", initial.shape().ToString(),
                                              ", needs ", shape.ToString()));
    }
    LTX_ASSIGN_OR_RETURN(initial, device.Cast(initial, dtype));
    Observe(absl::StrCat(ModalityName(modality), ".initial"), initial);
  } else {
    LTX_ASSIGN_OR_RETURN(initial, ZeroTensor(device, shape, dtype));
  }
  LTX_ASSIGN_OR_RETURN(sampling::LatentState state, sampling::GeneratedState(device, initial));
  if (modality == Modality::kVideo && !spec_.replaced_frames.empty()) {
    LTX_RETURN_IF_ERROR(ReplaceFrames(&state));
  }
  LTX_ASSIGN_OR_RETURN(
      const Tensor drawn,
      noise->Draw(device, {sampling::NoiseDraw::Use::kInitial, spec_.number, modality, draw}, shape,
                  dtype));
  LTX_ASSIGN_OR_RETURN(state.latent, sampling::AddNoise(device, state, drawn, spec_.noise_scale));
  Observe(absl::StrCat(ModalityName(modality), ".noised"), state.latent);
  Observe(absl::StrCat(ModalityName(modality), ".denoise_mask"), state.device_mask);
  return state;
}

absl::Status DiffusionStage::ReplaceFrames(sampling::LatentState* state) const {
  Device& device = transformer_->device();
  const int64_t frame_tokens = spec_.video.height * spec_.video.width;
  const Shape& shape = state->clean.shape();
  LTX_ASSIGN_OR_RETURN(const Tensor clean,
                       CopyForOwner(device, state->clean, MemoryOwner::kActivations));
  LTX_ASSIGN_OR_RETURN(const Tensor rows, clean.Reshape({shape.dim(1), shape.dim(2)}));
  for (const ReplacedFrames& frames : spec_.replaced_frames) {
    const int64_t begin = frames.first_frame * frame_tokens;
    const int64_t count = frames.tokens.dim(1);
    if (begin < 0 || count % frame_tokens != 0 || begin + count > shape.dim(1) ||
        frames.tokens.dim(2) != shape.dim(2)) {
      return absl::InternalError(absl::StrCat("stage ", spec_.number, " gets latent frames ",
                                              frames.tokens.shape().ToString(), " at frame ",
                                              frames.first_frame, " of ", shape.ToString()));
    }
    LTX_ASSIGN_OR_RETURN(Tensor tokens, device.Cast(frames.tokens, clean.dtype()));
    LTX_ASSIGN_OR_RETURN(tokens, tokens.Reshape({count, shape.dim(2)}));
    LTX_ASSIGN_OR_RETURN(Tensor target, rows.Rows(begin, begin + count));
    LTX_RETURN_IF_ERROR(device.Copy(tokens, &target));
    std::fill_n(state->mask.begin() + begin, count, 1.0f - frames.strength);
  }
  state->clean = clean;
  LTX_ASSIGN_OR_RETURN(state->device_mask,
                       TensorFromFloats(device, state->mask, {shape.dim(0), shape.dim(1)}));
  return absl::OkStatus();
}

absl::Status DiffusionStage::PrepareStream(Modality modality, const text::PromptContexts& contexts,
                                           const text::PromptContexts& negative,
                                           const sampling::LatentState& state,
                                           GuidedDenoiser::Stream* stream) const {
  Device& device = transformer_->device();
  dit::StreamLayout layout;
  layout.tokens = spec_.tokens(modality);
  layout.positions = PositionsOf(spec_, modality);
  // The first latent frame is a single pixel frame in every run, with or without keyframe slots.
  if (modality == Modality::kVideo) layout.keyframes_mask = sampling::FirstFrameMask(spec_.video);
  if (observer_) {
    const int64_t axes = modality == Modality::kVideo ? 3 : 1;
    LTX_ASSIGN_OR_RETURN(const Tensor positions,
                         TensorFromFloats(device, layout.positions, {1, axes, layout.tokens, 2}));
    Observe(absl::StrCat(ModalityName(modality), ".positions"), positions);
  }
  LTX_ASSIGN_OR_RETURN(stream->prepared, transformer_->Prepare(KindOf(modality), layout));
  const auto cast = [&](const text::PromptContexts& of) {
    return device.Cast(modality == Modality::kVideo ? of.video : of.audio, transformer_->dtype());
  };
  LTX_ASSIGN_OR_RETURN(stream->positive, cast(contexts));
  stream->guider = spec_.guidance[modality];
  if (negative.video.defined() || negative.audio.defined()) {
    LTX_ASSIGN_OR_RETURN(stream->negative, cast(negative));
  }
  stream->mask = state.mask;
  return absl::OkStatus();
}

absl::Status DiffusionStage::Forward() {
  if (denoiser_->pending() == 0) LTX_RETURN_IF_ERROR(BeginEvaluation());
  LTX_RETURN_IF_ERROR(denoiser_->Forward());
  // Evaluations for which nothing has to run follow at once: a unit is a forward.
  while (denoiser_->pending() == 0) {
    LTX_RETURN_IF_ERROR(AcceptEvaluation());
    if (loop_->done()) break;
    LTX_RETURN_IF_ERROR(BeginEvaluation());
  }
  return absl::OkStatus();
}

absl::Status DiffusionStage::BeginEvaluation() {
  LTX_ASSIGN_OR_RETURN(const sampling::Evaluation evaluation, loop_->Next());
  return denoiser_->Begin(evaluation);
}

absl::Status DiffusionStage::AcceptEvaluation() {
  LTX_ASSIGN_OR_RETURN(const sampling::Estimates estimates, denoiser_->Finish());
  LTX_RETURN_IF_ERROR(loop_->Accept(estimates));
  for (const Modality m : kModalities) {
    if (!latent(m).defined()) continue;
    LTX_ASSIGN_OR_RETURN(const bool finite, transformer_->device().AllFinite(latent(m)));
    if (finite) continue;
    const std::string where =
        absl::StrCat("stage", spec_.number, " evaluation ", loop_->completed(), " of ",
                     loop_->evaluations(), ", ", ModalityName(m), " latent");
    return WithDetail(absl::InternalError(absl::StrCat("NaN or infinity in ", where)),
                      {std::string(kReasonNonFinite), "", where, ""});
  }
  return absl::OkStatus();
}

StageObserver DiffusionStage::PrefixedObserver() const {
  if (!observer_) return nullptr;
  return [this](absl::string_view name, const Tensor& x) { Observe(std::string(name), x); };
}

void DiffusionStage::Observe(const std::string& name, const Tensor& x) const {
  if (observer_) observer_(absl::StrCat("s", spec_.number, ".", name), x);
}

}  // namespace ltx::pipeline
