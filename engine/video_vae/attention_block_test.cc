#include "engine/video_vae/attention_block.h"

#include <cmath>

#include "engine/video_vae/test_weights.h"
#include "gmock/gmock.h"

namespace ltx::video_vae {
namespace {

class AttentionBlockTest : public VideoVaeTest {
 protected:
  std::unique_ptr<AttentionBlock> Load(int64_t channels) {
    TestWeights weights;
    weights.AddConstant("norm.gamma", Shape({channels, 1, 1}), 1.0f);
    weights.AddModule("to_qkv", Shape({3 * channels, channels, 1, 1}));
    weights.AddModule("proj", Shape({channels, channels, 1, 1}));
    return AttentionBlock::Load(weights.Loader(device()), channels).value();
  }
  std::vector<float> Run(const AttentionBlock& block, const Tensor& x) {
    BlockContext context;
    context.device = &device();
    return Values(block.Forward(x, context).value());
  }
};

TEST_F(AttentionBlockTest, FramesDoNotSeeEachOther) {
  const auto block = Load(4);
  const auto wave = [](int64_t i) { return std::sin(static_cast<float>(i)); };
  const std::vector<float> both = Run(*block, Make(Shape({1, 2, 3, 1, 4}), wave));
  const std::vector<float> first = Run(*block, Make(Shape({1, 1, 3, 1, 4}), wave));
  ASSERT_EQ(both.size(), 2 * first.size());
  for (size_t i = 0; i < first.size(); ++i) EXPECT_FLOAT_EQ(both[i], first[i]) << i;
}

TEST_F(AttentionBlockTest, ZerosStayFinite) {
  const auto y = Run(*Load(4), Make(Shape({1, 1, 2, 2, 4}), [](int64_t) { return 0.0f; }));
  for (const float value : y) EXPECT_EQ(value, 0.0f);
}

}  // namespace
}  // namespace ltx::video_vae
