#include "engine/pipeline/recipe_plan.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/pipeline/error_details.h"
#include "engine/pipeline/guidance_defaults.h"
#include "engine/pipeline/stage_forwards.h"
#include "engine/sampling/latent_geometry.h"
#include "engine/sampling/schedules.h"
#include "kernels/status_macros.h"

namespace ltx::pipeline {
namespace {

// Keeps the loop's first draw apart from the starting noise, which has the same shape (reference:
// distilled.py:ANCESTRAL_NOISE_SEED_OFFSET).
constexpr uint64_t kLoopSeedOffset = 10000;
// The reference's second-order recipe never hands its loop a seed, which then is -1 for every
// request (samplers.py:res2s_audio_video_denoising_loop).
constexpr uint64_t kRes2sLoopSeed = ~uint64_t{0};

// From here on the reference decodes in tiles: 80 frames and 768 pixels are its tile extents.
constexpr int64_t kReferenceTileFrames = 80;
constexpr int64_t kReferenceTilePixels = 768;

// The generation from which the reference samples stage 1 with injected noise
// (distilled.py:ANCESTRAL_SAMPLER_SINCE_VERSION).
const checkpoint::ModelVersion& AncestralSince() {
  static const auto* const version = new checkpoint::ModelVersion{2, 5};
  return *version;
}

void AddUnits(Phase phase, int count, std::vector<WorkUnit>* units) {
  for (int i = 1; i <= count; ++i) {
    WorkUnit unit;
    unit.phase = phase;
    unit.index = i;
    unit.count = count;
    units->push_back(std::move(unit));
  }
}

/// Compiles the stages of one request.
class StageBuilder {
 public:
  StageBuilder(const GenerationRequest& request, const PlanInputs& inputs,
               const EffectiveParameters& parameters)
      : request_(request),
        inputs_(inputs),
        parameters_(parameters),
        traits_(TraitsOf(request.recipe)) {}

  absl::StatusOr<StageSpec> Build(int number) const {
    const StageRecipe& recipe = traits_.stages[number - 1];
    StageSpec stage;
    stage.number = number;
    stage.frame_rate = request_.frame_rate.value();
    if (parameters_.has_video) {
      stage.video =
          sampling::LatentExtentsOf(parameters_.num_frames, request_.height / recipe.size_divisor,
                                    request_.width / recipe.size_divisor);
    }
    if (parameters_.has_audio) {
      stage.audio_tokens = sampling::AudioLatentFrames(static_cast<double>(parameters_.num_frames) /
                                                       stage.frame_rate);
    }
    LTX_ASSIGN_OR_RETURN(stage.sigmas, Sigmas(recipe, stage));
    stage.sampler = SamplerOf(recipe);
    // A later stage refines a latent that is noised to the first level of its schedule.
    if (number > 1) stage.noise_scale = stage.sigmas.front();
    if (recipe.guided) {
      stage.guidance = parameters_.guidance->settings;
      stage.batched = parameters_.guidance->batched;
    }
    const std::optional<double>& strength = number == 1 ? request_.distilled_lora_strength_stage_1
                                                        : request_.distilled_lora_strength_stage_2;
    stage.distilled_lora_strength = strength.value_or(recipe.distilled_lora_strength);
    return stage;
  }

  EffectiveParameters::Stage Describe(const StageSpec& spec) const {
    const int64_t divisor = traits_.stages[spec.number - 1].size_divisor;
    EffectiveParameters::Stage stage;
    stage.height = parameters_.height / divisor;
    stage.width = parameters_.width / divisor;
    stage.sampler = spec.sampler.ToString();
    stage.sigmas = spec.sigmas;
    stage.noise_scale = spec.noise_scale;
    stage.video_tokens = spec.video.tokens();
    stage.audio_tokens = spec.audio_tokens;
    stage.distilled_lora_strength = spec.distilled_lora_strength;
    if (spec.distilled_lora_strength != 0.0) stage.distilled_lora = inputs_.distilled_lora;
    return stage;
  }

