#include "engine/pipeline/generation_job.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "engine/audio_vae/decode_audio.h"
#include "engine/pipeline/diffusion_stage.h"
#include "engine/pipeline/error_details.h"
#include "engine/pipeline/job_options.h"
#include "engine/pipeline/media_transfer.h"
#include "engine/pipeline/model_parts.h"
#include "engine/pipeline/recipe_plan.h"
#include "engine/sampling/torch_cpu_generator.h"
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
  State(const Model* model, const GenerationRequest& request, const JobOptions& options,
        RecipePlan recipe_plan)
      : model(model),
        request(request),
        options(options),
        parameters(std::move(recipe_plan.parameters)),
        stages(std::move(recipe_plan.stages)),
        plan(std::move(recipe_plan.units)),
        noise(options.noise != nullptr ? options.noise : MakeNoise(parameters, &model->device())),
        contexts(options.contexts.value_or(text::PromptContexts{})) {}

  Device& device() const { return model->device(); }
  const ModelParts& parts() const { return model->parts(); }
  void Observe(absl::string_view name, const Tensor& x) const {
    if (options.observer) options.observer(name, x);
  }

  absl::Status Run(const WorkUnit& unit);
  absl::Status EncodePrompt();
  absl::Status DenoiseStep(int number);
  absl::Status FinishStage(int number);
  absl::Status Upsample();
  absl::Status DecodeVideo();
  absl::Status DecodeAudio();

  const Model* const model;
  const GenerationRequest request;
  const JobOptions options;
  EffectiveParameters parameters;
  /// Geometry and sampler of each stage, without initial latents.
  std::vector<StageSpec> stages;
  std::vector<WorkUnit> plan;
  int completed = 0;
  bool failed = false;
  bool taken = false;
  std::array<PhaseSeconds, kPhaseCount> phases{};

  const std::shared_ptr<sampling::NoiseSource> noise;
  // What flows from unit to unit; each is released as soon as its last user has run.
  text::PromptContexts contexts;
  std::unique_ptr<DiffusionStage> stage;
  /// Of the last finished stage: video [1, F, H, W, C] (after the upsampler at its new size), audio
  /// [1, T, C].
  PerModality<Tensor> latents;
  std::unique_ptr<video_vae::VideoDecodeSession> decode;
  Tensor frames;
  Tensor waveform;
};

absl::Status GenerationJob::State::Run(const WorkUnit& unit) {
  switch (unit.phase) {
    case Phase::kText:
      return EncodePrompt();
    case Phase::kStage1:
      return DenoiseStep(1);
    case Phase::kUpsample:
      return Upsample();
    case Phase::kStage2:
      return DenoiseStep(2);
    case Phase::kVideoDecode:
      return DecodeVideo();
    case Phase::kAudioDecode:
      return DecodeAudio();
  }
  return absl::InternalError("unknown phase");
}

absl::Status GenerationJob::State::EncodePrompt() {
  const auto encode = [this](absl::string_view prompt) {
    return parts().prompt_encoder->Encode(prompt);
  };
  LTX_ASSIGN_OR_RETURN(contexts, parts().prompt_cache->Get(request.prompt, encode));
  parameters.prompt_tokens = contexts.num_tokens;
  parameters.dropped_prompt_tokens = contexts.dropped_tokens;
  for (const Tensor& context : {contexts.video, contexts.audio}) {
    LTX_ASSIGN_OR_RETURN(const bool finite, device().AllFinite(context));
    if (!finite) return NonFinite("the encoded prompt");
  }
  Observe("context.video", contexts.video);
  Observe("context.audio", contexts.audio);
  return absl::OkStatus();
}

absl::Status GenerationJob::State::DenoiseStep(int number) {
  if (stage == nullptr) {
    StageSpec spec = stages[number - 1];
    if (number > 1) {
      LTX_ASSIGN_OR_RETURN(spec.initial.video,
                           latents.video.Reshape({1, spec.video.tokens(), latents.video.dim(-1)}));
      spec.initial.audio = latents.audio;
      latents = {};
    }
    LTX_ASSIGN_OR_RETURN(stage, DiffusionStage::Start(parts().transformer.get(), spec, contexts,
                                                      noise.get(), options.observer));
  }
  LTX_RETURN_IF_ERROR(stage->Step());
  return stage->done() ? FinishStage(number) : absl::OkStatus();
}

