#include "engine/checkpoint/transformer_config.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// What a published 2.5 transformer says, at reduced width.
nlohmann::json Config25() {
  return nlohmann::json::parse(R"({"transformer":{
    "activation_fn":"gelu-approximate","attention_bias":true,"attention_head_dim":32,
    "audio_attention_head_dim":16,"audio_cross_attention_dim":64,"audio_in_channels":128,
    "audio_num_attention_heads":4,"audio_out_channels":128,
    "audio_positional_embedding_max_pos":[20],"av_ca_timestep_scale_multiplier":1000.0,
    "av_cross_ada_norm":true,"cross_attention_dim":128,"cross_attention_norm":true,
    "double_self_attention":false,"dropout":0.0,"frequencies_precision":"float64",
    "in_channels":128,"norm_elementwise_affine":false,"norm_eps":1e-06,"num_attention_heads":4,
    "num_embeds_ada_norm":1000,"num_layers":4,"num_vector_embeds":null,
    "only_cross_attention":false,"out_channels":128,
    "positional_embedding_max_pos":[20,2048,2048],"positional_embedding_theta":10000.0,
    "positional_embedding_type":"rope","qk_norm":"rms_norm","rope_type":"split","share_ff":false,
    "standardization_norm":"rms_norm","timestep_scale_multiplier":1000,"upcast_attention":false,
    "use_audio_video_cross_attention":true,"use_linear_projection":false,
    "use_middle_indices_grid":true,"caption_proj_before_connector":true,
    "apply_gated_attention":true,"cross_attention_adaln":true,"ff_bias":false,
    "use_keyframes_abs_pos_embedding":true,"something_new":[1]}})");
}

TEST(TransformerConfigTest, ReadsEveryKey) {
  const auto c = ParseTransformerConfig(Config25());
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(c->num_attention_heads, 4);
  EXPECT_EQ(c->attention_head_dim, 32);
  EXPECT_EQ(c->video_width(), 128);
  EXPECT_EQ(c->audio_width(), 64);
  EXPECT_EQ(c->num_layers, 4);
  EXPECT_EQ(c->cross_attention_dim, 128);
  EXPECT_EQ(c->audio_cross_attention_dim, 64);
  EXPECT_EQ(c->norm_eps, 1e-6);
  EXPECT_THAT(c->positional_embedding_max_pos, ElementsAre(20, 2048, 2048));
  EXPECT_EQ(c->rope_type, RopeType::kSplit);
  EXPECT_TRUE(c->double_precision_rope);
  EXPECT_EQ(c->timestep_scale_multiplier, 1000.0);
  EXPECT_EQ(c->av_ca_timestep_scale_multiplier, 1000.0);
  EXPECT_TRUE(c->apply_gated_attention);
  EXPECT_TRUE(c->cross_attention_adaln);
  EXPECT_TRUE(c->use_prompt_adaln_single);
  EXPECT_FALSE(c->ff_bias);
  EXPECT_TRUE(c->audio_ff_bias);
  EXPECT_TRUE(c->use_keyframes_abs_pos_embedding);
  EXPECT_TRUE(c->caption_proj_before_connector);
  EXPECT_TRUE(ValidateTransformerRequired(Config25()).ok());
}

TEST(TransformerConfigTest, DefaultsOfTheReference) {
  const auto c = ParseTransformerConfig({{"transformer", nlohmann::json::object()}});
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(c->video_width(), 4096);
  EXPECT_EQ(c->audio_width(), 2048);
  EXPECT_EQ(c->num_layers, 48);
  EXPECT_EQ(c->av_ca_timestep_scale_multiplier, 1.0);
  EXPECT_FALSE(c->double_precision_rope);
  EXPECT_FALSE(c->apply_gated_attention);
  EXPECT_FALSE(c->cross_attention_adaln);
  EXPECT_TRUE(c->use_prompt_adaln_single);
  EXPECT_TRUE(c->ff_bias);
  EXPECT_FALSE(c->caption_proj_before_connector);
  EXPECT_EQ(c->caption_channels, 3840);
}

