#include "engine/pipeline/generation_job.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "engine/audio_vae/decode_audio.h"
#include "engine/pipeline/diffusion_stage.h"
#include "engine/pipeline/error_details.h"
#include "engine/pipeline/fused_cache.h"
#include "engine/pipeline/job_options.h"
#include "engine/pipeline/model_parts.h"
#include "engine/pipeline/recipe_plan.h"
#include "engine/sampling/latent_geometry.h"
#include "engine/sampling/torch_cpu_generator.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::pipeline {
namespace {

using sampling::Modality;
using sampling::PerModality;

absl::Status NonFinite(const std::string& where) {
  return WithDetail(absl::InternalError(absl::StrCat("NaN or infinity in ", where)),
                    {std::string(kReasonNonFinite), "", where, ""});
}

std::shared_ptr<sampling::NoiseSource> MakeNoise(const EffectiveParameters& parameters,
                                                 Device* device) {
  sampling::GeneratedNoise::MakeGenerator make;
  if (parameters.noise_generator == NoiseGenerator::kTorchCpu) {
    make = [](uint64_t seed) { return std::make_unique<sampling::TorchCpuGenerator>(seed); };
  } else {
    const sampling::CudaLaunchShape shape = {parameters.noise_multiprocessors,
                                             parameters.noise_threads_per_multiprocessor};
    make = [shape, device](uint64_t seed) {
      return std::make_unique<sampling::TorchCudaGenerator>(seed, shape, device);
    };
  }
  return std::make_shared<sampling::GeneratedNoise>(std::move(make), parameters.seed,
                                                    parameters.loop_seed, parameters.noise_dtype);
}

}  // namespace

struct GenerationJob::State {
  State(const Model* model, GenerationRequest request, const JobOptions& options, PlanInputs inputs,
        RecipePlan recipe_plan)
      : model(model),
        request(std::move(request)),
        options(options),
        inputs(std::move(inputs)),
        parameters(std::move(recipe_plan.parameters)),
        stages(std::move(recipe_plan.stages)),
        plan(std::move(recipe_plan.units)),
        noise(options.noise != nullptr ? options.noise : MakeNoise(parameters, &model->device())),
        contexts(options.contexts.value_or(text::PromptContexts{})),
        negative_contexts(options.negative_contexts.value_or(text::PromptContexts{})) {}

  Device& device() const { return model->device(); }
  const ModelParts& parts() const { return model->parts(); }
  void Observe(absl::string_view name, const Tensor& x) const {
    if (options.observer) options.observer(name, x);
  }

  absl::Status Run(const WorkUnit& unit);
  absl::Status Enhance();
  absl::Status EncodePrompt(int index);
  absl::StatusOr<text::PromptContexts> Encode(const std::string& prompt,
                                              const text::PromptCache::Encode& encode) const;
  absl::StatusOr<text::PromptContexts> EncodeUnwritten() const;
  absl::Status PredictLength();
  absl::Status Denoise(int number);
  absl::StatusOr<StageSpec> StageToRun(int number);
  absl::Status Fuse();
  absl::Status FinishStage(int number);
  absl::Status Upsample();
  absl::Status DecodeVideo();
  absl::Status DecodeAudio();

  const Model* const model;
  /// With the prompt that was written and the length that was predicted, once they are.
  GenerationRequest request;
  const JobOptions options;
  PlanInputs inputs;
  EffectiveParameters parameters;
  /// Geometry and sampler of each stage, without initial latents.
  std::vector<StageSpec> stages;
  std::vector<WorkUnit> plan;
  int completed = 0;
  bool failed = false;
  bool taken = false;
  /// By the transformers that have run for this job.
  Preparation prepared;
  /// In order of execution.
  std::vector<PhaseSeconds> phases;

  const std::shared_ptr<sampling::NoiseSource> noise;
  // What flows from unit to unit; each is released as soon as its last user has run.
  std::unique_ptr<text::PromptRewrite> rewrite;
  text::PromptContexts contexts, negative_contexts;
  /// With the LoRA of the stage that is under way or next; null where that runs without.
  std::shared_ptr<const dit::Transformer> fused;
  std::unique_ptr<DiffusionStage> stage;
  /// Of the last finished stage: video [1, F, H, W, C] (after the upsampler at its new size), audio
  /// [1, T, C].
  PerModality<Tensor> latents;
  /// Of the stage whose sound is shipped.
  Tensor shipped_audio;
  std::unique_ptr<video_vae::VideoDecodeSession> decode;
  std::vector<FinishedFrames> frames;
  Tensor waveform;
};

