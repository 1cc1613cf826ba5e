#include "engine/pipeline/recipe_plan.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/sampling/latent_geometry.h"
#include "engine/sampling/schedules.h"

namespace ltx::pipeline {
namespace {

// Keeps the loop's first draw apart from the starting noise, which has the same shape (reference:
// distilled.py:ANCESTRAL_NOISE_SEED_OFFSET).
constexpr uint64_t kLoopSeedOffset = 10000;

// From here on the reference decodes in tiles: 80 frames and 768 pixels are its tile extents.
constexpr int64_t kReferenceTileFrames = 80;
constexpr int64_t kReferenceTilePixels = 768;

void AddUnits(Phase phase, int count, std::vector<WorkUnit>* units) {
  for (int i = 1; i <= count; ++i) units->push_back({phase, i, count});
}

StageSpec MakeStage(const GenerationRequest& request, int number, int64_t divisor) {
  StageSpec stage;
  stage.number = number;
  stage.video = sampling::LatentExtentsOf(request.num_frames, request.height / divisor,
                                          request.width / divisor);
  stage.frame_rate = request.frame_rate.value();
  stage.audio_tokens =
      sampling::AudioLatentFrames(static_cast<double>(request.num_frames) / stage.frame_rate);
  return stage;
}

EffectiveParameters::Stage Describe(const StageSpec& spec, int64_t height, int64_t width) {
  EffectiveParameters::Stage stage;
  stage.height = height;
  stage.width = width;
  stage.sampler = spec.sampler.ToString();
  stage.sigmas = spec.sigmas;
  stage.noise_scale = spec.noise_scale;
  stage.video_tokens = spec.video.tokens();
  stage.audio_tokens = spec.audio_tokens;
  return stage;
}

std::string DecodeLayout(const GenerationRequest& request) {
  const bool tiled_there = request.num_frames > kReferenceTileFrames ||
                           std::max(request.height, request.width) > kReferenceTilePixels;
  return tiled_there ? absl::StrCat("untiled (the reference decodes more than ",
                                    kReferenceTileFrames, " frames or ", kReferenceTilePixels,
                                    " pixels in tiles, which changes the picture near seams)")
                     : "untiled";
}

}  // namespace

RecipePlan MakePlan(const GenerationRequest& request, const PlanInputs& inputs) {
  const bool two_stage = request.recipe == Recipe::kDistilled;
  RecipePlan plan;
  EffectiveParameters& p = plan.parameters;
  p.recipe = request.recipe;
  p.height = request.height;
  p.width = request.width;
  p.num_frames = request.num_frames;
  p.frame_rate = request.frame_rate;
  p.seed = request.seed;
  p.loop_seed = request.seed + kLoopSeedOffset;
  p.noise_generator = request.noise_generator.value_or(inputs.on_cuda ? NoiseGenerator::kTorchCuda
                                                                      : NoiseGenerator::kTorchCpu);
  p.noise_dtype = request.noise_dtype.value_or(inputs.compute_dtype);
  p.noise_multiprocessors = inputs.cuda_launch_shape.multiprocessors;
  p.noise_threads_per_multiprocessor = inputs.cuda_launch_shape.threads_per_multiprocessor;
  p.compute_dtype = inputs.compute_dtype;
  p.video_decode_layout = DecodeLayout(request);

  const int64_t divisor = two_stage ? 2 : 1;
  StageSpec first = MakeStage(request, 1, divisor);
  first.sigmas.assign(sampling::kDistilledSigmas.begin(), sampling::kDistilledSigmas.end());
  first.sampler.kind = inputs.ancestral_stage_1 ? sampling::Sampler::Kind::kEulerAncestral
                                                : sampling::Sampler::Kind::kEuler;
  plan.stages.push_back(first);
  p.stages.push_back(Describe(first, request.height / divisor, request.width / divisor));
  if (two_stage) {
    StageSpec second = MakeStage(request, 2, 1);
    second.sigmas.assign(sampling::kDistilledStage2Sigmas.begin(),
                         sampling::kDistilledStage2Sigmas.end());
    // The starting point is noised to the first level of its schedule; too few steps follow to
    // remove freshly injected noise, so this stage is always deterministic.
    second.noise_scale = second.sigmas.front();
    plan.stages.push_back(second);
    p.stages.push_back(Describe(second, request.height, request.width));
  }

  if (inputs.encode_prompt) AddUnits(Phase::kText, 1, &plan.units);
  AddUnits(Phase::kStage1, static_cast<int>(plan.stages[0].sigmas.size()) - 1, &plan.units);
  if (two_stage) {
    AddUnits(Phase::kUpsample, 1, &plan.units);
    AddUnits(Phase::kStage2, static_cast<int>(plan.stages[1].sigmas.size()) - 1, &plan.units);
  }
  AddUnits(Phase::kVideoDecode, 1, &plan.units);
  AddUnits(Phase::kAudioDecode, 1, &plan.units);
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

}  // namespace ltx::pipeline
