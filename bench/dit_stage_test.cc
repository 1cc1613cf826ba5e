#include "bench/dit_stage.h"

#include "gtest/gtest.h"
#include "kernels/cpu/cpu_device.h"

namespace ltx::bench {
namespace {

TEST(DitStageTest, TheFloorRuns) {
  checkpoint::TransformerConfig config;
  config.num_layers = 3;
  config.num_attention_heads = config.audio_num_attention_heads = 1;
  config.cross_attention_dim = config.video_width();
  config.audio_cross_attention_dim = config.audio_width();
  StageSize size;
  size.clip.width = 96;
  size.clip.height = 64;
  size.clip.frames = 17;
  size.text_tokens = 8;
  const auto device = cpu::CpuDevice::Create({}).value();
  auto floor = DitFloor::Make(*device, config, size, DType::kF32);
  ASSERT_TRUE(floor.ok()) << floor.status();
  EXPECT_TRUE(floor->Run().ok());
}

}  // namespace
}  // namespace ltx::bench
