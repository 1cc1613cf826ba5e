#include "engine/video_vae/statistics.h"

#include "engine/video_vae/test_weights.h"
#include "gmock/gmock.h"

namespace ltx::video_vae {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class StatisticsTest : public VideoVaeTest {};

TEST_F(StatisticsTest, MapsBothWaysAndIgnoresWhatFilesCarryBeside) {
  TestWeights weights;
  weights.Add("mean-of-means", Shape({2}), [](int64_t i) { return i == 0 ? 1.0f : -2.0f; });
  weights.Add("std-of-means", Shape({2}), [](int64_t i) { return i == 0 ? 2.0f : 4.0f; });
  weights.AddConstant("channel", Shape({2}), 0.0f);
  weights.AddConstant("mean-of-stds", Shape({2}), 0.0f);
  weights.AddConstant("mean-of-stds_over_std-of-means", Shape({2}), 0.0f);
  const auto loader = weights.Loader(device());
  const ChannelStatistics statistics = ChannelStatistics::Load(loader, 2).value();
  EXPECT_TRUE(loader.CheckAllConsumed().ok()) << loader.CheckAllConsumed();
  const Tensor x = Iota(Shape({1, 1, 1, 2, 2}));
  EXPECT_THAT(Values(statistics.UnNormalize(device(), x).value()), ElementsAre(1, 2, 5, 10));
  EXPECT_THAT(Values(statistics.Normalize(device(), x).value()),
              ElementsAre(-0.5f, 0.75f, 0.5f, 1.25f));
}

TEST_F(StatisticsTest, RefusesAnotherWidth) {
  TestWeights weights;
  weights.AddConstant("mean-of-means", Shape({3}), 0.0f);
  weights.AddConstant("std-of-means", Shape({3}), 1.0f);
  const auto statistics = ChannelStatistics::Load(weights.Loader(device()), 2);
  EXPECT_EQ(statistics.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(statistics.status().message()),
              HasSubstr("per_channel_statistics.mean-of-means has shape [3]"));
}

TEST_F(StatisticsTest, NamesAMissingTensor) {
  TestWeights weights;
  weights.AddConstant("mean-of-means", Shape({2}), 0.0f);
  const auto statistics = ChannelStatistics::Load(weights.Loader(device()), 2);
  EXPECT_EQ(statistics.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(statistics.status().message()), HasSubstr("std-of-means"));
}

}  // namespace
}  // namespace ltx::video_vae
