#include "engine/checkpoint/text_config.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

nlohmann::json Gemma4() {
  return nlohmann::json::parse(R"({
    "model_type":"gemma4_unified","gemma_version":"v1",
    "text_config":{"vocab_size":552,"hidden_size":32,"intermediate_size":48,
      "num_hidden_layers":3,"layer_types":["sliding_attention","full_attention",
      "full_attention"],"num_attention_heads":4,"num_key_value_heads":2,"head_dim":8,
      "global_head_dim":16,"num_global_key_value_heads":1,"attention_k_eq_v":true,
      "num_kv_shared_layers":0,"use_double_wide_mlp":false,"sliding_window":16,
      "hidden_activation":"gelu_pytorch_tanh","rms_norm_eps":1e-06,"attention_bias":false,
      "final_logit_softcapping":30.0,"use_bidirectional_attention":"vision","pad_token_id":0,
      "eos_token_id":1,"bos_token_id":2,
      "rope_parameters":{"sliding_attention":{"rope_type":"default","rope_theta":10000.0},
        "full_attention":{"rope_type":"proportional","partial_rotary_factor":0.5,
        "rope_theta":1000000.0}}},
    "image_token_id":545,"audio_token_id":548,"video_token_id":551})");
}

nlohmann::json Gemma3() {
  return nlohmann::json::parse(R"({
    "model_type":"gemma3",
    "text_config":{"vocab_size":548,"hidden_size":24,"intermediate_size":48,
      "num_hidden_layers":3,"layer_types":["sliding_attention","full_attention",
      "sliding_attention"],"num_attention_heads":4,"num_key_value_heads":2,"head_dim":8,
      "query_pre_attn_scalar":16,"sliding_window":16,"rope_theta":500000.0,
      "rope_local_base_freq":20000.0,"rope_scaling":{"factor":8.0,"rope_type":"linear"}},
    "image_token_index":545,"eos_token_id":[1,106]})");
}

TEST(GemmaConfigTest, Gemma4) {
  const auto c = ParseGemmaConfig(Gemma4());
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(c->family, GemmaFamily::kGemma4);
  EXPECT_EQ(c->gemma_version, "v1");
  EXPECT_EQ(c->head_dim, 8);
  EXPECT_EQ(c->global_head_dim, 16);
  EXPECT_EQ(c->num_global_key_value_heads, 1);
  EXPECT_TRUE(c->attention_k_eq_v);
  EXPECT_THAT(c->full_attention, ElementsAre(false, true, true));
  EXPECT_EQ(c->attention_scale, 1.0);
  EXPECT_EQ(c->local_rope.type, GemmaRope::Type::kDefault);
  EXPECT_EQ(c->global_rope.type, GemmaRope::Type::kProportional);
  EXPECT_EQ(c->global_rope.partial_rotary_factor, 0.5);
  EXPECT_EQ(c->global_rope.theta, 1e6);
  EXPECT_EQ(c->final_logit_softcapping, 30.0);
  EXPECT_EQ(c->image_token_id, 545);
  EXPECT_EQ(c->video_token_id, 551);
  EXPECT_EQ(c->audio_token_id, 548);
}

TEST(GemmaConfigTest, Gemma3) {
  const auto c = ParseGemmaConfig(Gemma3());
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(c->family, GemmaFamily::kGemma3);
  EXPECT_FALSE(c->gemma_version.has_value());
  EXPECT_EQ(c->global_head_dim, 8);
  EXPECT_EQ(c->num_global_key_value_heads, 2);
  EXPECT_EQ(c->attention_scale, 0.25);
  EXPECT_EQ(c->local_rope.theta, 20000.0);
  EXPECT_EQ(c->global_rope.type, GemmaRope::Type::kLinear);
  EXPECT_EQ(c->global_rope.factor, 8.0);
  EXPECT_EQ(c->global_rope.theta, 500000.0);
  EXPECT_FALSE(c->final_logit_softcapping.has_value());
  EXPECT_THAT(c->eos_token_ids, ElementsAre(1, 106));
  EXPECT_FALSE(c->video_token_id.has_value());
  // The last layer of Gemma 3 may be local.
  EXPECT_THAT(c->full_attention, ElementsAre(false, true, false));
}

