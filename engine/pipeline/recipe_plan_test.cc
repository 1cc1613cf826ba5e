#include "engine/pipeline/recipe_plan.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/pipeline/error_details.h"
#include "engine/pipeline/parameter_set.h"

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

GenerationRequest Guided(Recipe recipe) {
  GenerationRequest request = Request(recipe);
  request.num_inference_steps = 3;
  request.guidance.video.stg_blocks = std::vector<int64_t>{1};
  request.guidance.video.stg_scale = 1.0;
  return request;
}

PlanInputs DevInputs() {
  PlanInputs inputs;
  inputs.model_kind = checkpoint::ModelKind::kDev;
  inputs.model_version = {2, 5};
  inputs.num_blocks = 4;
  inputs.fused_transformer_bytes = 1000;
  inputs.distilled_lora = "lora.safetensors";
  return inputs;
}

std::string Passes(const RecipePlan& plan, Phase phase) {
  std::string text;
  for (const WorkUnit& unit : plan.units) {
    if (unit.phase == phase) text += std::to_string(unit.step) + ":" + unit.passes + " ";
  }
  return text;
}

TEST(RecipePlanTest, AUnitIsAForward) {
  GenerationRequest request = Guided(Recipe::kOneStage);
  request.guidance_batching = GuidanceBatching::kBatched;
  const RecipePlan batched = *MakePlan(request, DevInputs());
  EXPECT_EQ(Passes(batched, Phase::kStage1),
            "1:cond+uncond+ptb+mod 2:cond+uncond+ptb+mod 3:cond+uncond+ptb+mod ");
  EXPECT_EQ(Units(batched.units),
            "text1/2 text2/2 stage11/3 stage12/3 stage13/3 vdecode1/1 adecode1/1 ");
  EXPECT_EQ(batched.units[2].rows, 4);
  request.guidance_batching = GuidanceBatching::kSequential;
  request.guidance.video.skip_step = 1;
  request.guidance.audio.skip_step = 1;
  const RecipePlan sequential = *MakePlan(request, DevInputs());
  EXPECT_EQ(Passes(sequential, Phase::kStage1),
            "1:cond 1:uncond 1:ptb 1:mod 3:cond 3:uncond 3:ptb 3:mod ");
  EXPECT_EQ(sequential.units[2].count, 8);
  EXPECT_EQ(sequential.parameters.guidance->settings.video.stg_blocks, (std::vector<int64_t>{1}));
  // The default block 28 of 48, at the same depth of four.
  EXPECT_EQ(sequential.parameters.guidance->settings.audio.stg_blocks, (std::vector<int64_t>{2}));
  EXPECT_EQ(sequential.parameters.guidance->negative_prompt, DefaultNegativePrompt());
}

TEST(RecipePlanTest, BatchesWhereAPassIsSmall) {
  GenerationRequest request = Guided(Recipe::kOneStage);
  EXPECT_TRUE(MakePlan(request, DevInputs())->parameters.guidance->batched);
  request.width = request.height = 2048;
  EXPECT_FALSE(MakePlan(request, DevInputs())->parameters.guidance->batched);
}

TEST(RecipePlanTest, TwoStagesFuseTheAdapterAndShipTheFirstSound) {
  GenerationRequest request = Guided(Recipe::kTwoStage);
  request.guidance_batching = GuidanceBatching::kBatched;
  RecipePlan plan = *MakePlan(request, DevInputs());
  EXPECT_EQ(Units(plan.units),
            "text1/2 text2/2 stage11/3 stage12/3 stage13/3 upsample1/1 fuse1/1 stage21/3 stage22/3 "
            "stage23/3 vdecode1/1 adecode1/1 ");
  EXPECT_EQ(plan.parameters.fused_transformer_bytes, 1000);
  EXPECT_EQ(plan.parameters.stages[1].distilled_lora_strength, 1.0);
  EXPECT_EQ(plan.stages[1].noise_scale, 0.909375f);
  request.distilled_lora_strength_stage_2 = 0.0;
  plan = *MakePlan(request, DevInputs());
  EXPECT_EQ(plan.parameters.fused_transformer_bytes, 0);
  EXPECT_EQ(plan.units.size(), 11u);
}

TEST(RecipePlanTest, SecondOrderStagesEvaluateTwiceAndOnceMore) {
  GenerationRequest request = Guided(Recipe::kTwoStageHq);
  request.guidance_batching = GuidanceBatching::kSequential;
  request.guidance.video.stg_scale = 0.0;
  request.guidance.video.stg_blocks.reset();
  request.guidance.video.skip_step = 1;
  request.guidance.audio.skip_step = 1;
  const RecipePlan plan = *MakePlan(request, DevInputs());
  // Half steps are never skipped; step 2 is, and the last evaluation counts as step 4.
  EXPECT_EQ(Passes(plan, Phase::kStage1),
            "1:cond 1:uncond 1:mod 1:cond 1:uncond 1:mod 2:cond 2:uncond 2:mod 3:cond 3:uncond "
            "3:mod 3:cond 3:uncond 3:mod ");
  EXPECT_EQ(Passes(plan, Phase::kStage2), "1:cond 1:cond 2:cond 2:cond 3:cond 3:cond 4:cond ");
  EXPECT_EQ(plan.parameters.loop_seed, ~uint64_t{0});
  EXPECT_EQ(plan.parameters.parameter_set, "hq");
  // Scheduled for 36 tokens, not for 4096.
  EXPECT_LT(plan.stages[0].sigmas[1],
            MakePlan(Guided(Recipe::kTwoStage), DevInputs())->stages[0].sigmas[1]);
}

TEST(RecipePlanTest, SoundAlone) {
  GenerationRequest request;
  request.recipe = Recipe::kT2a;
  request.num_frames = 17;
  const RecipePlan plan = *MakePlan(request, DevInputs());
  EXPECT_EQ(plan.stages[0].video.tokens(), 0);
  EXPECT_EQ(plan.stages[0].audio_tokens, 18);
  EXPECT_EQ(plan.units[2].passes, "cond+uncond+ptb");
  EXPECT_EQ(plan.units.size(), 2u + 30 + 1);
}

TEST(RecipePlanTest, RefusesWhatHasNoEffect) {
  const auto field = [](const GenerationRequest& request) {
    const auto plan = MakePlan(request, DevInputs());
    const auto detail = GetErrorDetail(plan.status());
    return detail.has_value() ? detail->field : "";
  };
  GenerationRequest request = Guided(Recipe::kOneStage);
  request.guidance.video.stg_blocks = std::vector<int64_t>{4};
  EXPECT_EQ(field(request), "video_stg_blocks");
  request.guidance.video.stg_blocks = std::vector<int64_t>{3};
  request.guidance.video.stg_scale = 0.0;
  EXPECT_EQ(field(request), "video_stg_blocks");
  request.guidance.video.stg_blocks.reset();
  request.negative_prompt = "fog";
  EXPECT_EQ(field(request), "");
  request.guidance.video.cfg_scale = 1.0;
  EXPECT_EQ(field(request), "");
  request.guidance.audio.cfg_scale = 1.0;
  EXPECT_EQ(field(request), "negative_prompt");
}

TEST(RecipePlanTest, ADistilledModelIsWarnedAbout) {
  PlanInputs inputs = DevInputs();
  EXPECT_TRUE(MakePlan(Guided(Recipe::kOneStage), inputs)->parameters.warnings.empty());
  inputs.model_kind = checkpoint::ModelKind::kDistilled;
  EXPECT_EQ(MakePlan(Guided(Recipe::kOneStage), inputs)->parameters.warnings.size(), 1u);
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
