#include "client/recipe_help.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "engine/checkpoint/model_version.h"
#include "engine/pipeline/parameter_set.h"
#include "engine/pipeline/recipe.h"
#include "engine/pipeline/request_fields.h"

namespace ltx::client {
namespace {

using pipeline::ParameterSet;
using pipeline::RecipeTraits;
using pipeline::StageRecipe;
using pipeline::StageSampler;
using pipeline::StageSchedule;

/// First versions of the generations whose defaults differ.
const std::vector<checkpoint::ModelVersion>& Generations() {
  static const auto* const versions =
      new std::vector<checkpoint::ModelVersion>{{2, 0}, {2, 3}, {2, 5}};
  return *versions;
}

std::string Models(const RecipeTraits& recipe) {
  std::vector<std::string> needs = {recipe.full_model ? "the full model" : "a distilled model"};
  if (recipe.two_stages()) needs.push_back("a spatial upsampler");
  if (recipe.needs_distilled_lora()) needs.push_back("the distilled LoRA");
  return absl::StrJoin(needs, ", ");
}

std::string Schedule(StageSchedule schedule) {
  switch (schedule) {
    case StageSchedule::kDistilled:
      return "8 fixed steps";
    case StageSchedule::kDistilledStage2:
      return "3 fixed steps from a partly noised latent";
    case StageSchedule::kLtx2:
      return "LTX2 schedule for 4096 tokens";
    case StageSchedule::kLtx2Tokens:
      return "LTX2 schedule for the stage's own tokens";
  }
  return "";
}

std::string Sampler(StageSampler sampler) {
  switch (sampler) {
    case StageSampler::kEuler:
      return "Euler";
    case StageSampler::kEulerAncestralSince25:
      return "ancestral Euler from 2.5 on, else Euler";
    case StageSampler::kRes2s:
      return "res_2s, two evaluations a step";
  }
  return "";
}

std::string Stage(const StageRecipe& stage) {
  std::string text = absl::StrCat(stage.size_divisor == 1 ? "full size" : "half size", "; ",
                                  Schedule(stage.schedule), "; ", Sampler(stage.sampler), "; ",
                                  stage.guided ? "guided" : "unguided");
  if (stage.distilled_lora_strength != 0.0) {
    absl::StrAppend(&text, "; distilled LoRA at ", stage.distilled_lora_strength);
  }
  return text;
}

std::string Guidance(const sampling::GuiderParams& settings, bool has_other) {
  std::string text = absl::StrCat("cfg ", settings.cfg_scale, ", stg ", settings.stg_scale);
  if (!settings.stg_blocks->empty()) {
    absl::StrAppend(&text, " in block ", absl::StrJoin(*settings.stg_blocks, ", "));
  }
  absl::StrAppend(&text, ", rescale ", settings.rescale_scale);
  if (has_other) absl::StrAppend(&text, ", modality ", settings.modality_scale);
  return text;
}

void Line(absl::string_view label, absl::string_view text, std::string* out) {
  absl::StrAppend(out, "  ", label, std::string(12 - label.size(), ' '), text, "\n");
}

void AppendDefaults(const RecipeTraits& recipe, std::string* out) {
  std::string previous;
  for (const checkpoint::ModelVersion& version : Generations()) {
    const ParameterSet set = pipeline::ParametersFor(recipe, version);
    std::string text;
    if (recipe.video) absl::StrAppend(&text, set.width, " x ", set.height, ", ");
    absl::StrAppend(&text, set.num_frames, " frames at 24 per second, seed ", set.seed);
    if (recipe.guided()) {
      absl::StrAppend(&text, ", ", set.num_inference_steps, " steps");
      if (recipe.video) {
        absl::StrAppend(&text, "\n              picture: ", Guidance(set.guidance.video, true));
      }
      absl::StrAppend(&text, "\n              sound: ", Guidance(set.guidance.audio, recipe.video));
    }
    if (text == previous) continue;
    const std::string from = absl::StrCat("from ", absl::StrJoin(version, "."));
    Line(recipe.hq_preset || !recipe.guided() ? "defaults" : from, text, out);
    previous = text;
  }
}

std::string Flags(const RecipeTraits& recipe) {
  std::vector<std::string> flags;
  for (const pipeline::RequestField& field : pipeline::RecipeDependentFields()) {
    if (!field.honoured(recipe, pipeline::GenerationRequest())) continue;
    flags.push_back(absl::StrCat("--", absl::StrReplaceAll(field.name, {{"_", "-"}})));
  }
  return absl::StrJoin(flags, " ");
}

}  // namespace

std::string RecipeHelp(absl::string_view name) {
  std::string text;
  for (const RecipeTraits& recipe : pipeline::AllRecipes()) {
    if (recipe.name != name) continue;
    absl::StrAppend(&text, "Recipe ", recipe.name, ": ", recipe.summary, "\n");
    Line("needs", Models(recipe), &text);
    for (int i = 0; i < recipe.num_stages; ++i) {
      Line(absl::StrCat("stage ", i + 1), Stage(recipe.stages[i]), &text);
    }
    if (recipe.two_stages()) Line("sound", absl::StrCat("of stage ", recipe.audio_stage), &text);
    AppendDefaults(recipe, &text);
    Line("takes", Flags(recipe), &text);
    return text;
  }
  absl::StrAppend(&text, "Recipes (--recipe NAME --help tells more):\n");
  for (const RecipeTraits& recipe : pipeline::AllRecipes()) {
    absl::StrAppend(&text, "  ", recipe.name, "\n      ", recipe.summary, "\n");
  }
  return text;
}

}  // namespace ltx::client