 private:
  absl::StatusOr<std::vector<float>> Sigmas(const StageRecipe& recipe,
                                            const StageSpec& stage) const {
    switch (recipe.schedule) {
      case StageSchedule::kDistilled:
        return std::vector<float>(sampling::kDistilledSigmas.begin(),
                                  sampling::kDistilledSigmas.end());
      case StageSchedule::kDistilledStage2:
        return std::vector<float>(sampling::kDistilledStage2Sigmas.begin(),
                                  sampling::kDistilledStage2Sigmas.end());
      case StageSchedule::kLtx2:
      case StageSchedule::kLtx2Tokens:
        break;
    }
    sampling::Ltx2ScheduleOptions options;
    if (recipe.schedule == StageSchedule::kLtx2Tokens) options.tokens = stage.video.tokens();
    return sampling::Ltx2Schedule(static_cast<int>(parameters_.guidance->num_inference_steps),
                                  options);
  }

  sampling::Sampler SamplerOf(const StageRecipe& recipe) const {
    sampling::Sampler sampler;
    switch (recipe.sampler) {
      case StageSampler::kEuler:
        break;
      case StageSampler::kEulerAncestralSince25:
        if (inputs_.ancestral_stage_1.value_or(inputs_.model_version >= AncestralSince())) {
          sampler.kind = sampling::Sampler::Kind::kEulerAncestral;
        }
        break;
      case StageSampler::kRes2s:
        return sampling::Sampler::Res2s();
    }
    return sampler;
  }