absl::Status GenerationJob::State::Run(const WorkUnit& unit) {
  switch (unit.phase) {
    case Phase::kEnhance:
      return Enhance();
    case Phase::kText:
      return EncodePrompt(unit.index);
    case Phase::kFuse:
      return Fuse();
    case Phase::kStage1:
      return Denoise(1);
    case Phase::kUpsample:
      return Upsample();
    case Phase::kStage2:
      return Denoise(2);
    case Phase::kVideoDecode:
      return DecodeVideo();
    case Phase::kAudioDecode:
      return DecodeAudio();
  }
  return absl::InternalError("unknown phase");
}

absl::Status GenerationJob::State::Enhance() {
  if (rewrite == nullptr) {
    LTX_ASSIGN_OR_RETURN(rewrite, parts().prompt_enhancer->Start(request.prompt, parameters.seed));
  }
  const absl::Status written = rewrite->Advance();
  if (absl::IsDataLoss(written)) return NonFinite("the scores for an enhanced prompt's words");
  LTX_RETURN_IF_ERROR(written);
  if (!rewrite->done()) return absl::OkStatus();
  request.prompt = rewrite->Text();
  EffectiveParameters::Enhancement& enhancement = *parameters.enhancement;
  enhancement.prompt = request.prompt;
  enhancement.tokens = static_cast<int64_t>(rewrite->tokens().size());
  // A projection writes to the limit always.
  if (rewrite->cut() && device().holds_data()) {
    parameters.warnings.push_back(
        absl::StrCat("the enhanced prompt is cut after ", enhancement.tokens, " tokens"));
  }
  rewrite.reset();
  return EndPhase(completed + 1, &plan);
}

absl::StatusOr<text::PromptContexts> GenerationJob::State::EncodeUnwritten() const {
  text::PromptEncoder& encoder = *parts().prompt_encoder;
  text::TokenizedPrompt longest;
  longest.ids.assign(static_cast<size_t>(std::min(parameters.enhancement->max_new_tokens + 1,
                                                  encoder.tokenizer().limits().max_tokens)),
                     encoder.tokenizer().begin_id());
  return encoder.EncodeTokens(longest);
}

absl::StatusOr<text::PromptContexts> GenerationJob::State::Encode(
    const std::string& prompt, const text::PromptCache::Encode& encode) const {
  LTX_ASSIGN_OR_RETURN(const text::PromptContexts encoded,
                       parts().prompt_cache->Get(prompt, encode));
  for (const Tensor& context : {encoded.video, encoded.audio}) {
    LTX_ASSIGN_OR_RETURN(const bool finite, device().AllFinite(context));
    if (!finite) return NonFinite("the encoded prompt");
  }
  return encoded;
}

absl::Status GenerationJob::State::EncodePrompt(int index) {
  const auto encode = [this](absl::string_view text) {
    return parts().prompt_encoder->Encode(text);
  };
  if (index == 2) {
    LTX_ASSIGN_OR_RETURN(negative_contexts, Encode(parameters.guidance->negative_prompt, encode));
    return absl::OkStatus();
  }
  // A device without data has written nothing: the longest answer that it might have been.
  if (parameters.enhancement.has_value() && !device().holds_data()) {
    LTX_ASSIGN_OR_RETURN(contexts,
                         Encode("", [this](absl::string_view) { return EncodeUnwritten(); }));
  } else {
    LTX_ASSIGN_OR_RETURN(contexts, Encode(request.prompt, encode));
  }
  Observe("context.video", contexts.video);
  Observe("context.audio", contexts.audio);
  if (request.auto_duration.has_value()) LTX_RETURN_IF_ERROR(PredictLength());
  parameters.prompt_tokens = contexts.num_tokens;
  parameters.dropped_prompt_tokens = contexts.dropped_tokens;
  return absl::OkStatus();
}

