#include "engine/checkpoint/upsampler_config.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::checkpoint {
namespace {

using ::testing::HasSubstr;

TEST(UpsamplerConfigTest, DefaultsOfTheReference) {
  const auto c = ParseUpsamplerConfig(nlohmann::json::object());
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(c->in_channels, 128);
  EXPECT_EQ(c->mid_channels, 512);
  EXPECT_EQ(c->num_blocks_per_stage, 4);
  EXPECT_EQ(c->dims, 3);
  EXPECT_TRUE(c->spatial_upsample);
  EXPECT_FALSE(c->temporal_upsample);
  EXPECT_EQ(c->spatial_up(), 2);
  EXPECT_EQ(c->spatial_down(), 1);
}

TEST(UpsamplerConfigTest, RationalScales) {
  const std::vector<std::pair<double, std::pair<int, int>>> scales = {
      {0.75, {3, 4}}, {1.5, {3, 2}}, {2.0, {2, 1}}, {4.0, {4, 1}}};
  for (const auto& [scale, fraction] : scales) {
    const auto c = ParseUpsamplerConfig({{"rational_resampler", true}, {"spatial_scale", scale}});
    ASSERT_TRUE(c.ok()) << c.status();
    EXPECT_EQ(c->spatial_up(), fraction.first);
    EXPECT_EQ(c->spatial_down(), fraction.second);
  }
  // Without the resampler the scale is idle.
  EXPECT_TRUE(ParseUpsamplerConfig({{"spatial_scale", 3.0}}).ok());
}

TEST(UpsamplerConfigTest, TemporalAndBoth) {
  auto c = ParseUpsamplerConfig({{"spatial_upsample", false}, {"temporal_upsample", true}});
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(c->spatial_up(), 1);
  c = ParseUpsamplerConfig({{"temporal_upsample", true}, {"rational_resampler", true}});
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_FALSE(c->rational_resampler);
  EXPECT_EQ(c->spatial_up(), 2);
}

TEST(UpsamplerConfigTest, RefusesByKey) {
  const std::vector<std::pair<nlohmann::json, const char*>> cases = {
      {{{"spatial_upsample", false}}, "both false"},
      {{{"rational_resampler", true}, {"spatial_scale", 3.0}}, "spatial_scale"},
      {{{"dims", 2}, {"temporal_upsample", true}}, "dims"},
      {{{"dims", 2}, {"rational_resampler", true}}, "dims"},
      {{{"dims", 1}}, "dims"},
      {{{"mid_channels", 48}}, "mid_channels"},
      {{{"mid_channels", 0}}, "mid_channels"},
      {{{"in_channels", -1}}, "in_channels"},
      {{{"num_blocks_per_stage", 1.5}}, "num_blocks_per_stage"},
      {{{"spatial_scale", "2"}}, "spatial_scale"},
      {{{"_class_name", "Other"}}, "_class_name"},
  };
  for (const auto& [config, names] : cases) {
    const auto c = ParseUpsamplerConfig(config);
    EXPECT_EQ(c.status().code(), absl::StatusCode::kInvalidArgument) << config;
    EXPECT_THAT(std::string(c.status().message()), HasSubstr(names));
  }
  EXPECT_FALSE(ParseUpsamplerConfig(nlohmann::json::array()).ok());
}

}  // namespace
}  // namespace ltx::checkpoint
