#include "client/recipe_help.h"

#include <string>

#include "engine/pipeline/recipe.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(RecipeHelpTest, EveryRecipeIsExplainedByName) {
  for (const pipeline::RecipeTraits& recipe : pipeline::AllRecipes()) {
    EXPECT_THAT(pipeline::RecipeNames(), HasSubstr(std::string(recipe.name)));
    EXPECT_THAT(RecipeHelp(""), HasSubstr(std::string(recipe.name)));
    EXPECT_THAT(RecipeHelp(recipe.name), AllOf(HasSubstr(std::string(recipe.summary)),
                                               HasSubstr("needs"), HasSubstr("stage 1")));
  }
}

TEST(RecipeHelpTest, TellsDefaultsAndFlags) {
  EXPECT_THAT(RecipeHelp("one_stage"),
              AllOf(HasSubstr("40 steps"), HasSubstr("30 steps"), HasSubstr("stg 1 in block 28"),
                    HasSubstr("--negative-prompt"), Not(HasSubstr("--distilled-lora")),
                    Not(HasSubstr("--num-generated-keyframes"))));
  EXPECT_THAT(RecipeHelp("two_stage_hq"),
              AllOf(HasSubstr("distilled LoRA at 0.25"), HasSubstr("1920 x 1088"),
                    HasSubstr("--distilled-lora-strength-stage-1")));
  EXPECT_THAT(RecipeHelp("distilled"), Not(HasSubstr("--negative-prompt")));
  EXPECT_THAT(RecipeHelp("t2a"), AllOf(Not(HasSubstr("--width")), Not(HasSubstr("picture:"))));
}

}  // namespace
}  // namespace ltx::client