TEST(GemmaConfigTest, Gemma3WithRopeParameters) {
  nlohmann::json config = Gemma3();
  config["text_config"]["rope_parameters"] = nlohmann::json::parse(
      R"({"full_attention":{"rope_type":"linear","factor":4.0,"rope_theta":7e5},
          "sliding_attention":{"rope_type":"default","rope_theta":3e4}})");
  const auto c = ParseGemmaConfig(config);
  ASSERT_TRUE(c.ok()) << c.status();
  // The older key still goes on top of the entry.
  EXPECT_EQ(c->global_rope.factor, 8.0);
  EXPECT_EQ(c->global_rope.theta, 7e5);
  EXPECT_EQ(c->local_rope.theta, 3e4);

  config["text_config"].erase("rope_scaling");
  EXPECT_EQ(ParseGemmaConfig(config)->global_rope.factor, 4.0);
}

TEST(GemmaConfigTest, Gemma3RopeParametersTakeFlatThetas) {
  nlohmann::json config = Gemma3();
  config["text_config"].erase("rope_scaling");
  config["text_config"]["rope_parameters"] = nlohmann::json::parse(
      R"({"full_attention":{"rope_type":"linear","factor":4.0},"sliding_attention":{}})");
  const auto c = ParseGemmaConfig(config);
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(c->global_rope.theta, 500000.0);
  EXPECT_EQ(c->local_rope.theta, 20000.0);
}

TEST(GemmaConfigTest, RopeEntryWithoutTypeIsPlain) {
  nlohmann::json config = Gemma4();
  nlohmann::json& full = config["text_config"]["rope_parameters"]["full_attention"];
  full.erase("partial_rotary_factor");
  auto c = ParseGemmaConfig(config);
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(c->global_rope.type, GemmaRope::Type::kProportional);
  EXPECT_EQ(c->global_rope.partial_rotary_factor, 1.0);
  full.erase("rope_type");
  c = ParseGemmaConfig(config);
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(c->global_rope.type, GemmaRope::Type::kDefault);
  config["text_config"].erase("rope_parameters");
  EXPECT_EQ(ParseGemmaConfig(config)->global_rope.partial_rotary_factor, 0.25);
}

TEST(GemmaConfigTest, Gemma3LayerPattern) {
  nlohmann::json config = Gemma3();
  config["text_config"].erase("layer_types");
  config["text_config"]["num_hidden_layers"] = 4;
  config["text_config"]["sliding_window_pattern"] = 2;
  EXPECT_THAT(ParseGemmaConfig(config)->full_attention, ElementsAre(false, true, false, true));
}

TEST(GemmaConfigTest, NoSoftCapUnlessAskedFor) {
  nlohmann::json config = Gemma4();
  config["text_config"].erase("final_logit_softcapping");
  EXPECT_FALSE(ParseGemmaConfig(config)->final_logit_softcapping.has_value());
}

TEST(GemmaConfigTest, DefaultsOfThePublishedModels) {
  for (const char* family : {"gemma3", "gemma4_unified"}) {
    const auto c =
        ParseGemmaConfig({{"model_type", family}, {"text_config", nlohmann::json::object()}});
    ASSERT_TRUE(c.ok()) << c.status();
    EXPECT_EQ(c->hidden_size, 3840);
    EXPECT_EQ(c->num_hidden_layers, 48);
    EXPECT_EQ(c->num_attention_heads, 16);
    EXPECT_EQ(std::count(c->full_attention.begin(), c->full_attention.end(), true), 8);
    EXPECT_TRUE(c->full_attention[5]);
    EXPECT_FALSE(c->full_attention[6]);
  }
}

