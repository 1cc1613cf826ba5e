#include "bench/dit_stage.h"

#include <cmath>

#include "bench/random_file.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/checkpoint/weight_set.h"
#include "engine/dit/tensor_shapes.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/host_copy.h"

namespace ltx::bench {
namespace {

checkpoint::TransformerConfig SmallConfig() {
  checkpoint::TransformerConfig config = FullSizeConfig();
  config.num_layers = 2;
  config.num_attention_heads = config.audio_num_attention_heads = 1;
  config.cross_attention_dim = config.video_width();
  config.audio_cross_attention_dim = config.audio_width();
  return config;
}

ClipSize SmallClip() {
  ClipSize clip;
  clip.width = 96;
  clip.height = 64;
  clip.frames = 17;
  return clip;
}

TEST(DitStageTest, TokensOfAClip) {
  ClipSize clip;
  EXPECT_EQ(clip.video_tokens(), 6144);
  EXPECT_EQ(clip.audio_tokens(), 126);
  clip.height = 448;
  clip.frames = 25;
  EXPECT_EQ(clip.video_tokens(), 1344);
}

TEST(DitStageTest, FlopsOfTheFullSize) {
  // 537 million a video token and block, some of them for audio and text (2 % and 1 %).
  const DitFlops flops = FlopsOf(FullSizeConfig(), ClipSize(), 1024);
  EXPECT_NEAR(flops.products * 1e-12, 158.0, 8.0);
  EXPECT_NEAR(flops.attention * 1e-12, 35.0, 2.0);
}

TEST(DitStageTest, ForwardsAreFiniteAndPassesDiffer) {
  const auto device = cpu::CpuDevice::Create({}).value();
  const checkpoint::TransformerConfig config = SmallConfig();
  checkpoint::WeightSet weights;
  ASSERT_TRUE(weights.Add(std::make_shared<RandomFile>(dit::ShapesOf(config))).ok());
  const auto transformer = dit::Transformer::Load(
      config, dit::ModelClass::kAudioVideo,
      checkpoint::WeightLoader(device.get(), &weights, DType::kF32, MemoryOwner::kWeightsDit));
  ASSERT_TRUE(transformer.ok()) << transformer.status();
  const auto inputs = DitInputs::Make(**transformer, SmallClip(), 8, 4);
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  const auto velocity = inputs->Forward(**transformer);
  ASSERT_TRUE(velocity.ok()) << velocity.status();
  EXPECT_EQ(velocity->video.shape(), (Shape{4, 18, 128}));
  const std::vector<float> values = ToFloats(*device, velocity->video).value();
  double squares = 0.0;
  for (const float v : values) squares += static_cast<double>(v) * v;
  EXPECT_TRUE(std::isfinite(squares));
  EXPECT_GT(squares, 0.0);
}

TEST(DitStageTest, TheFloorRuns) {
  const auto device = cpu::CpuDevice::Create({}).value();
  auto floor = DitFloor::Make(*device, SmallConfig(), SmallClip(), 8, DType::kF32);
  ASSERT_TRUE(floor.ok()) << floor.status();
  EXPECT_TRUE(floor->Run().ok());
}

}  // namespace
}  // namespace ltx::bench
