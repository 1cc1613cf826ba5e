#include "engine/pipeline/diffusion_stage.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/audio_vae/latent_grid.h"
#include "engine/dit/x0.h"
#include "engine/pipeline/error_details.h"
#include "engine/pipeline/media_transfer.h"
#include "engine/pipeline/stage_forwards.h"
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
  int draws = 0;
  for (const Modality m : kModalities) {
    if (spec.tokens(m) == 0) continue;
    LTX_ASSIGN_OR_RETURN(states[m], stage->StartState(m, draws++, noise));
    LTX_RETURN_IF_ERROR(stage->PrepareStream(m, contexts, negative, states[m]));
  }
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
  if (observer_) {
    options.observer = [this](absl::string_view name, const Tensor& x) {
      Observe(std::string(name), x);
    };
  }
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
                       device.Allocate(shape, state->clean.dtype(), MemoryOwner::kActivations));
  LTX_RETURN_IF_ERROR(CopyInto(device, state->clean, clean));
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
    LTX_ASSIGN_OR_RETURN(const Tensor target, rows.Rows(begin, begin + count));
    LTX_RETURN_IF_ERROR(CopyInto(device, tokens, target));
    std::fill_n(state->mask.begin() + begin, count, 1.0f - frames.strength);
  }
  state->clean = clean;
  LTX_ASSIGN_OR_RETURN(state->device_mask,
                       TensorFromFloats(device, state->mask, {shape.dim(0), shape.dim(1)}));
  return absl::OkStatus();
}

absl::Status DiffusionStage::PrepareStream(Modality modality, const text::PromptContexts& contexts,
                                           const text::PromptContexts& negative,
                                           const sampling::LatentState& state) {
  Device& device = transformer_->device();
  Stream& stream = streams_[modality];
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
  LTX_ASSIGN_OR_RETURN(stream.prepared, transformer_->Prepare(KindOf(modality), layout));
  const auto cast = [&](const text::PromptContexts& of) {
    return device.Cast(modality == Modality::kVideo ? of.video : of.audio, transformer_->dtype());
  };
  LTX_ASSIGN_OR_RETURN(stream.context, cast(contexts));
  const bool uses_negative =
      spec_.guidance.has_value() && (UsesPass(spec_.guidance->video, GuidancePass::kUncond) ||
                                     UsesPass(spec_.guidance->audio, GuidancePass::kUncond));
  if (uses_negative) {
    if (!negative.video.defined() && !negative.audio.defined()) {
      return absl::FailedPreconditionError("guidance needs the contexts of a negative prompt");
    }
    LTX_ASSIGN_OR_RETURN(stream.negative_context, cast(negative));
  }
  stream.mask = state.mask;
  return absl::OkStatus();
}

absl::StatusOr<dit::Prediction> DiffusionStage::Run(absl::Span<const GuidancePass> passes) const {
  Device& device = transformer_->device();
  const size_t rows = passes.size();
  const auto sigma = static_cast<float>(evaluation_->sigma);
  PerModality<dit::Modality> inputs;
  PerModality<const dit::Modality*> present;
  for (const Modality m : kModalities) {
    const Tensor& latent = evaluation_->latents[m];
    if (!latent.defined()) continue;
    const Stream& stream = streams_[m];
    dit::Modality& input = inputs[m];
    input.prepared = stream.prepared;
    input.sigma = {sigma};
    input.enabled = !Skipped(m);
    const std::vector<float> timesteps = sampling::TokenTimesteps(stream.mask, sigma);
    std::vector<Tensor> contexts;
    for (const GuidancePass pass : passes) {
      contexts.push_back(pass == GuidancePass::kUncond ? stream.negative_context : stream.context);
      input.timesteps.insert(input.timesteps.end(), timesteps.begin(), timesteps.end());
    }
    if (rows == 1) {
      input.latent = latent;
      input.context = contexts[0];
    } else {
      const std::vector<Tensor> latents(rows, latent);
      LTX_ASSIGN_OR_RETURN(input.latent, device.Concat(latents, 0));
      LTX_ASSIGN_OR_RETURN(input.context, device.Concat(contexts, 0));
    }
    present[m] = &input;
  }
  dit::BatchPerturbations perturbations;
  if (spec_.guidance.has_value()) {
    for (const GuidancePass pass : passes) {
      perturbations.push_back(PerturbationsOf(pass, *spec_.guidance));
    }
  }
  return dit::PredictDenoised(*transformer_, present.video, present.audio, perturbations);
}

