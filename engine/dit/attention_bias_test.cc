#include "engine/dit/attention_bias.h"

#include <cmath>
#include <limits>

#include "engine/dit/test_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::dit {
namespace {

using ::testing::HasSubstr;

constexpr float kLargest = std::numeric_limits<float>::max();

TEST(AttentionBiasTest, LogOfTheMaskOrTheLowestNumber) {
  const std::vector<float> bias = LogSpaceBias({1.0f, 0.5f, 0.0f, 1e-45f}, DType::kF32);
  EXPECT_EQ(bias[0], 0.0f);
  EXPECT_FLOAT_EQ(bias[1], std::log(0.5f));
  EXPECT_EQ(bias[2], -kLargest);
  EXPECT_FLOAT_EQ(bias[3], std::log(std::numeric_limits<float>::min()));
}

TEST(AttentionBiasTest, Bfloat16HasItsOwnLimits) {
  const std::vector<float> bias = LogSpaceBias({0.5f, 0.0f}, DType::kBF16);
  EXPECT_EQ(bias[0], RoundToBFloat16(std::log(0.5f)));
  EXPECT_EQ(bias[1], -0x1.fep127f);
  EXPECT_EQ(KeepMaskBias({0.0f}, DType::kBF16)[0], -0x1.fep127f);
}

TEST(AttentionBiasTest, KeepMask) {
  const std::vector<float> bias = KeepMaskBias({1.0f, 0.0f}, DType::kF32);
  EXPECT_EQ(bias[0], 0.0f);
  EXPECT_EQ(bias[1], -kLargest);
}

TEST(AttentionBiasTest, ShapesOfTensors) {
  const auto device = TestDevice();
  AttentionMask mask;
  mask.batch = 2;
  mask.queries = 1;
  mask.keys = 3;
  mask.values = {1, 0.5f, 1, 1, 1, 1};
  const auto bias = SelfAttentionBias(*device, mask, 2, 3, DType::kF32, "m");
  ASSERT_TRUE(bias.ok()) << bias.status();
  EXPECT_EQ(bias->shape(), (Shape{2, 1, 1, 3}));
  mask.values[1] = 1.0f;
  const auto nothing = SelfAttentionBias(*device, mask, 2, 3, DType::kF32, "m");
  ASSERT_TRUE(nothing.ok());
  EXPECT_FALSE(nothing->defined());
}

TEST(AttentionBiasTest, AdditiveContextMaskIsTakenAsItIs) {
  const auto device = TestDevice();
  ContextMask mask;
  mask.kind = ContextMask::Kind::kAdditive;
  mask.keys = 2;
  mask.values = {-3.0f, 0.25f};
  const auto bias = ContextBias(*device, mask, 2, 5, 2, DType::kF32, "m");
  ASSERT_TRUE(bias.ok()) << bias.status();
  EXPECT_EQ(bias->shape(), (Shape{1, 1, 1, 2}));
  EXPECT_EQ(Values(*device, *bias), mask.values);
}

TEST(AttentionBiasTest, BadMasksAreNamed) {
  const auto device = TestDevice();
  AttentionMask mask;
  mask.batch = 1;
  mask.queries = 3;
  mask.keys = 3;
  mask.values.assign(9, 1.0f);
  mask.values[4] = 1.5f;
  EXPECT_THAT(SelfAttentionBias(*device, mask, 2, 3, DType::kF32, "video.attention_mask")
                  .status()
                  .message(),
              HasSubstr("video.attention_mask[4] is 1.5; it must lie in [0, 1]"));
  EXPECT_THAT(SelfAttentionBias(*device, mask, 2, 4, DType::kF32, "video.attention_mask")
                  .status()
                  .message(),
              HasSubstr("video.attention_mask is [1, 3, 3] with 9 values; [2 or 1, 4 or 1, 4]"));
}

}  // namespace
}  // namespace ltx::dit