absl::Status GenerationJob::State::PredictLength() {
  LTX_ASSIGN_OR_RETURN(
      const FrameRange range,
      AutoDurationRange(*request.auto_duration, request.frame_rate, model->limits()));
  // A recipe without picture asks for the length of the sound alone.
  LTX_ASSIGN_OR_RETURN(const float seconds,
                       parts().duration_head->PredictSeconds(
                           parameters.has_video ? contexts.video : Tensor(), contexts.audio));
  if (!std::isfinite(seconds)) return NonFinite("the predicted duration");
  LTX_ASSIGN_OR_RETURN(request.num_frames,
                       sampling::FramesForDuration(seconds, request.frame_rate.value(),
                                                   range.min_frames, range.max_frames));
  // Sizes change, the units up to here do not.
  if (parameters.enhancement.has_value()) {
    inputs.max_enhancement_tokens = parameters.enhancement->tokens;
  }
  LTX_ASSIGN_OR_RETURN(RecipePlan remade, MakePlan(request, inputs));
  remade.parameters.enhancement = std::move(parameters.enhancement);
  remade.parameters.warnings = std::move(parameters.warnings);
  parameters = std::move(remade.parameters);
  parameters.predicted_seconds = seconds;
  stages = std::move(remade.stages);
  plan = std::move(remade.units);
  return absl::OkStatus();
}

absl::StatusOr<StageSpec> GenerationJob::State::StageToRun(int number) {
  StageSpec spec = stages[number - 1];
  if (static_cast<int>(options.replaced_frames.size()) >= number) {
    spec.replaced_frames = options.replaced_frames[number - 1];
  }
  if (number == 1) return spec;
  if (parameters.has_video) {
    LTX_ASSIGN_OR_RETURN(spec.initial.video,
                         latents.video.Reshape({1, spec.video.tokens(), latents.video.dim(-1)}));
  }
  spec.initial.audio = latents.audio;
  latents = {};
  return spec;
}

absl::Status GenerationJob::State::Fuse() {
  const size_t next = plan[completed + 1].phase == Phase::kStage1 ? 0 : 1;
  FusedCache& cache = *parts().fused;
  const uint64_t hits = cache.stats().hits;
  LTX_ASSIGN_OR_RETURN(fused, cache.Get(stages[next].distilled_lora_strength));
  parameters.stages[next].lora_kept = cache.stats().hits != hits;
  return absl::OkStatus();
}

absl::Status GenerationJob::State::Denoise(int number) {
  const dit::Transformer* const transformer =
      fused != nullptr ? fused.get() : parts().transformer.get();
  if (stage == nullptr) {
    LTX_ASSIGN_OR_RETURN(const StageSpec spec, StageToRun(number));
    LTX_ASSIGN_OR_RETURN(
        stage, DiffusionStage::Start(transformer, spec, contexts, negative_contexts, noise.get(),
                                     options.observer));
  }
  const Preparation before = transformer->prepared();
  LTX_RETURN_IF_ERROR(stage->Forward());
  prepared += transformer->prepared() - before;
  return stage->done() ? FinishStage(number) : absl::OkStatus();
}

absl::Status GenerationJob::State::FinishStage(int number) {
  for (const Modality m : sampling::kModalities) {
    latents[m] = stage->latent(m);
    if (latents[m].defined()) {
      Observe(absl::StrCat("s", number, ".", ModalityName(m), ".final"), latents[m]);
    }
  }
  stage.reset();
  fused.reset();
  if (number == TraitsOf(request.recipe).audio_stage) shipped_audio = latents.audio;
  if (number == static_cast<int>(stages.size())) {
    contexts = {};
    negative_contexts = {};
    latents.audio = Tensor();
  }
  if (!parameters.has_video) return absl::OkStatus();
  const sampling::VideoLatentExtents& extents = stages[number - 1].video;
  LTX_ASSIGN_OR_RETURN(latents.video,
                       latents.video.Reshape({1, extents.frames, extents.height, extents.width,
                                              latents.video.dim(-1)}));
  return absl::OkStatus();
}

