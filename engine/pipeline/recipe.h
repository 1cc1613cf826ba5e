#ifndef LTX_ENGINE_PIPELINE_RECIPE_H_
#define LTX_ENGINE_PIPELINE_RECIPE_H_

#include <array>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace ltx::pipeline {

/// How a prompt becomes a clip. What each one does stands in the table behind TraitsOf().
enum class Recipe : uint8_t {
  kDistilled,
  kDistilledOneStage,
  kOneStage,
  kTwoStage,
  kTwoStageHq,
  kT2a
};
inline constexpr int kRecipeCount = 6;

/// Where the noise levels of a stage come from.
enum class StageSchedule : uint8_t {
  kDistilled,        ///< The fixed list of eight steps.
  kDistilledStage2,  ///< The fixed list of three steps, from a partly noised latent.
  kLtx2,             ///< The LTX2 formula for 4096 tokens, whatever the size; free step count.
  kLtx2Tokens,       ///< The same formula for the stage's own video tokens.
};

enum class StageSampler : uint8_t {
  kEuler,
  kEulerAncestralSince25,  ///< Ancestral for models from 2.5 on, else plain Euler.
  kRes2s,
};

/// One denoising stage of a recipe.
struct StageRecipe {
  /// 2: half the width and height of the finished clip.
  int size_divisor = 1;
  StageSchedule schedule = StageSchedule::kDistilled;
  StageSampler sampler = StageSampler::kEuler;
  /// Guided stages evaluate several passes and honour the guidance fields.
  bool guided = false;
  /// Default strength of the distilled LoRA that the stage runs with; 0: the model as it is.
  double distilled_lora_strength = 0.0;
};

/// A recipe as data: every difference between recipes is read from here.
struct RecipeTraits {
  Recipe recipe = Recipe::kDistilled;
  /// Part of the public interface.
  absl::string_view name;
  /// One sentence for people.
  absl::string_view summary;
  int num_stages = 1;
  std::array<StageRecipe, 2> stages;
  /// False: sound only, and no field of the picture means anything.
  bool video = true;
  /// The stage whose sound is shipped, from 1.
  int audio_stage = 1;
  /// Made for the full model; a distilled one runs it when asked, with a warning. The others need a
  /// distilled model.
  bool full_model = false;
  /// Takes the fixed values of the high-quality preset instead of the model generation's.
  bool hq_preset = false;

  absl::Span<const StageRecipe> Stages() const {
    return absl::MakeConstSpan(stages.data(), num_stages);
  }
  bool two_stages() const { return num_stages > 1; }
  bool guided() const { return stages[0].guided; }
  /// The number of steps is the request's to choose.
  bool free_schedule() const { return stages[0].schedule != StageSchedule::kDistilled; }
  bool needs_distilled_lora() const;
};

const RecipeTraits& TraitsOf(Recipe recipe);
/// All recipes, in the order in which they are listed to people.
absl::Span<const RecipeTraits> AllRecipes();

absl::string_view RecipeName(Recipe recipe);
/// "distilled, distilled_one_stage, ...".
std::string RecipeNames();
/// INVALID_ARGUMENT listing the known names; UNIMPLEMENTED for those that are known but not built.
absl::StatusOr<Recipe> ParseRecipe(absl::string_view name);

/// Divisor of width and height: 64 for a recipe that starts at half size, else 32.
int64_t SizeMultiple(Recipe recipe);

}  // namespace ltx::pipeline

#endif  // LTX_ENGINE_PIPELINE_RECIPE_H_
