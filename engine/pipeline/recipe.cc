#include "engine/pipeline/recipe.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/pipeline/error_details.h"

namespace ltx::pipeline {
namespace {

// The video VAE compresses space by 32.
constexpr int64_t kSpaceStep = 32;

// The reference's default for an adapter, and its high-quality preset's for the two stages.
constexpr double kLoraStrength = 1.0;
constexpr double kHqLoraStrength1 = 0.25;
constexpr double kHqLoraStrength2 = 0.5;

constexpr StageRecipe kDistilledHalf = {2, StageSchedule::kDistilled,
                                        StageSampler::kEulerAncestralSince25};
constexpr StageRecipe kDistilledFull = {1, StageSchedule::kDistilled,
                                        StageSampler::kEulerAncestralSince25};
constexpr StageRecipe kRefine = {1, StageSchedule::kDistilledStage2, StageSampler::kEuler};
constexpr StageRecipe kGuidedFull = {1, StageSchedule::kLtx2, StageSampler::kEuler, true};
constexpr StageRecipe kGuidedHalf = {2, StageSchedule::kLtx2, StageSampler::kEuler, true};
constexpr StageRecipe kRefineLora = {1, StageSchedule::kDistilledStage2, StageSampler::kEuler,
                                     false, kLoraStrength};
constexpr StageRecipe kHqHalf = {2, StageSchedule::kLtx2Tokens, StageSampler::kRes2s, true,
                                 kHqLoraStrength1};
constexpr StageRecipe kHqRefine = {1, StageSchedule::kDistilledStage2, StageSampler::kRes2s, false,
                                   kHqLoraStrength2};

// Sources: the reference's distilled.py, ti2vid_one_stage.py, ti2vid_two_stages.py,
// ti2vid_two_stages_hq.py and t2a_one_stage.py; "distilled_one_stage" is the first stage of
// distilled.py at full size.
constexpr RecipeTraits kTable[kRecipeCount] = {
    {Recipe::kDistilled,
     "distilled",
     "Eight steps at half the width and height, the x2 latent upsampler, then three steps at full "
     "size. Needs a distilled model and a spatial upsampler; no guidance, so each step is one "
     "pass.",
     2,
     {kDistilledHalf, kRefine},
     true,
     2,
     false,
     false},
    {Recipe::kDistilledOneStage,
     "distilled_one_stage",
     "The eight distilled steps at full size, decoded at once. Needs a distilled model.",
     1,
     {kDistilledFull},
     true,
     1,
     false,
     false},
    {Recipe::kOneStage,
     "one_stage",
     "The full model at full size along the LTX2 schedule, guided by the negative prompt (CFG), by "
     "perturbed blocks (STG) and by isolated modalities: up to four passes a step.",
     1,
     {kGuidedFull},
     true,
     1,
     true,
     false},
    {Recipe::kTwoStage,
     "two_stage",
     "A guided stage at half size as in one_stage, the x2 latent upsampler, then three unguided "
     "steps at full size with the distilled LoRA fused in. The sound is that of the first stage.",
     2,
     {kGuidedHalf, kRefineLora},
     true,
     1,
     true,
     false},
    {Recipe::kTwoStageHq,
     "two_stage_hq",
     "Two stages with the second-order sampler res_2s, few steps and the distilled LoRA in both, "
     "weaker in the first; without STG by default. The sound is that of the first stage.",
     2,
     {kHqHalf, kHqRefine},
     true,
     1,
     true,
     true},
    {Recipe::kT2a,
     "t2a",
     "Sound alone, by the audio half of the full model, as long as num_frames / frame_rate; guided "
     "by the negative prompt and by perturbed blocks. Written as a WAV file.",
     1,
     {kGuidedFull},
     false,
     1,
     true,
     false},
};

// Names of reference pipelines that this service does not have yet.
constexpr absl::string_view kUnbuilt[] = {
    "dfr", "keyframe_interpolation", "a2vid", "ic_lora", "dubit", "retake", "hdr_ic_lora"};

}  // namespace

bool RecipeTraits::needs_distilled_lora() const {
  return std::any_of(Stages().begin(), Stages().end(),
                     [](const StageRecipe& stage) { return stage.distilled_lora_strength != 0.0; });
}

const RecipeTraits& TraitsOf(Recipe recipe) { return kTable[static_cast<int>(recipe)]; }

absl::Span<const RecipeTraits> AllRecipes() { return kTable; }

std::string RecipeNames() {
  return absl::StrJoin(AllRecipes(), ", ", [](std::string* out, const RecipeTraits& traits) {
    absl::StrAppend(out, traits.name);
  });
}

absl::string_view RecipeName(Recipe recipe) { return TraitsOf(recipe).name; }

absl::StatusOr<Recipe> ParseRecipe(absl::string_view name) {
  for (const RecipeTraits& traits : kTable) {
    if (name == traits.name) return traits.recipe;
  }
  if (std::find(std::begin(kUnbuilt), std::end(kUnbuilt), name) != std::end(kUnbuilt)) {
    return WithDetail(
        absl::UnimplementedError(
            absl::StrCat("recipe '", name, "' is not implemented; there are: ", RecipeNames())),
        {std::string(kReasonUnknownValue), "recipe", std::string(name), RecipeNames()});
  }
  return UnknownNameError("recipe", name, RecipeNames());
}

int64_t SizeMultiple(Recipe recipe) { return TraitsOf(recipe).stages[0].size_divisor * kSpaceStep; }

}  // namespace ltx::pipeline