TEST(GemmaConfigTest, LastLayerOfGemma4IsGlobal) {
  nlohmann::json config = Gemma4();
  config["text_config"]["layer_types"][2] = "sliding_attention";
  EXPECT_THAT(ParseGemmaConfig(config)->full_attention, ElementsAre(false, true, true));
}

TEST(GemmaConfigTest, RefusesByKey) {
  struct Case {
    const char* key;
    nlohmann::json value;
    absl::StatusCode code;
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  constexpr auto kUnsupported = absl::StatusCode::kUnimplemented;
  const std::vector<Case> cases = {
      {"num_kv_shared_layers", 2, kUnsupported},
      {"use_double_wide_mlp", true, kUnsupported},
      {"attention_bias", true, kUnsupported},
      {"use_bidirectional_attention", "all", kUnsupported},
      {"use_bidirectional_attention", true, kUnsupported},
      {"hidden_activation", "silu", kUnsupported},
      {"hidden_size", 0, kInvalid},
      {"num_hidden_layers", -1, kInvalid},
      {"num_hidden_layers", 4, kInvalid},
      {"layer_types", {"full_attention"}, kInvalid},
      {"layer_types", {"full_attention", "x", "full_attention"}, kInvalid},
      {"num_key_value_heads", 3, kInvalid},
      {"num_global_key_value_heads", 3, kInvalid},
      {"head_dim", 7, kInvalid},
      {"sliding_window", 0, kInvalid},
      {"rms_norm_eps", "x", kInvalid},
      {"final_logit_softcapping", -1, kInvalid},
      {"rope_parameters", 3, kInvalid},
      {"vocab_size", 1e12, kInvalid},
  };
  for (const Case& bad : cases) {
    nlohmann::json config = Gemma4();
    config["text_config"][bad.key] = bad.value;
    const auto c = ParseGemmaConfig(config);
    EXPECT_EQ(c.status().code(), bad.code) << bad.key << " " << bad.value << c.status();
  }
  for (const auto& [type, code] :
       {std::pair("gemma2", kInvalid), std::pair("gemma4", kUnsupported)}) {
    nlohmann::json config = Gemma4();
    config["model_type"] = type;
    EXPECT_EQ(ParseGemmaConfig(config).status().code(), code);
    EXPECT_THAT(std::string(ParseGemmaConfig(config).status().message()), HasSubstr(type));
  }
  EXPECT_FALSE(ParseGemmaConfig(nlohmann::json::object()).ok());
  EXPECT_FALSE(ParseGemmaConfig({{"model_type", "gemma3"}}).ok());
}

TEST(GemmaConfigTest, RopeScalingNeedsItsFactor) {
  nlohmann::json config = Gemma3();
  config["text_config"]["rope_scaling"].erase("factor");
  EXPECT_FALSE(ParseGemmaConfig(config).ok());
  config["text_config"]["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", 2}};
  EXPECT_FALSE(ParseGemmaConfig(config).ok());
  config["text_config"]["rope_scaling"] = nullptr;
  EXPECT_EQ(ParseGemmaConfig(config)->global_rope.type, GemmaRope::Type::kDefault);
}

nlohmann::json Projection() {
  return nlohmann::json::parse(R"({"transformer":{"num_attention_heads":4,"attention_head_dim":8,
    "audio_num_attention_heads":4,"audio_attention_head_dim":4,
    "connector_num_attention_heads":4,"connector_attention_head_dim":8,"connector_num_layers":2,
    "audio_connector_num_attention_heads":2,"audio_connector_attention_head_dim":4,
    "audio_connector_num_layers":3,"connector_apply_gated_attention":true,
    "connector_ff_bias":false,"connector_positional_embedding_max_pos":[4096],
    "frequencies_precision":"float64","rope_type":"split","caption_proj_before_connector":true,
    "caption_projection_first_linear":false,"caption_proj_input_norm":false,
    "caption_projection_second_linear":false}})");
}