TEST(TransformerConfigTest, OnlyTheWordFloat64IsDouble) {
  nlohmann::json config = Config25();
  for (const char* word : {"float32", "double", "Float64"}) {
    config["transformer"]["frequencies_precision"] = word;
    EXPECT_FALSE(ParseTransformerConfig(config)->double_precision_rope) << word;
  }
}

TEST(TransformerConfigTest, RefusesBadValuesByKey) {
  const std::vector<std::pair<const char*, nlohmann::json>> cases = {
      {"num_attention_heads", 0},
      {"num_attention_heads", -4},
      {"attention_head_dim", 1 << 30},
      {"num_layers", 0},
      {"num_layers", 1e18},
      {"in_channels", "128"},
      {"norm_eps", -1e-6},
      {"norm_eps", nullptr},
      {"positional_embedding_theta", 0},
      {"positional_embedding_max_pos", {20, 2048}},
      {"positional_embedding_max_pos", {20, 0, 2048}},
      {"audio_positional_embedding_max_pos", 20},
      {"rope_type", "spiral"},
      {"rope_type", 3},
      {"frequencies_precision", 64},
      {"timestep_scale_multiplier", 0},
      {"apply_gated_attention", "yes"},
      {"cross_attention_adaln", 1},
      {"ff_bias", nullptr},
  };
  for (const auto& [key, value] : cases) {
    nlohmann::json config = Config25();
    config["transformer"][key] = value;
    const auto c = ParseTransformerConfig(config);
    EXPECT_EQ(c.status().code(), absl::StatusCode::kInvalidArgument) << key << " " << value;
    EXPECT_THAT(std::string(c.status().message()),
                HasSubstr(std::string("config.transformer.") + key));
    EXPECT_THAT(std::string(c.status().message()), HasSubstr("legal is"));
  }
  for (const char* text : {"{}", "[]", R"({"transformer":[]})", R"({"transformer":null})"}) {
    EXPECT_FALSE(ParseTransformerConfig(nlohmann::json::parse(text)).ok()) << text;
    EXPECT_FALSE(ValidateTransformerRequired(nlohmann::json::parse(text)).ok()) << text;
  }
}

TEST(TransformerConfigTest, RequiredKeysHoldTheirExactValue) {
  const std::vector<std::pair<const char*, nlohmann::json>> wrong = {
      {"dropout", 0.1},
      {"attention_bias", false},
      {"num_vector_embeds", 3},
      {"activation_fn", "gelu"},
      {"num_embeds_ada_norm", 999},
      {"use_linear_projection", true},
      {"only_cross_attention", true},
      {"cross_attention_norm", false},
      {"double_self_attention", true},
      {"upcast_attention", true},
      {"standardization_norm", "layer_norm"},
      {"norm_elementwise_affine", true},
      {"qk_norm", "layer_norm"},
      {"positional_embedding_type", "sincos"},
      {"use_middle_indices_grid", false},
      {"use_audio_video_cross_attention", false},
      {"share_ff", true},
      {"av_cross_ada_norm", false},
      {"audio_num_attention_heads", 2},
  };
  for (const auto& [key, value] : wrong) {
    nlohmann::json config = Config25();
    config["transformer"][key] = value;
    absl::Status status = ValidateTransformerRequired(config);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << key;
    EXPECT_THAT(std::string(status.message()), HasSubstr(key));

    config["transformer"].erase(key);
    status = ValidateTransformerRequired(config);
    // A key that has to be null may as well be absent.
    EXPECT_EQ(status.ok(), std::string(key) == "num_vector_embeds") << key;
  }
}

TEST(TransformerConfigTest, SingleStreamModelsNeedFewerKeys) {
  nlohmann::json config = Config25();
  for (const char* key : {"use_audio_video_cross_attention", "share_ff", "av_cross_ada_norm",
                          "audio_num_attention_heads"}) {
    config["transformer"].erase(key);
  }
  EXPECT_FALSE(ValidateTransformerRequired(config).ok());
  EXPECT_TRUE(ValidateTransformerRequired(config, TransformerKind::kSingleStream).ok());
}

}  // namespace
}  // namespace ltx::checkpoint