absl::Status GenerationJob::State::Upsample() {
  LTX_ASSIGN_OR_RETURN(latents.video, parts().upsampler->UpsampleNormalized(
                                          latents.video, parts().video_statistics));
  LTX_ASSIGN_OR_RETURN(const bool finite, device().AllFinite(latents.video));
  if (!finite) return NonFinite("the upsampled latent");
  Observe("upscaled", latents.video);
  return absl::OkStatus();
}

absl::Status GenerationJob::State::DecodeVideo() {
  if (decode == nullptr) {
    int draws = 0;
    auto draw = [this, draws](const Shape& shape, DType dtype) mutable {
      const sampling::NoiseDraw which = {sampling::NoiseDraw::Use::kDecode,
                                         static_cast<int>(stages.size()), Modality::kVideo,
                                         draws++};
      return noise->Draw(device(), which, shape, dtype);
    };
    LTX_ASSIGN_OR_RETURN(decode, parts().video_decoder->StartDecode(latents.video, draw));
    latents.video = Tensor();
    LTX_RETURN_IF_ERROR(SetPhaseUnits(Phase::kVideoDecode, decode->unit_count(), completed, &plan));
  }
  LTX_ASSIGN_OR_RETURN(const std::optional<video_vae::DecodedFrames> chunk, decode->Advance());
  if (chunk.has_value()) {
    LTX_ASSIGN_OR_RETURN(const bool finite, device().AllFinite(chunk->frames));
    if (!finite) {
      return NonFinite(absl::StrCat("frames ", chunk->first_frame, " to ",
                                    chunk->first_frame + chunk->frames.dim(0) - 1));
    }
    Observe("frames", chunk->frames);
    FinishedFrames finished;
    finished.first_frame = chunk->first_frame;
    LTX_ASSIGN_OR_RETURN(finished.bytes, device().ToByteFrames(chunk->frames, MemoryOwner::kMedia));
    frames.push_back(std::move(finished));
  }
  if (decode->done()) decode.reset();
  return absl::OkStatus();
}

absl::Status GenerationJob::State::DecodeAudio() {
  const absl::StatusOr<audio_vae::Waveform> decoded =
      audio_vae::DecodeAudio(device(), *parts().audio_decoder, *parts().vocoder, shipped_audio);
  if (absl::IsDataLoss(decoded.status())) return NonFinite("the waveform or its latent");
  LTX_RETURN_IF_ERROR(decoded.status());
  shipped_audio = Tensor();
  LTX_ASSIGN_OR_RETURN(waveform, CopyForOwner(device(), decoded->samples, MemoryOwner::kMedia));
  return absl::OkStatus();
}

GenerationJob::GenerationJob(std::unique_ptr<State> state) : state_(std::move(state)) {}
GenerationJob::~GenerationJob() = default;

absl::StatusOr<std::unique_ptr<GenerationJob>> GenerationJob::Create(
    const Model* model, const GenerationRequest& request) {
  return Create(model, request, JobOptions{});
}

absl::StatusOr<std::unique_ptr<GenerationJob>> GenerationJob::Create(
    const Model* model, const GenerationRequest& request, const JobOptions& options) {
  LTX_RETURN_IF_ERROR(model->Validate(request));
  GenerationRequest resolved = request;
  // Until the duration head has spoken, what is planned is the longest clip that it may ask for.
  LTX_ASSIGN_OR_RETURN(resolved.num_frames, LongestFrames(request, model->limits()));
  PlanInputs inputs;
  inputs.model_kind = model->kind();
  inputs.model_version = model->defaults().version;
  inputs.ancestral_stage_1 = options.ancestral;
  inputs.num_blocks = model->parts().transformer->num_blocks();
  if (const FusedCache* const fused = model->fused_cache(); fused != nullptr) {
    inputs.distilled_lora = fused->lora_name();
    inputs.fused_transformer_bytes = fused->copy_bytes();
  }
  inputs.encode_prompt = !options.contexts.has_value();
  inputs.compute_dtype = model->compute_dtype();
  const DeviceProperties device = model->device().properties();
  inputs.on_cuda = device.is_gpu;
  if (device.is_gpu) {
    inputs.cuda_launch_shape = {device.multiprocessors, device.threads_per_multiprocessor};
  }
  inputs.cuda_launch_shape = options.cuda_launch_shape.value_or(inputs.cuda_launch_shape);
  if (request.enhance_prompt) {
    inputs.max_enhancement_tokens = model->parts().prompt_enhancer->max_new_tokens();
  }
  LTX_ASSIGN_OR_RETURN(RecipePlan plan, MakePlan(resolved, inputs));
  return std::unique_ptr<GenerationJob>(new GenerationJob(std::make_unique<State>(
      model, std::move(resolved), options, std::move(inputs), std::move(plan))));
}