TEST(TextProjectionConfigTest, FormV2) {
  const auto c = ParseTextProjectionConfig(Projection());
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(c->feature_extractor.form, FeatureExtractorConfig::Form::kV2);
  EXPECT_EQ(c->feature_extractor.video_width, 32);
  EXPECT_EQ(c->feature_extractor.audio_width, 16);
  EXPECT_EQ(c->video_connector.width(), 32);
  EXPECT_EQ(c->audio_connector.width(), 8);
  EXPECT_EQ(c->audio_connector.num_layers, 3);
  EXPECT_FALSE(c->audio_connector.ff_bias);
  EXPECT_TRUE(c->video_connector.apply_gated_attention);
  EXPECT_EQ(c->video_connector.max_pos, 4096);
  EXPECT_TRUE(c->audio_connector.double_precision_rope);
}

TEST(TextProjectionConfigTest, Defaults) {
  const auto c = ParseTextProjectionConfig({{"transformer", nlohmann::json::object()}});
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(c->feature_extractor.form, FeatureExtractorConfig::Form::kV1);
  EXPECT_EQ(c->video_connector.width(), 3840);
  EXPECT_EQ(c->video_connector.num_layers, 2);
  EXPECT_EQ(c->video_connector.max_pos, 1);
  EXPECT_TRUE(c->video_connector.ff_bias);
}

TEST(TextProjectionConfigTest, AudioConnectorFollowsTheVideoOne) {
  nlohmann::json config = Projection();
  for (const char* key : {"audio_connector_num_attention_heads",
                          "audio_connector_attention_head_dim", "audio_connector_num_layers"}) {
    config["transformer"].erase(key);
  }
  EXPECT_EQ(ParseTextProjectionConfig(config)->audio_connector.width(), 32);
  EXPECT_EQ(ParseTextProjectionConfig(config)->audio_connector.num_layers, 2);
}

TEST(TextProjectionConfigTest, PartialOrOtherV2FlagsAreRefused) {
  for (const char* key : {"caption_proj_before_connector", "caption_projection_first_linear",
                          "caption_proj_input_norm", "caption_projection_second_linear"}) {
    nlohmann::json config = Projection();
    config["transformer"].erase(key);
    auto c = ParseTextProjectionConfig(config);
    EXPECT_EQ(c.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(c.status().message()), HasSubstr(key));
    config = Projection();
    config["transformer"][key] = !config["transformer"][key].get<bool>();
    c = ParseTextProjectionConfig(config);
    EXPECT_EQ(c.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(c.status().message()), HasSubstr(key));
  }
  nlohmann::json config = Projection();
  config["transformer"].erase("audio_num_attention_heads");
  EXPECT_FALSE(ParseTextProjectionConfig(config).ok());
  config = Projection();
  config["transformer"]["connector_positional_embedding_max_pos"] = 4096;
  EXPECT_FALSE(ParseTextProjectionConfig(config).ok());
}

TEST(DurationHeadConfigTest, ValuesAndDefaults) {
  auto c = ParseDurationHeadConfig(nlohmann::json::object());
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(c->pooler_hidden_dim, 256);
  EXPECT_EQ(c->cross_attention_dim, 4096);
  c = ParseDurationHeadConfig(nlohmann::json::parse(
      R"({"duration_head":{"pooler_hidden_dim":24,"num_queries":3,"num_pooler_heads":3,
          "mlp_hidden":20},"transformer":{"cross_attention_dim":48,
          "audio_cross_attention_dim":24}})"));
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(c->num_queries, 3);
  EXPECT_EQ(c->mlp_hidden, 20);
  EXPECT_EQ(c->audio_cross_attention_dim, 24);
  EXPECT_FALSE(ParseDurationHeadConfig({{"duration_head", {{"num_pooler_heads", 3}}}}).ok());
  EXPECT_FALSE(ParseDurationHeadConfig({{"duration_head", {{"num_queries", 0}}}}).ok());
}

}  // namespace
}  // namespace ltx::checkpoint
