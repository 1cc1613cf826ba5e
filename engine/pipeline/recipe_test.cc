#include "engine/pipeline/recipe.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "engine/pipeline/error_details.h"

namespace ltx::pipeline {
namespace {

TEST(RecipeTest, TheTableStandsInTheOrderOfTheEnum) {
  std::set<std::string> names;
  int index = 0;
  for (const RecipeTraits& traits : AllRecipes()) {
    EXPECT_EQ(static_cast<int>(traits.recipe), index++);
    EXPECT_EQ(&TraitsOf(traits.recipe), &traits);
    EXPECT_TRUE(names.insert(std::string(traits.name)).second) << traits.name;
    EXPECT_FALSE(traits.summary.empty());
    EXPECT_EQ(*ParseRecipe(traits.name), traits.recipe);
    EXPECT_EQ(RecipeName(traits.recipe), traits.name);
    // What is shipped must be made, and the finished size is that of the last stage.
    EXPECT_LE(traits.audio_stage, traits.num_stages);
    EXPECT_EQ(traits.Stages().back().size_divisor, 1);
  }
  EXPECT_EQ(index, kRecipeCount);
}

TEST(RecipeTest, SizesAreMultiplesOfWhatTheFirstStageNeeds) {
  EXPECT_EQ(SizeMultiple(Recipe::kDistilled), 64);
  EXPECT_EQ(SizeMultiple(Recipe::kDistilledOneStage), 32);
  EXPECT_EQ(SizeMultiple(Recipe::kOneStage), 32);
  EXPECT_EQ(SizeMultiple(Recipe::kTwoStage), 64);
  EXPECT_EQ(SizeMultiple(Recipe::kTwoStageHq), 64);
}

TEST(RecipeTest, AdaptersAsTheReferenceUsesThem) {
  EXPECT_FALSE(TraitsOf(Recipe::kDistilled).needs_distilled_lora());
  EXPECT_FALSE(TraitsOf(Recipe::kOneStage).needs_distilled_lora());
  EXPECT_FALSE(TraitsOf(Recipe::kT2a).needs_distilled_lora());
  const RecipeTraits& two = TraitsOf(Recipe::kTwoStage);
  EXPECT_EQ(two.stages[0].distilled_lora_strength, 0.0);
  EXPECT_EQ(two.stages[1].distilled_lora_strength, 1.0);
  const RecipeTraits& hq = TraitsOf(Recipe::kTwoStageHq);
  EXPECT_EQ(hq.stages[0].distilled_lora_strength, 0.25);
  EXPECT_EQ(hq.stages[1].distilled_lora_strength, 0.5);
}

TEST(RecipeTest, UnknownAndUnbuiltNames) {
  const auto unknown = ParseRecipe("destilled");
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(GetErrorDetail(unknown.status())->field, "recipe");
  EXPECT_NE(GetErrorDetail(unknown.status())->legal.find("two_stage_hq"), std::string::npos);
  const auto unbuilt = ParseRecipe("dfr");
  EXPECT_EQ(unbuilt.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(GetErrorDetail(unbuilt.status())->value, "dfr");
}

}  // namespace
}  // namespace ltx::pipeline