  const GenerationRequest& request_;
  const PlanInputs& inputs_;
  const EffectiveParameters& parameters_;
  const RecipeTraits& traits_;
};

std::string DecodeLayout(const EffectiveParameters& p) {
  if (!p.has_video) return "";
  const bool tiled_there =
      p.num_frames > kReferenceTileFrames || std::max(p.height, p.width) > kReferenceTilePixels;
  return tiled_there ? absl::StrCat("untiled (the reference decodes more than ",
                                    kReferenceTileFrames, " frames or ", kReferenceTilePixels,
                                    " pixels in tiles, which changes the picture near seams)")
                     : "untiled";
}

EffectiveParameters Resolve(const GenerationRequest& request, const PlanInputs& inputs) {
  const RecipeTraits& traits = TraitsOf(request.recipe);
  EffectiveParameters p;
  p.recipe = request.recipe;
  p.parameter_set = std::string(ParametersFor(traits, inputs.model_version).name);
  p.height = request.height;
  p.width = request.width;
  p.num_frames = request.num_frames;
  p.frame_rate = request.frame_rate;
  p.has_video = traits.video;
  p.has_audio = !request.video_only;
  p.seed = request.seed;
  p.loop_seed = traits.stages[0].sampler == StageSampler::kRes2s ? kRes2sLoopSeed
                                                                 : request.seed + kLoopSeedOffset;
  p.noise_generator = request.noise_generator.value_or(inputs.on_cuda ? NoiseGenerator::kTorchCuda
                                                                      : NoiseGenerator::kTorchCpu);
  p.noise_dtype = request.noise_dtype.value_or(inputs.compute_dtype);
  p.noise_multiprocessors = inputs.cuda_launch_shape.multiprocessors;
  p.noise_threads_per_multiprocessor = inputs.cuda_launch_shape.threads_per_multiprocessor;
  p.compute_dtype = inputs.compute_dtype;
  p.video_decode_layout = DecodeLayout(p);
  if (traits.full_model && inputs.model_kind == checkpoint::ModelKind::kDistilled) {
    p.warnings.push_back(absl::StrCat("recipe ", traits.name,
                                      " is made for the full model; this one was distilled to a "
                                      "few unguided steps, so guidance acts on it differently"));
  }
  return p;
}

}  // namespace

absl::StatusOr<RecipePlan> MakePlan(const GenerationRequest& request, const PlanInputs& inputs) {
  const RecipeTraits& traits = TraitsOf(request.recipe);
  RecipePlan plan;
  plan.parameters = Resolve(request, inputs);
  EffectiveParameters& p = plan.parameters;
  if (traits.guided()) {
    LTX_ASSIGN_OR_RETURN(
        p.guidance,
        ResolveGuidance(request, ParametersFor(traits, inputs.model_version), inputs.num_blocks));
  }
  const StageBuilder builder(request, inputs, p);
  for (int number = 1; number <= traits.num_stages; ++number) {
    LTX_ASSIGN_OR_RETURN(StageSpec stage, builder.Build(number));
    if (number == 1 && p.guidance.has_value()) {
      p.guidance->batched = ChooseBatched(request.guidance_batching, stage);
      stage.batched = p.guidance->batched;
    }
    p.stages.push_back(builder.Describe(stage));
    plan.stages.push_back(std::move(stage));
  }

  if (request.enhance_prompt && inputs.encode_prompt) {
    p.enhancement.emplace().max_new_tokens = inputs.max_enhancement_tokens;
    AddUnits(Phase::kEnhance, static_cast<int>(inputs.max_enhancement_tokens), &plan.units);
  }
  if (inputs.encode_prompt) AddUnits(Phase::kText, NeedsNegative(p) ? 2 : 1, &plan.units);
  std::vector<WorkUnit> fusions;
  AddUnits(Phase::kFuse,
           static_cast<int>(std::count_if(
               plan.stages.begin(), plan.stages.end(),
               [](const StageSpec& stage) { return stage.distilled_lora_strength != 0.0; })),
           &fusions);
  if (!fusions.empty()) p.fused_transformer_bytes = inputs.fused_transformer_bytes;
  auto fusion = fusions.begin();
  for (const StageSpec& stage : plan.stages) {
    if (stage.number == 2) AddUnits(Phase::kUpsample, p.has_video ? 1 : 0, &plan.units);
    if (stage.distilled_lora_strength != 0.0) plan.units.push_back(*fusion++);
    const std::vector<WorkUnit> forwards =
        StageForwards(stage, stage.number == 1 ? Phase::kStage1 : Phase::kStage2);
    plan.units.insert(plan.units.end(), forwards.begin(), forwards.end());
  }
  if (p.has_video) AddUnits(Phase::kVideoDecode, 1, &plan.units);
  if (p.has_audio) AddUnits(Phase::kAudioDecode, 1, &plan.units);
  return plan;
}

absl::Status SetPhaseUnits(Phase phase, int64_t count, int completed, std::vector<WorkUnit>* plan) {
  const auto is_phase = [phase](const WorkUnit& unit) { return unit.phase == phase; };
  const auto begin = std::find_if(plan->begin(), plan->end(), is_phase);
  if (count < 1 || begin - plan->begin() != completed) {
    return absl::InternalError(absl::StrCat("cannot give phase ", PhaseName(phase), " ", count,
                                            " units after ", completed, " units"));
  }
  std::vector<WorkUnit> units;
  AddUnits(phase, static_cast<int>(count), &units);
  const auto position = plan->erase(begin, std::find_if_not(begin, plan->end(), is_phase));
  plan->insert(position, units.begin(), units.end());
  return absl::OkStatus();
}

absl::Status EndPhase(int completed, std::vector<WorkUnit>* plan) {
  if (completed < 1 || completed > static_cast<int>(plan->size())) {
    return absl::InternalError(absl::StrCat("no unit ", completed, " in a plan of ", plan->size()));
  }
  const Phase phase = (*plan)[completed - 1].phase;
  const int count = (*plan)[completed - 1].index;
  const auto rest = plan->begin() + completed;
  plan->erase(rest, std::find_if(rest, plan->end(),
                                 [phase](const WorkUnit& unit) { return unit.phase != phase; }));
  for (int i = completed - count; i < completed; ++i) (*plan)[i].count = count;
  return absl::OkStatus();
}

}  // namespace ltx::pipeline