absl::Status GenerationJob::State::FinishStage(int number) {
  const sampling::VideoLatentExtents& extents = stages[number - 1].video;
  const Tensor& tokens = stage->latent(Modality::kVideo);
  LTX_ASSIGN_OR_RETURN(latents.video, tokens.Reshape({1, extents.frames, extents.height,
                                                      extents.width, tokens.dim(-1)}));
  latents.audio = stage->latent(Modality::kAudio);
  Observe(absl::StrCat("s", number, ".video.final"), tokens);
  Observe(absl::StrCat("s", number, ".audio.final"), latents.audio);
  stage.reset();
  if (number == static_cast<int>(stages.size())) contexts = {};
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
    LTX_ASSIGN_OR_RETURN(
        frames, device().Allocate({parameters.num_frames, parameters.height, parameters.width, 3},
                                  DType::kF32, MemoryOwner::kMedia));
  }
  LTX_ASSIGN_OR_RETURN(const std::optional<video_vae::DecodedFrames> chunk, decode->Advance());
  if (chunk.has_value()) {
    LTX_ASSIGN_OR_RETURN(const bool finite, device().AllFinite(chunk->frames));
    if (!finite) {
      return NonFinite(absl::StrCat("frames ", chunk->first_frame, " to ",
                                    chunk->first_frame + chunk->frames.dim(0) - 1));
    }
    LTX_ASSIGN_OR_RETURN(
        const Tensor target,
        frames.Rows(chunk->first_frame, chunk->first_frame + chunk->frames.dim(0)));
    LTX_RETURN_IF_ERROR(CopyInto(device(), chunk->frames, target));
  }
  if (decode->done()) decode.reset();
  return absl::OkStatus();
}

absl::Status GenerationJob::State::DecodeAudio() {
  const absl::StatusOr<audio_vae::Waveform> decoded =
      audio_vae::DecodeAudio(device(), *parts().audio_decoder, *parts().vocoder, latents.audio);
  if (absl::IsDataLoss(decoded.status())) return NonFinite("the waveform or its latent");
  LTX_RETURN_IF_ERROR(decoded.status());
  latents.audio = Tensor();
  LTX_ASSIGN_OR_RETURN(
      waveform, device().Allocate(decoded->samples.shape(), DType::kF32, MemoryOwner::kMedia));
  return CopyInto(device(), decoded->samples, waveform);
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
  PlanInputs inputs;
  inputs.ancestral_stage_1 = options.ancestral.value_or(model->parts().ancestral_stage_1);
  inputs.encode_prompt = !options.contexts.has_value();
  inputs.compute_dtype = model->compute_dtype();
  const DeviceProperties device = model->device().properties();
  inputs.on_cuda = device.is_gpu;
  if (device.is_gpu) {
    inputs.cuda_launch_shape = {device.multiprocessors, device.threads_per_multiprocessor};
  }
  inputs.cuda_launch_shape = options.cuda_launch_shape.value_or(inputs.cuda_launch_shape);
  return std::unique_ptr<GenerationJob>(new GenerationJob(
      std::make_unique<State>(model, request, options, MakePlan(request, inputs))));
}

const std::vector<WorkUnit>& GenerationJob::plan() const { return state_->plan; }
int GenerationJob::completed() const { return state_->completed; }
const EffectiveParameters& GenerationJob::parameters() const { return state_->parameters; }

absl::StatusOr<UnitReport> GenerationJob::Advance() {
  if (done()) return absl::FailedPreconditionError("the job is done");
  if (state_->failed) return absl::FailedPreconditionError("the job has failed before");
  const absl::Time start = absl::Now();
  const Phase phase = state_->plan[state_->completed].phase;
  absl::Status status = state_->Run(state_->plan[state_->completed]);
  status.Update(state_->device().Synchronize());
  if (!status.ok()) {
    state_->failed = true;
    return status;
  }
  UnitReport report;
  report.seconds = absl::ToDoubleSeconds(absl::Now() - start);
  PhaseSeconds& total = state_->phases[static_cast<int>(phase)];
  total.phase = phase;
  total.units += 1;
  total.seconds += report.seconds;
  report.unit = state_->plan[state_->completed];
  report.completed = ++state_->completed;
  report.total = static_cast<int>(state_->plan.size());
  return report;
}

absl::StatusOr<GenerationResult> GenerationJob::TakeResult() {
  if (!done()) return absl::FailedPreconditionError("the job is not done");
  if (state_->taken) return absl::FailedPreconditionError("the result has been taken");
  state_->taken = true;
  GenerationResult result;
  result.frames = std::exchange(state_->frames, Tensor());
  result.waveform = std::exchange(state_->waveform, Tensor());
  result.sample_rate = state_->model->sample_rate();
  result.parameters = state_->parameters;
  for (const PhaseSeconds& phase : state_->phases) {
    if (phase.units > 0) result.phases.push_back(phase);
  }
  return result;
}

}  // namespace ltx::pipeline