const std::vector<WorkUnit>& GenerationJob::plan() const { return state_->plan; }
int GenerationJob::completed() const { return state_->completed; }
const EffectiveParameters& GenerationJob::parameters() const { return state_->parameters; }

absl::StatusOr<UnitReport> GenerationJob::Advance() {
  if (done()) return absl::FailedPreconditionError("the job is done");
  if (state_->failed) return absl::FailedPreconditionError("the job has failed before");
  const absl::Time start = absl::Now();
  const auto prepared = [this] {
    Preparation prepared = state_->device().prepared();
    prepared += state_->prepared;
    return prepared;
  };
  const Preparation before = prepared();
  const Phase phase = state_->plan[state_->completed].phase;
  absl::Status status = state_->Run(state_->plan[state_->completed]);
  status.Update(state_->device().Synchronize());
  if (!status.ok()) {
    state_->failed = true;
    return status;
  }
  UnitReport report;
  report.seconds = absl::ToDoubleSeconds(absl::Now() - start);
  report.preparation = prepared() - before;
  const auto is_phase = [phase](const PhaseSeconds& total) { return total.phase == phase; };
  auto total = std::find_if(state_->phases.begin(), state_->phases.end(), is_phase);
  if (total == state_->phases.end()) total = state_->phases.insert(total, {phase, 0, 0.0});
  total->units += 1;
  total->seconds += report.seconds;
  report.unit = state_->plan[state_->completed];
  report.completed = ++state_->completed;
  report.total = static_cast<int>(state_->plan.size());
  return report;
}

absl::StatusOr<PartialResult> GenerationJob::Partial() const {
  const State& state = *state_;
  if (state.failed) return absl::FailedPreconditionError("the job has failed");
  PartialResult partial;
  Tensor video = state.latents.video;
  Tensor audio = state.latents.audio.defined() ? state.latents.audio : state.shipped_audio;
  if (state.completed > 0) partial.unit = state.plan[state.completed - 1];
  if (state.stage != nullptr) {
    LTX_ASSIGN_OR_RETURN(const sampling::Evaluation next, state.stage->Next());
    partial.step = next.step;
    partial.sigma = next.sigma;
    video = state.stage->latent(Modality::kVideo);
    audio = state.stage->latent(Modality::kAudio);
    if (video.defined()) {
      const int stage = partial.unit.phase == Phase::kStage1 ? 0 : 1;
      const sampling::VideoLatentExtents& extents = state.stages[stage].video;
      LTX_ASSIGN_OR_RETURN(
          video, video.Reshape({1, extents.frames, extents.height, extents.width, video.dim(-1)}));
    }
  } else {
    partial.step = partial.unit.steps;
  }
  const auto add = [&partial](const char* name, const Tensor& tensor) {
    if (tensor.defined()) partial.tensors.emplace_back(name, tensor);
  };
  add("video_latent", video);
  add("audio_latent", audio);
  add("waveform", state.waveform);
  if (partial.tensors.empty()) {
    return absl::FailedPreconditionError("the job has made no latents yet");
  }
  return partial;
}

std::vector<FinishedFrames> GenerationJob::TakeFrames() {
  return std::exchange(state_->frames, {});
}

absl::StatusOr<GenerationResult> GenerationJob::TakeResult() {
  if (!done()) return absl::FailedPreconditionError("the job is not done");
  if (state_->taken) return absl::FailedPreconditionError("the result has been taken");
  state_->taken = true;
  GenerationResult result;
  result.waveform = std::exchange(state_->waveform, Tensor());
  result.sample_rate = state_->model->sample_rate();
  result.parameters = state_->parameters;
  result.phases = state_->phases;
  return result;
}

}  // namespace ltx::pipeline
