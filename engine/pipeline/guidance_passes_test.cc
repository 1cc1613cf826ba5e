#include "engine/pipeline/guidance_passes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ltx::pipeline {
namespace {

using sampling::PerModality;

PerModality<GuidanceSettings> Full() {
  return {{3.0, 1.0, 0.7, 3.0, 0, {28}}, {7.0, 1.0, 0.7, 3.0, 0, {3, 4}}};
}

std::string At(const PerModality<GuidanceSettings>& settings, int64_t step,
               PerModality<bool> present = {true, true}) {
  return GuidancePassNames(PassesAt(settings, present, step));
}

TEST(GuidancePassesTest, NeutralScalesNeedNoPass) {
  EXPECT_EQ(At({}, 0), "cond");
  PerModality<GuidanceSettings> settings;
  settings.audio.cfg_scale = 1.0 + 1e-10;
  EXPECT_EQ(At(settings, 0), "cond");
  settings.audio.cfg_scale = 1.0 + 1e-8;
  EXPECT_EQ(At(settings, 0), "cond+uncond");
  settings.video.stg_scale = 1e-12;
  EXPECT_EQ(At(settings, 0), "cond+uncond+ptb");
  settings.video.modality_scale = 0.0;
  EXPECT_EQ(At(settings, 0), "cond+uncond+ptb+mod");
}

TEST(GuidancePassesTest, AbsentModalitiesAskForNothing) {
  PerModality<GuidanceSettings> settings;
  settings.audio = Full().audio;
  EXPECT_EQ(At(settings, 0), "cond+uncond+ptb+mod");
  EXPECT_EQ(At(settings, 0, {true, false}), "cond");
}

TEST(GuidancePassesTest, SkippedStepsAskForNothing) {
  PerModality<GuidanceSettings> settings = Full();
  settings.video.skip_step = 1;
  settings.audio.skip_step = 2;
  settings.audio.stg_scale = 0.0;
  EXPECT_EQ(At(settings, 0), "cond+uncond+ptb+mod");
  EXPECT_EQ(At(settings, 1), "");
  EXPECT_EQ(At(settings, 2), "cond+uncond+ptb+mod");
  // Sound alone, which has no perturbed pass.
  EXPECT_EQ(At(settings, 3), "cond+uncond+mod");
  EXPECT_EQ(At(settings, 5), "");
}

TEST(GuidancePassesTest, Perturbations) {
  const PerModality<GuidanceSettings> settings = Full();
  EXPECT_TRUE(PerturbationsOf(GuidancePass::kCond, settings).empty());
  EXPECT_TRUE(PerturbationsOf(GuidancePass::kUncond, settings).empty());
  const auto perturbed = PerturbationsOf(GuidancePass::kPerturbed, settings);
  ASSERT_EQ(perturbed.size(), 2u);
  EXPECT_EQ(perturbed[0].kind, dit::PerturbationKind::kSkipVideoSelfAttention);
  EXPECT_EQ(perturbed[0].blocks, (std::vector<int64_t>{28}));
  EXPECT_EQ(perturbed[1].kind, dit::PerturbationKind::kSkipAudioSelfAttention);
  EXPECT_EQ(perturbed[1].blocks, (std::vector<int64_t>{3, 4}));
  // In all blocks, both ways.
  const auto isolated = PerturbationsOf(GuidancePass::kIsolated, settings);
  ASSERT_EQ(isolated.size(), 2u);
  EXPECT_FALSE(isolated[0].blocks.has_value());
  EXPECT_FALSE(isolated[1].blocks.has_value());
}

}  // namespace
}  // namespace ltx::pipeline
