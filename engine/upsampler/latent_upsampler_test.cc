#include "engine/upsampler/latent_upsampler.h"

#include "engine/video_vae/test_weights.h"
#include "gmock/gmock.h"

namespace ltx::upsampler {
namespace {

using checkpoint::UpsamplerConfig;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using video_vae::ChannelStatistics;
using video_vae::TestWeights;

constexpr int64_t kLatent = 2;
constexpr int64_t kMid = 32;

UpsamplerConfig SmallConfig(int64_t dims) {
  UpsamplerConfig config;
  config.in_channels = kLatent;
  config.mid_channels = kMid;
  config.num_blocks_per_stage = 1;
  config.dims = dims;
  return config;
}

Shape Kernel(int64_t out, int64_t in, int64_t dims) {
  return dims == 2 ? Shape({out, in, 3, 3}) : Shape({out, in, 3, 3, 3});
}

/// Everything but the resampler.
TestWeights SmallWeights(int64_t dims) {
  TestWeights weights;
  weights.AddModule("initial_conv", Kernel(kMid, kLatent, dims));
  weights.AddModule("initial_norm", Shape({kMid}));
  for (const std::string block : {"res_blocks.0.", "post_upsample_res_blocks.0."}) {
    weights.AddModule(block + "conv1", Kernel(kMid, kMid, dims));
    weights.AddModule(block + "norm1", Shape({kMid}));
    weights.AddModule(block + "conv2", Kernel(kMid, kMid, dims));
    weights.AddModule(block + "norm2", Shape({kMid}));
  }
  weights.AddModule("final_conv", Kernel(kLatent, kMid, dims));
  return weights;
}

class LatentUpsamplerTest : public video_vae::VideoVaeTest {
 protected:
  absl::StatusOr<std::unique_ptr<LatentUpsampler>> Load(TestWeights weights,
                                                        const UpsamplerConfig& config) {
    return LatentUpsampler::Load(config, weights.Loader(device()));
  }
  std::unique_ptr<LatentUpsampler> Spatial(int64_t dims) {
    TestWeights weights = SmallWeights(dims);
    weights.AddModule("upsampler.0", Kernel(4 * kMid, kMid, 2));
    return Load(std::move(weights), SmallConfig(dims)).value();
  }
  Tensor Latent(const Shape& shape) {
    return Make(shape, [](int64_t i) { return static_cast<float>(i * 5 % 11) / 4.0f - 1.0f; });
  }
};

TEST_F(LatentUpsamplerTest, SpatialDoublesHeightAndWidthOnly) {
  for (const int64_t dims : {2, 3}) {
    const auto net = Spatial(dims);
    EXPECT_EQ(net->Forward(Latent(Shape({2, 3, 3, 5, kLatent})))->shape(),
              Shape({2, 3, 6, 10, kLatent}));
    EXPECT_EQ(net->Forward(Latent(Shape({1, 1, 1, 1, kLatent})))->shape(),
              Shape({1, 1, 2, 2, kLatent}));
    EXPECT_TRUE(net->changes_space());
    EXPECT_FALSE(net->changes_time());
  }
}

TEST_F(LatentUpsamplerTest, TwoDimensionsKeepFramesApart) {
  const auto net = Spatial(2);
  const std::vector<float> both =
      Values(net->Forward(Latent(Shape({1, 2, 2, 3, kLatent}))).value());
  const std::vector<float> first =
      Values(net->Forward(Latent(Shape({1, 1, 2, 3, kLatent}))).value());
  ASSERT_EQ(both.size(), 2 * first.size());
  for (size_t i = 0; i < first.size(); ++i) EXPECT_NEAR(both[i], first[i], 1e-5) << i;
}

TEST_F(LatentUpsamplerTest, TemporalGivesTwiceTheFramesLessOne) {
  UpsamplerConfig config = SmallConfig(3);
  config.spatial_upsample = false;
  config.temporal_upsample = true;
  TestWeights weights = SmallWeights(3);
  weights.AddModule("upsampler.0", Kernel(2 * kMid, kMid, 3));
  const auto net = Load(std::move(weights), config).value();
  EXPECT_EQ(net->Forward(Latent(Shape({1, 3, 2, 3, kLatent})))->shape(),
            Shape({1, 5, 2, 3, kLatent}));
  EXPECT_EQ(net->Forward(Latent(Shape({1, 1, 2, 3, kLatent})))->shape(),
            Shape({1, 1, 2, 3, kLatent}));
}

TEST_F(LatentUpsamplerTest, BothAxesTogether) {
  UpsamplerConfig config = SmallConfig(3);
  config.temporal_upsample = true;
  TestWeights weights = SmallWeights(3);
  weights.AddModule("upsampler.0", Kernel(8 * kMid, kMid, 3));
  const auto net = Load(std::move(weights), config).value();
  const Tensor y = net->Forward(Latent(Shape({1, 2, 1, 3, kLatent}))).value();
  EXPECT_EQ(y.shape(), Shape({1, 3, 2, 6, kLatent}));
  const LatentExtents extents = net->OutputExtents({2, 1, 3});
  EXPECT_EQ(extents.frames, 3);
  EXPECT_EQ(extents.height, 2);
  EXPECT_EQ(extents.width, 6);
}

TEST_F(LatentUpsamplerTest, RationalFactorRoundsOddSizesUp) {
  UpsamplerConfig config = SmallConfig(3);
  config.rational_resampler = true;
  config.spatial_scale = 1.5;
  config.rational_up = 3;
  config.rational_down = 2;
  TestWeights weights = SmallWeights(3);
  weights.AddModule("upsampler.conv", Kernel(9 * kMid, kMid, 2));
  weights.AddConstant("upsampler.blur_down.kernel", Shape({1, 1, 5, 5}), 1.0f / 25.0f);
  const auto net = Load(std::move(weights), config).value();
  const Tensor y = net->Forward(Latent(Shape({1, 2, 4, 5, kLatent}))).value();
  EXPECT_EQ(y.shape(), Shape({1, 2, 6, 8, kLatent}));
  const LatentExtents extents = net->OutputExtents({2, 4, 5});
  EXPECT_EQ(extents.height, 6);
  EXPECT_EQ(extents.width, 8);
}

TEST_F(LatentUpsamplerTest, RationalFactorTwoLeavesTheBlurAlone) {
  UpsamplerConfig config = SmallConfig(3);
  config.rational_resampler = true;
  TestWeights weights = SmallWeights(3);
  weights.AddModule("upsampler.conv", Kernel(4 * kMid, kMid, 2));
  weights.AddConstant("upsampler.blur_down.kernel", Shape({1, 1, 5, 5}), 7.0f);
  const auto net = Load(std::move(weights), config);
  ASSERT_TRUE(net.ok()) << net.status();
  const Tensor latent = Latent(Shape({1, 2, 3, 3, kLatent}));
  EXPECT_EQ(Values((*net)->Forward(latent).value()), Values(Spatial(3)->Forward(latent).value()));
}

TEST_F(LatentUpsamplerTest, NormalisedLatentsAreMappedBothWays) {
  TestWeights weights;
  weights.AddConstant("mean-of-means", Shape({kLatent}), 0.25f);
  weights.AddConstant("std-of-means", Shape({kLatent}), 2.0f);
  const ChannelStatistics statistics =
      ChannelStatistics::Load(weights.Loader(device()), kLatent).value();
  const auto net = Spatial(2);
  const Tensor latent = Latent(Shape({1, 1, 2, 2, kLatent}));
  const Tensor raw = statistics.UnNormalize(device(), latent).value();
  const std::vector<float> expected = Values(net->Forward(raw).value());
  const std::vector<float> actual = Values(net->UpsampleNormalized(latent, statistics).value());
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual[i], (expected[i] - 0.25f) / 2.0f, 1e-6) << i;
  }
}

