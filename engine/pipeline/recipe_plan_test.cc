#include "engine/pipeline/recipe_plan.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ltx::pipeline {
namespace {

GenerationRequest Request(Recipe recipe) {
  GenerationRequest request;
  request.prompt = "a";
  request.height = 192;
  request.width = 256;
  request.num_frames = 17;
  request.seed = 7;
  request.recipe = recipe;
  return request;
}

std::string Units(const std::vector<WorkUnit>& units) {
  std::string text;
  for (const WorkUnit& unit : units) {
    text += std::string(PhaseName(unit.phase)) + std::to_string(unit.index) + "/" +
            std::to_string(unit.count) + " ";
  }
  return text;
}

TEST(RecipePlanTest, TwoStages) {
  PlanInputs inputs;
  inputs.ancestral_stage_1 = true;
  const RecipePlan plan = *MakePlan(Request(Recipe::kDistilled), inputs);
  EXPECT_EQ(Units(plan.units),
            "text1/1 stage11/8 stage12/8 stage13/8 stage14/8 stage15/8 stage16/8 stage17/8 "
            "stage18/8 upsample1/1 stage21/3 stage22/3 stage23/3 vdecode1/1 adecode1/1 ");
  ASSERT_EQ(plan.stages.size(), 2u);
  EXPECT_EQ(plan.stages[0].video.tokens(), 3 * 3 * 4);
  EXPECT_EQ(plan.stages[1].video.tokens(), 3 * 6 * 8);
  EXPECT_EQ(plan.stages[0].audio_tokens, 18);
  EXPECT_EQ(plan.stages[1].audio_tokens, 18);
  EXPECT_EQ(plan.stages[0].noise_scale, 1.0f);
  EXPECT_EQ(plan.stages[1].noise_scale, 0.909375f);
  EXPECT_EQ(plan.parameters.stages[0].sampler, "euler_ancestral eta=1 s_noise=1");
  EXPECT_EQ(plan.parameters.stages[1].sampler, "euler");
  EXPECT_EQ(plan.parameters.stages[0].height, 96);
  EXPECT_EQ(plan.parameters.stages[1].width, 256);
  EXPECT_EQ(plan.parameters.loop_seed, 10007u);
  EXPECT_EQ(plan.parameters.video_decode_layout, "untiled");
}

TEST(RecipePlanTest, OneStageRunsAtFullSize) {
  const RecipePlan plan = *MakePlan(Request(Recipe::kDistilledOneStage), {});
  ASSERT_EQ(plan.stages.size(), 1u);
  EXPECT_EQ(plan.stages[0].video.tokens(), 3 * 6 * 8);
  EXPECT_EQ(plan.stages[0].sampler.kind, sampling::Sampler::Kind::kEuler);
  EXPECT_EQ(plan.units.size(), 1u + 8 + 1 + 1);
}

TEST(RecipePlanTest, NoiseFollowsTheDeviceUnlessAsked) {
  PlanInputs inputs;
  inputs.compute_dtype = DType::kBF16;
  inputs.on_cuda = true;
  GenerationRequest request = Request(Recipe::kDistilled);
  EXPECT_EQ(MakePlan(request, inputs)->parameters.noise_generator, NoiseGenerator::kTorchCuda);
  EXPECT_EQ(MakePlan(request, inputs)->parameters.noise_dtype, DType::kBF16);
  request.noise_generator = NoiseGenerator::kTorchCpu;
  request.noise_dtype = DType::kF32;
  EXPECT_EQ(MakePlan(request, inputs)->parameters.noise_generator, NoiseGenerator::kTorchCpu);
  EXPECT_EQ(MakePlan(request, inputs)->parameters.noise_dtype, DType::kF32);
}

TEST(RecipePlanTest, LoopSeedWraps) {
  GenerationRequest request = Request(Recipe::kDistilled);
  request.seed = ~uint64_t{0};
  EXPECT_EQ(MakePlan(request, {})->parameters.loop_seed, 9999u);
}

TEST(RecipePlanTest, SaysWhereTheReferenceWouldTile) {
  GenerationRequest request = Request(Recipe::kDistilled);
  request.num_frames = 73;
  request.width = 768;
  EXPECT_EQ(MakePlan(request, {})->parameters.video_decode_layout, "untiled");
  request.num_frames = 81;
  EXPECT_NE(MakePlan(request, {})->parameters.video_decode_layout, "untiled");
  request.num_frames = 73;
  request.width = 832;
  EXPECT_NE(MakePlan(request, {})->parameters.video_decode_layout, "untiled");
}

TEST(RecipePlanTest, AncestralFrom25On) {
  PlanInputs inputs;
  const auto sampler = [&inputs](const checkpoint::ModelVersion& version) {
    inputs.model_version = version;
    return MakePlan(Request(Recipe::kDistilled), inputs)->parameters.stages[0].sampler;
  };
  EXPECT_EQ(sampler({}), "euler");
  EXPECT_EQ(sampler({2, 4, 9}), "euler");
  EXPECT_EQ(sampler({2, 5}), "euler_ancestral eta=1 s_noise=1");
  EXPECT_EQ(sampler({3}), "euler_ancestral eta=1 s_noise=1");
}

TEST(RecipePlanTest, WithoutSound) {
  GenerationRequest request = Request(Recipe::kDistilled);
  request.video_only = true;
  const RecipePlan plan = *MakePlan(request, {});
  EXPECT_EQ(plan.stages[0].audio_tokens, 0);
  EXPECT_FALSE(plan.parameters.has_audio);
  EXPECT_EQ(plan.units.back().phase, Phase::kVideoDecode);
}

TEST(RecipePlanTest, DecodeUnitsAreCountedWhenKnown) {
  std::vector<WorkUnit> plan(3);
  plan[0].phase = Phase::kStage1;
  plan[1].phase = Phase::kVideoDecode;
  plan[2].phase = Phase::kAudioDecode;
  ASSERT_TRUE(SetPhaseUnits(Phase::kVideoDecode, 2, 1, &plan).ok());
  EXPECT_EQ(Units(plan), "stage11/1 vdecode1/2 vdecode2/2 adecode1/1 ");
  EXPECT_FALSE(SetPhaseUnits(Phase::kVideoDecode, 0, 1, &plan).ok());
  EXPECT_FALSE(SetPhaseUnits(Phase::kVideoDecode, 2, 2, &plan).ok());
}

}  // namespace
}  // namespace ltx::pipeline
