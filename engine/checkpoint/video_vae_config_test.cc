#include "engine/checkpoint/video_vae_config.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::checkpoint {
namespace {

using ::testing::HasSubstr;

/// The block lists of the published 2.3 and 2.5 codecs.
nlohmann::json Published() {
  return nlohmann::json::parse(R"({"vae":{"_class_name":"CausalVideoAutoencoder","dims":3,
    "latent_channels":128,"patch_size":4,"timestep_conditioning":false,
    "spatial_padding_mode":"zeros",
    "encoder_blocks":[["res_x",{"num_layers":4}],["compress_space_res",{"multiplier":2}],
      ["res_x",{"num_layers":6}],["compress_time_res",{"multiplier":2}],["res_x",4],
      ["compress_all_res",{}],["res_x",{"num_layers":2}],["compress_all_res",{"multiplier":1}],
      ["res_x",{"num_layers":2}]],
    "decoder_blocks":[["res_x",{"num_layers":4}],["compress_space",{"multiplier":2}],
      ["res_x",{"num_layers":6,"inject_noise":true}],["compress_time",{"multiplier":2}],
      ["res_x",{"num_layers":4}],["compress_all",{"multiplier":1,"residual":true}],
      ["res_x",{"num_layers":2}],["compress_all",{"multiplier":2}],
      ["res_x",{"num_layers":2}]]}})");
}

TEST(VideoVaeConfigTest, PublishedCodec) {
  const auto e = ParseVideoEncoderConfig(Published());
  ASSERT_TRUE(e.ok()) << e.status();
  ASSERT_EQ(e->blocks.size(), 9);
  EXPECT_EQ(e->blocks[4].num_layers, 4);
  EXPECT_EQ(e->blocks[5].multiplier, 2);
  EXPECT_EQ(e->blocks[7].multiplier, 1);
  EXPECT_EQ(e->spatial_factor(), 32);
  EXPECT_EQ(e->temporal_factor(), 8);
  EXPECT_EQ(e->conv_out_channels(), 129);
  // In a flat config the decoder's padding binds the encoder, too.
  EXPECT_EQ(e->spatial_padding, SpatialPadding::kZeros);

  const auto d = ParseVideoDecoderConfig(Published());
  ASSERT_TRUE(d.ok()) << d.status();
  EXPECT_EQ(d->bottleneck_channels(), 1024);
  EXPECT_EQ(d->spatial_factor(), 32);
  EXPECT_EQ(d->temporal_factor(), 8);
  EXPECT_TRUE(d->blocks[2].inject_noise);
  EXPECT_TRUE(d->blocks[5].residual);
  EXPECT_FALSE(d->blocks[7].residual);
  EXPECT_EQ(VideoBlockName(d->blocks[3].kind), "compress_time");
}

TEST(VideoVaeConfigTest, DefaultsOfTheReference) {
  const nlohmann::json config = {{"vae", nlohmann::json::object()}};
  const auto e = ParseVideoEncoderConfig(config);
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_TRUE(e->blocks.empty());
  EXPECT_EQ(e->latent_channels, 128);
  EXPECT_EQ(e->spatial_padding, SpatialPadding::kZeros);
  const auto d = ParseVideoDecoderConfig(config);
  ASSERT_TRUE(d.ok()) << d.status();
  EXPECT_EQ(d->spatial_padding, SpatialPadding::kReflect);
  EXPECT_TRUE(d->timestep_conditioning);
  EXPECT_FALSE(d->causal);
  EXPECT_EQ(d->base_channels, 128);
}

TEST(VideoVaeConfigTest, BlockDefaults) {
  const nlohmann::json config = nlohmann::json::parse(
      R"({"vae":{"encoder_blocks":[["res_x_y",{}],["compress_all_x_y",{}],
          ["compress_space",{"multiplier":4}],["attn",{}]],
          "decoder_blocks":[["res_x_y",{}],["compress_space",{}],["attn",{"attention_head_dim":8}]]
          }})");
  const auto e = ParseVideoEncoderConfig(config);
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_EQ(e->blocks[0].multiplier, 2);
  EXPECT_EQ(e->blocks[1].multiplier, 2);
  // The encoder's plain strided convolution keeps its channels.
  EXPECT_EQ(e->blocks[2].multiplier, 1);
  const auto d = ParseVideoDecoderConfig(config);
  ASSERT_TRUE(d.ok()) << d.status();
  EXPECT_EQ(d->blocks[0].multiplier, 2);
  EXPECT_EQ(d->blocks[1].multiplier, 1);
}