bool DiffusionStage::Skipped(Modality modality) const {
  return spec_.guidance.has_value() && !evaluation_->half_step &&
         SkipsStep((*spec_.guidance)[modality], evaluation_->step);
}

absl::Status DiffusionStage::Forward() {
  if (!evaluation_.has_value()) LTX_RETURN_IF_ERROR(BeginEvaluation());
  const size_t count = spec_.batched ? passes_.size() : 1;
  const absl::Span<const GuidancePass> due =
      absl::MakeConstSpan(passes_).subspan(next_pass_, count);
  LTX_ASSIGN_OR_RETURN(const dit::Prediction prediction, Run(due));
  const PerModality<Tensor> denoised = {prediction.denoised.video, prediction.denoised.audio};
  for (const Modality m : kModalities) {
    if (!denoised[m].defined()) continue;
    for (size_t row = 0; row < count; ++row) {
      LTX_ASSIGN_OR_RETURN(Tensor x0, denoised[m].Rows(row, row + 1));
      if (spec_.guidance.has_value()) {
        Observe(absl::StrCat("call", evaluation_->index, ".", ModalityName(m), ".",
                             GuidancePassName(due[row])),
                x0);
      }
      predictions_[m][static_cast<int>(due[row])] = std::move(x0);
    }
  }
  next_pass_ += count;
  return next_pass_ == passes_.size() ? FinishEvaluations() : absl::OkStatus();
}

absl::Status DiffusionStage::BeginEvaluation() {
  LTX_ASSIGN_OR_RETURN(evaluation_, loop_->Next());
  passes_ = StagePasses(spec_, evaluation_->step, evaluation_->half_step);
  next_pass_ = 0;
  predictions_ = {};
  return absl::OkStatus();
}

absl::Status DiffusionStage::FinishEvaluations() {
  do {
    LTX_RETURN_IF_ERROR(AcceptEvaluation());
    evaluation_.reset();
    if (loop_->done()) break;
    LTX_RETURN_IF_ERROR(BeginEvaluation());
    // Steps for which nothing is evaluated follow at once: a unit is a forward.
  } while (passes_.empty());
  return absl::OkStatus();
}

absl::Status DiffusionStage::AcceptEvaluation() {
  const int number = evaluation_->index + 1;
  for (const Modality m : kModalities) {
    if (!evaluation_->latents[m].defined() || Skipped(m)) continue;
    LTX_ASSIGN_OR_RETURN(last_[m], Combine(m));
  }
  sampling::Estimates estimates;
  estimates.denoised = last_;
  LTX_RETURN_IF_ERROR(loop_->Accept(estimates));
  for (const Modality m : kModalities) {
    if (!latent(m).defined()) continue;
    LTX_ASSIGN_OR_RETURN(const bool finite, transformer_->device().AllFinite(latent(m)));
    if (finite) continue;
    const std::string where =
        absl::StrCat("stage", spec_.number, " evaluation ", number, " of ", loop_->evaluations(),
                     ", ", ModalityName(m), " latent");
    return WithDetail(absl::InternalError(absl::StrCat("NaN or infinity in ", where)),
                      {std::string(kReasonNonFinite), "", where, ""});
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> DiffusionStage::Combine(Modality modality) const {
  const auto& predictions = predictions_[modality];
  const auto of = [&predictions](GuidancePass pass) {
    return predictions[static_cast<int>(pass)];
  };
  if (!spec_.guidance.has_value()) return of(GuidancePass::kCond);
  const GuidanceSettings& settings = (*spec_.guidance)[modality];
  // A pass may have run for the other modality's sake.
  const auto used = [&](GuidancePass pass) {
    return UsesPass(settings, pass) ? of(pass) : Tensor();
  };
  return transformer_->device().Guide(of(GuidancePass::kCond), used(GuidancePass::kUncond),
                                      used(GuidancePass::kPerturbed),
                                      used(GuidancePass::kIsolated), ScalesOf(settings));
}

void DiffusionStage::Observe(const std::string& name, const Tensor& x) const {
  if (observer_) observer_(absl::StrCat("s", spec_.number, ".", name), x);
}

}  // namespace ltx::pipeline
