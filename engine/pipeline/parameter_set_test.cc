#include "engine/pipeline/parameter_set.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "engine/checkpoint/model_version.h"
#include "engine/pipeline/recipe.h"

namespace ltx::pipeline {
namespace {

ParameterSet SetFor(Recipe recipe, const std::string& version) {
  return ParametersFor(TraitsOf(recipe), checkpoint::ParseModelVersionForDefaults(version));
}

TEST(ParameterSetTest, TheNewestSetThatIsNotNewerThanTheModel) {
  for (const auto& [version, name, steps, block] :
       {std::tuple<std::string, std::string, int64_t, int64_t>{"", "ltx-2.0", 40, 29},
        {"experimental", "ltx-2.0", 40, 29},
        {"2.0", "ltx-2.0", 40, 29},
        {"2.2.9", "ltx-2.0", 40, 29},
        {"2.3.0", "ltx-2.3", 30, 28},
        {"2.3.rc1", "ltx-2.3", 30, 28},
        {"2.4-rc2", "ltx-2.4", 30, 28},
        {"2.5.1", "ltx-2.4", 30, 28},
        {"3.0", "ltx-2.4", 30, 28}}) {
    const ParameterSet set = SetFor(Recipe::kOneStage, version);
    EXPECT_EQ(set.name, name) << version;
    EXPECT_EQ(set.num_inference_steps, steps) << version;
    EXPECT_EQ(set.guidance.video.stg_blocks, std::vector<int64_t>{block}) << version;
    EXPECT_EQ(set.guidance.audio.stg_blocks, std::vector<int64_t>{block}) << version;
    EXPECT_EQ(set.guidance.video.cfg_scale, 3.0);
    EXPECT_EQ(set.guidance.audio.cfg_scale, 7.0);
    EXPECT_EQ(set.guidance.video.stg_scale, 1.0);
    EXPECT_EQ(set.guidance.video.rescale_scale, 0.7);
    EXPECT_EQ(set.guidance.audio.modality_scale, 3.0);
    EXPECT_EQ(set.seed, 10u);
  }
}

TEST(ParameterSetTest, SizesFollowTheStages) {
  EXPECT_EQ(SetFor(Recipe::kOneStage, "2.5").height, 512);
  EXPECT_EQ(SetFor(Recipe::kOneStage, "2.5").width, 768);
  EXPECT_EQ(SetFor(Recipe::kTwoStage, "2.5").height, 1024);
  EXPECT_EQ(SetFor(Recipe::kDistilled, "2.5").width, 1536);
  EXPECT_EQ(SetFor(Recipe::kTwoStageHq, "2.5").height, 1088);
  EXPECT_EQ(SetFor(Recipe::kTwoStageHq, "2.5").width, 1920);
}

TEST(ParameterSetTest, TheHighQualityPresetIsTheSameForEveryModel) {
  for (const char* version : {"", "2.3.0", "2.5.1"}) {
    const ParameterSet set = SetFor(Recipe::kTwoStageHq, version);
    EXPECT_EQ(set.name, "hq");
    EXPECT_EQ(set.num_inference_steps, 15);
    EXPECT_EQ(set.guidance.video.stg_scale, 0.0);
    EXPECT_TRUE(set.guidance.video.stg_blocks->empty());
    EXPECT_EQ(set.guidance.video.rescale_scale, 0.45);
    EXPECT_EQ(set.guidance.audio.rescale_scale, 1.0);
    EXPECT_EQ(set.guidance.audio.cfg_scale, 7.0);
  }
}

TEST(ParameterSetTest, BlocksMoveToTheSameDepthOfASmallModel) {
  EXPECT_EQ(BlocksFor({28}, 48), (std::vector<int64_t>{28}));
  EXPECT_EQ(BlocksFor({29, 3}, 48), (std::vector<int64_t>{29, 3}));
  EXPECT_EQ(BlocksFor({28}, 4), (std::vector<int64_t>{2}));
  EXPECT_EQ(BlocksFor({29}, 3), (std::vector<int64_t>{1}));
  EXPECT_EQ(BlocksFor({}, 4), (std::vector<int64_t>{}));
}

}  // namespace
}  // namespace ltx::pipeline