TEST(VideoVaeConfigTest, PaddingOfTheEncoder) {
  nlohmann::json config = Published();
  config["vae"]["spatial_padding_mode"] = "reflect";
  config["vae"]["encoder_spatial_padding_mode"] = "replicate";
  EXPECT_EQ(ParseVideoEncoderConfig(config)->spatial_padding, SpatialPadding::kReflect);
  config["vae"].erase("spatial_padding_mode");
  EXPECT_EQ(ParseVideoEncoderConfig(config)->spatial_padding, SpatialPadding::kReplicate);
  EXPECT_EQ(ParseVideoDecoderConfig(config)->spatial_padding, SpatialPadding::kReflect);
}

TEST(VideoVaeConfigTest, DiffusionFiles) {
  const nlohmann::json config = nlohmann::json::parse(
      R"({"vae":{"_class_name":"CausalDiffusionVAE","latent_channels":8,"encoder":{"out_channels":
          16,"blocks":[["compress_space_res",{"multiplier":1}]],"latent_log_var":"per_channel"},
          "decoder":{}}})");
  const auto e = ParseVideoEncoderConfig(config);
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_EQ(e->latent_channels, 16);
  EXPECT_EQ(e->blocks.size(), 1);
  EXPECT_EQ(e->conv_out_channels(), 32);
  const auto d = ParseVideoDecoderConfig(config);
  EXPECT_EQ(d.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(d.status().message()), HasSubstr("CausalDiffusionVAE"));
}

TEST(VideoVaeConfigTest, RefusesByKey) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"dims", "2"},
      {"latent_channels", "0"},
      {"patch_size", "-1"},
      {"norm_layer", "\"layer_norm\""},
      {"spatial_padding_mode", "\"mirror\""},
      {"decoder_base_channels", "1e9"},
      {"causal_decoder", "\"no\""},
      {"timestep_conditioning", "null"},
      {"decoder_blocks", "{}"},
      {"decoder_blocks", R"([["res_x"]])"},
      {"decoder_blocks", R"([["res_x",{}]])"},
      {"decoder_blocks", R"([["res_x",{"num_layers":0}]])"},
      {"decoder_blocks", R"([["attn_res_x",{"num_layers":1}]])"},
      {"decoder_blocks", R"([["compress_space_res",{}]])"},
      {"decoder_blocks", R"([["compress_all",{"multiplier":0}]])"},
      {"decoder_blocks", R"([["compress_all",{"residual":1}]])"},
      {"decoder_blocks", R"([["compress_all",[]]])"},
      {"decoder_blocks", R"([[3,{}]])"},
      {"decoder_blocks", R"(["res_x"])"},
  };
  for (const auto& [key, value] : cases) {
    nlohmann::json config = Published();
    config["vae"][key] = nlohmann::json::parse(value);
    const auto d = ParseVideoDecoderConfig(config);
    EXPECT_EQ(d.status().code(), absl::StatusCode::kInvalidArgument) << key << " " << value;
    EXPECT_THAT(std::string(d.status().message()), HasSubstr(std::string("config.vae.") + key));
  }
  nlohmann::json config = Published();
  config["vae"]["encoder_blocks"] = nlohmann::json::parse(R"([["compress_all_res",{}],["x",{}]])");
  EXPECT_THAT(std::string(ParseVideoEncoderConfig(config).status().message()),
              HasSubstr("config.vae.encoder_blocks[1][0] is \"x\""));
  EXPECT_FALSE(ParseVideoDecoderConfig(nlohmann::json::object()).ok());
  EXPECT_FALSE(ParseVideoEncoderConfig({{"vae", 3}}).ok());
}

TEST(VideoVaeConfigTest, WidthsStayInRange) {
  nlohmann::json config = Published();
  nlohmann::json& blocks = config["vae"]["decoder_blocks"];
  blocks = nlohmann::json::array();
  for (int i = 0; i < 8; ++i) blocks.push_back({"res_x_y", {{"multiplier", 64}}});
  EXPECT_FALSE(ParseVideoDecoderConfig(config).ok());
  blocks = nlohmann::json::array();
  for (int i = 0; i < 20; ++i) blocks.push_back({"compress_all", nlohmann::json::object()});
  EXPECT_FALSE(ParseVideoDecoderConfig(config).ok());
}

TEST(VideoVaeConfigTest, GroupNormNeedsMultiplesOf32) {
  nlohmann::json config = Published();
  config["vae"]["norm_layer"] = "group_norm";
  EXPECT_TRUE(ParseVideoDecoderConfig(config).ok());
  config["vae"]["decoder_base_channels"] = 24;
  EXPECT_FALSE(ParseVideoDecoderConfig(config).ok());
}

}  // namespace
}  // namespace ltx::checkpoint
