#include "engine/video_vae/timestep_embedding.h"

#include <cmath>

#include "gtest/gtest.h"

namespace ltx::video_vae {
namespace {

TEST(TimestepEmbeddingTest, CosinesComeFirst) {
  const std::vector<float> zero = SinusoidalEmbedding(0.0f);
  ASSERT_EQ(zero.size(), 256u);
  for (int i = 0; i < 128; ++i) {
    EXPECT_EQ(zero[i], 1.0f);
    EXPECT_EQ(zero[128 + i], 0.0f);
  }
  const std::vector<float> fifty = SinusoidalEmbedding(50.0f);
  EXPECT_NEAR(fifty[0], std::cos(50.0), 1e-6);
  EXPECT_NEAR(fifty[128], std::sin(50.0), 1e-6);
  EXPECT_NEAR(fifty[64], std::cos(50.0 / 100.0), 1e-6);
  EXPECT_NEAR(fifty[128 + 96], std::sin(50.0 / 1000.0), 1e-6);
}

}  // namespace
}  // namespace ltx::video_vae
