#include "engine/audio_vae/latent_grid.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/host_copy.h"

namespace ltx::audio_vae {
namespace {

int64_t Frames(int64_t video_frames, double fps) {
  return LatentGrid().LatentFrames(video_frames, fps).value();
}

TEST(LatentGridTest, RoundsHalfToEven) {
  EXPECT_EQ(Frames(121, 24.0), 126);  // 126.04
  EXPECT_EQ(Frames(1, 50.0), 0);      // 0.5
  EXPECT_EQ(Frames(3, 50.0), 2);      // 1.5
  EXPECT_EQ(Frames(5, 50.0), 2);      // 2.5
  EXPECT_EQ(Frames(7, 50.0), 4);      // 3.5
  EXPECT_EQ(Frames(25, 24.0), 26);    // 26.04
  EXPECT_EQ(Frames(0, 24.0), 0);
}

TEST(LatentGridTest, RefusesBadClipsByName) {
  const auto negative = LatentGrid().LatentFrames(-1, 24.0);
  EXPECT_EQ(negative.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(negative.status().message().find("frames = -1"), std::string::npos);
  for (const double fps : {0.0, -24.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    const auto frames = LatentGrid().LatentFrames(25, fps);
    EXPECT_EQ(frames.status().code(), absl::StatusCode::kInvalidArgument) << fps;
    EXPECT_NE(frames.status().message().find("fps = "), std::string::npos);
  }
  EXPECT_FALSE(LatentGrid().LatentFrames(std::numeric_limits<int64_t>::max(), 1e-300).ok());
}

TEST(LatentGridTest, CausalTokensStartWithOneMelFrame) {
  const auto bounds = LatentGrid().TokenBounds(3);
  ASSERT_EQ(bounds.size(), 3u);
  EXPECT_FLOAT_EQ(bounds[0][0], 0.0f);
  EXPECT_FLOAT_EQ(bounds[0][1], 0.01f);
  EXPECT_FLOAT_EQ(bounds[1][0], 0.01f);
  EXPECT_FLOAT_EQ(bounds[1][1], 0.05f);
  EXPECT_FLOAT_EQ(bounds[2][1], 0.09f);
}

TEST(LatentGridTest, PlainTokensHonourTheShift) {
  LatentGrid grid;
  grid.causal = false;
  const auto bounds = grid.TokenBounds(2, 3);
  ASSERT_EQ(bounds.size(), 2u);
  EXPECT_FLOAT_EQ(bounds[0][0], 0.12f);
  EXPECT_FLOAT_EQ(bounds[0][1], 0.16f);
  EXPECT_FLOAT_EQ(bounds[1][1], 0.20f);
}

TEST(LatentGridTest, MelFrames) {
  EXPECT_EQ(LatentGrid::MelFrames(1, true), 1);
  EXPECT_EQ(LatentGrid::MelFrames(126, true), 501);
  EXPECT_EQ(LatentGrid::MelFrames(6, false), 24);
}

TEST(LatentGridTest, PatchifyIsChannelMajorAndInvertible) {
  const auto device = cpu::CpuDevice::Create({}).value();
  std::vector<float> values(2 * 3 * 4);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const Tensor latent = TensorFromFloats(*device, values, Shape({1, 2, 3, 4})).value();
  const Tensor tokens = PatchifyAudio(*device, latent).value();
  EXPECT_EQ(tokens.shape(), Shape({1, 3, 8}));
  const std::vector<float> flat = ToFloats(*device, tokens).value();
  // Frame 1, channel 1, bin 2: latent element (1 * 3 + 1) * 4 + 2.
  EXPECT_EQ(flat[1 * 8 + 1 * 4 + 2], 18.0f);
  EXPECT_EQ(ToFloats(*device, UnpatchifyAudio(*device, tokens, 2).value()).value(), values);
  EXPECT_EQ(UnpatchifyAudio(*device, tokens, 3).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace ltx::audio_vae