TEST_F(LatentUpsamplerTest, RefusesStatisticsAndLatentsOfAnotherWidth) {
  TestWeights weights;
  weights.AddConstant("mean-of-means", Shape({3}), 0.0f);
  weights.AddConstant("std-of-means", Shape({3}), 1.0f);
  const ChannelStatistics statistics = ChannelStatistics::Load(weights.Loader(device()), 3).value();
  const auto net = Spatial(2);
  const auto mapped = net->UpsampleNormalized(Latent(Shape({1, 1, 2, 2, kLatent})), statistics);
  EXPECT_EQ(mapped.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(mapped.status().message()), HasSubstr("in_channels is 2"));
  const auto wide = net->Forward(Latent(Shape({1, 1, 2, 2, 3})));
  EXPECT_EQ(wide.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(wide.status().message()), HasSubstr("[1, 1, 2, 2, 3]"));
}

TEST_F(LatentUpsamplerTest, NamesUnknownAndMissingTensors) {
  TestWeights extra = SmallWeights(2);
  extra.AddModule("upsampler.0", Kernel(4 * kMid, kMid, 2));
  extra.AddConstant("res_blocks.1.conv1.bias", Shape({kMid}), 0.0f);
  const auto unknown = Load(std::move(extra), SmallConfig(2));
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.status().message()), HasSubstr("res_blocks.1.conv1.bias"));
  const auto missing = Load(SmallWeights(2), SmallConfig(2));
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("upsampler.0.weight"));
}

TEST_F(LatentUpsamplerTest, WidthMustHoldThirtyTwoGroups) {
  UpsamplerConfig config = SmallConfig(2);
  config.mid_channels = 48;
  TestWeights weights;
  weights.AddModule("initial_conv", Kernel(48, kLatent, 2));
  const auto net = Load(std::move(weights), config);
  EXPECT_EQ(net.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(net.status().message()), HasSubstr("mid_channels"));
}

}  // namespace
}  // namespace ltx::upsampler
