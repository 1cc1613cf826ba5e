#include "engine/checkpoint/text_config.h"

#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/config_limits.h"
#include "engine/checkpoint/config_reader.h"
#include "kernels/status_macros.h"

namespace ltx::checkpoint {
namespace {

/// Rope bases and position divisors.
constexpr double kMaxTheta = 1e12;
constexpr double kMaxRopeFactor = 1e6;
/// Without `layer_types`, one layer in six sees everything.
constexpr int64_t kFullAttentionPeriod = 6;

/// What the published 12B model of a family says, for keys its config leaves out.
struct GemmaDefaults {
  int64_t vocab_size;
  int64_t global_head_dim;
  GemmaRope local;
  GemmaRope global;
};

const GemmaDefaults& DefaultsOf(GemmaFamily family) {
  using Type = GemmaRope::Type;
  static const GemmaDefaults gemma3 = {
      262208, 256, {Type::kDefault, 1e4, 1.0, 1.0}, {Type::kDefault, 1e6, 1.0, 1.0}};
  static const GemmaDefaults gemma4 = {
      262144, 512, {Type::kDefault, 1e4, 1.0, 1.0}, {Type::kProportional, 1e6, 1.0, 0.25}};
  return family == GemmaFamily::kGemma3 ? gemma3 : gemma4;
}

/// One entry of `rope_parameters`, or `rope_scaling`; what it leaves out comes from `fallback`.
GemmaRope ReadRope(ConfigReader& reader, const GemmaRope& fallback) {
  using Type = GemmaRope::Type;
  GemmaRope rope = fallback;
  // Older files call it "type".
  const char* const type_key = reader.Has("rope_type") ? "rope_type" : "type";
  rope.type = reader.OneOf<Type>(type_key, fallback.type,
                                 {{"default", Type::kDefault},
                                  {"linear", Type::kLinear},
                                  {"proportional", Type::kProportional}});
  rope.theta = reader.Number("rope_theta", fallback.theta, 1.0, kMaxTheta);
  if (rope.type == Type::kLinear && rope.type != fallback.type) reader.Require("factor");
  if (reader.HasValue("factor")) {
    rope.factor = reader.Number("factor", rope.factor, 1.0, kMaxRopeFactor);
  }
  if (reader.HasValue("partial_rotary_factor")) {
    rope.partial_rotary_factor =
        reader.Number("partial_rotary_factor", rope.partial_rotary_factor, 0.0, 1.0);
  }
  return rope;
}

/// A rope of the default type: what an entry without keys means, whatever the family's own is.
GemmaRope PlainRope(double theta) { return {GemmaRope::Type::kDefault, theta, 1.0, 1.0}; }

/// Per-layer-type `rope_parameters`; around them the older flat keys of Gemma 3: thetas for entries
/// without one, and `rope_scaling` on top of the full-attention entry.
void ReadRopes(ConfigReader& reader, GemmaConfig* config) {
  const GemmaDefaults& defaults = DefaultsOf(config->family);
  const bool gemma3 = config->family == GemmaFamily::kGemma3;
  config->local_rope = defaults.local;
  config->global_rope = defaults.global;
  if (gemma3) {
    config->local_rope.theta =
        reader.Number("rope_local_base_freq", defaults.local.theta, 1.0, kMaxTheta);
    config->global_rope.theta = reader.Number("rope_theta", defaults.global.theta, 1.0, kMaxTheta);
  }
  if (reader.HasValue("rope_parameters")) {
    ConfigReader parameters = reader.Object("rope_parameters");
    ConfigReader local = parameters.Object("sliding_attention");
    ConfigReader global = parameters.Object("full_attention");
    config->local_rope = ReadRope(local, PlainRope(config->local_rope.theta));
    config->global_rope = ReadRope(global, PlainRope(config->global_rope.theta));
  }
  if (gemma3 && reader.HasValue("rope_scaling")) {
    ConfigReader scaling = reader.Object("rope_scaling");
    config->global_rope = ReadRope(scaling, config->global_rope);
  }
}

void ReadLayerTypes(ConfigReader& reader, GemmaConfig* config) {
  std::vector<bool>& full = config->full_attention;
  const int64_t layers = config->num_hidden_layers;
  if (reader.HasValue("layer_types")) {
    const nlohmann::json& types = *reader.Find("layer_types");
    bool legal = types.is_array() && static_cast<int64_t>(types.size()) == layers;
    for (size_t i = 0; legal && i < types.size(); ++i) {
      legal = types[i] == "full_attention" || types[i] == "sliding_attention";
      full.push_back(types[i] == "full_attention");
    }
    if (!legal) {
      full.clear();
      return reader.FailValue("layer_types",
                              absl::StrCat("a list of num_hidden_layers = ", layers,
                                           " times \"full_attention\" or \"sliding_attention\""));
    }
  } else {
    int64_t period = kFullAttentionPeriod;
    if (config->family == GemmaFamily::kGemma3) {
      period = reader.Int("sliding_window_pattern", period, 1, kMaxLayers);
    }
    for (int64_t i = 0; i < layers; ++i) full.push_back((i + 1) % period == 0);
  }
  if (config->family == GemmaFamily::kGemma4 && !full.empty()) full.back() = true;
}

void ReadAttention(ConfigReader& reader, GemmaConfig* config) {
  GemmaConfig& c = *config;
  c.num_attention_heads = reader.Int("num_attention_heads", 16, 1, kMaxHeads);
  c.num_key_value_heads = reader.Int("num_key_value_heads", 8, 1, kMaxHeads);
  c.head_dim = reader.Int("head_dim", 256, 1, kMaxWidth);
  c.global_head_dim = c.head_dim;
  c.num_global_key_value_heads = c.num_key_value_heads;
  if (c.family == GemmaFamily::kGemma4) {
    c.global_head_dim = DefaultsOf(c.family).global_head_dim;
    if (reader.HasValue("global_head_dim")) {
      c.global_head_dim = reader.Int("global_head_dim", c.global_head_dim, 1, kMaxWidth);
    }
    if (reader.HasValue("num_global_key_value_heads")) {
      c.num_global_key_value_heads =
          reader.Int("num_global_key_value_heads", c.num_key_value_heads, 1, kMaxHeads);
    }
    c.attention_k_eq_v = reader.Bool("attention_k_eq_v", false);
  } else {
    c.attention_scale = 1.0 / std::sqrt(reader.Number("query_pre_attn_scalar", 256.0, 1e-6, 1e9));
  }
  if (reader.status().ok() && c.num_attention_heads % c.num_key_value_heads != 0) {
    reader.FailValue("num_key_value_heads",
                     absl::StrCat("a divisor of num_attention_heads ", c.num_attention_heads));
  }
  if (reader.status().ok() && c.num_attention_heads % c.num_global_key_value_heads != 0) {
    reader.FailValue("num_global_key_value_heads",
                     absl::StrCat("a divisor of num_attention_heads ", c.num_attention_heads));
  }
  for (const int64_t width : {c.head_dim, c.global_head_dim}) {
    if (width % 2 != 0) reader.FailValue("head_dim", "even, since rotations pair its halves");
  }
  // A window of no keys would hide even the token itself.
  c.sliding_window = reader.Int("sliding_window", 1024, 1, kMaxVocabulary);
  ReadLayerTypes(reader, config);
  ReadRopes(reader, config);
}

/// Switches that would change the computation and that the tower does not have.
void RefuseSwitches(ConfigReader& reader) {
  if (reader.HasValue("num_kv_shared_layers") &&
      reader.Int("num_kv_shared_layers", 0, 0, kMaxLayers) != 0) {
    reader.Unsupported("num_kv_shared_layers", "0");
  }
  if (reader.HasValue("use_double_wide_mlp") && reader.Bool("use_double_wide_mlp", false)) {
    reader.Unsupported("use_double_wide_mlp", "false");
  }
  if (reader.HasValue("attention_bias") && reader.Bool("attention_bias", false)) {
    reader.Unsupported("attention_bias", "false");
  }
  if (reader.HasValue("enable_moe_block") && reader.Bool("enable_moe_block", false)) {
    reader.Unsupported("enable_moe_block", "false");
  }
  if (reader.HasValue("hidden_size_per_layer_input") &&
      reader.Int("hidden_size_per_layer_input", 0, 0, kMaxWidth) != 0) {
    reader.Unsupported("hidden_size_per_layer_input", "0");
  }
  if (reader.HasValue("use_bidirectional_attention")) {
    const nlohmann::json& value = *reader.Find("use_bidirectional_attention");
    // Text stays causal under "vision".
    if (value != false && value != "vision") {
      reader.Unsupported("use_bidirectional_attention", "false, \"vision\"");
    }
  }
  for (const char* key : {"hidden_activation", "hidden_act"}) {
    if (reader.HasValue(key) && reader.String(key, "") != "gelu_pytorch_tanh") {
      reader.Unsupported(key, "\"gelu_pytorch_tanh\"");
    }
  }
}

std::optional<int64_t> ReadOptionalId(ConfigReader& reader, std::initializer_list<const char*> keys,
                                      std::optional<int64_t> fallback) {
  for (const char* key : keys) {
    if (reader.HasValue(key)) return reader.Int(key, 0, 0, kMaxVocabulary);
  }
  return fallback;
}

/// Token ids: the top level of the config wins over its text part.
void ReadTokenIds(ConfigReader& root, ConfigReader& text, GemmaConfig* config) {
  GemmaConfig& c = *config;
  const auto pick = [&](const char* key) -> ConfigReader& {
    return root.HasValue(key) ? root : text;
  };
  const auto id = [&](const char* key, int64_t fallback) {
    ConfigReader& reader = pick(key);
    return reader.HasValue(key) ? reader.Int(key, fallback, 0, kMaxVocabulary) : fallback;
  };
  c.pad_token_id = id("pad_token_id", c.pad_token_id);
  c.bos_token_id = id("bos_token_id", c.bos_token_id);
  ConfigReader& eos = pick("eos_token_id");
  if (eos.HasValue("eos_token_id")) {
    if (eos.Find("eos_token_id")->is_array()) {
      c.eos_token_ids = eos.Ints("eos_token_id", {}, 1, 64, 0, kMaxVocabulary);
    } else {
      c.eos_token_ids = {eos.Int("eos_token_id", 1, 0, kMaxVocabulary)};
    }
  } else if (c.family == GemmaFamily::kGemma3) {
    c.eos_token_ids = {1, 106};
  }
  const bool gemma4 = c.family == GemmaFamily::kGemma4;
  c.image_token_id =
      ReadOptionalId(root, {"image_token_id", "image_token_index"}, gemma4 ? 258880 : 262144);
  if (gemma4) {
    c.video_token_id = ReadOptionalId(root, {"video_token_id"}, 258884);
    c.audio_token_id = ReadOptionalId(root, {"audio_token_id"}, 258881);
  }
}

GemmaFamily ReadFamily(ConfigReader& root) {
  root.Require("model_type");
  if (root.String("model_type", "") == "gemma4") {
    // The dense family rewrites prompts in the reference; it is no text tower of a checkpoint.
    root.Unsupported("model_type", "\"gemma3\", \"gemma4_unified\"");
  }
  return root.OneOf<GemmaFamily>(
      "model_type", GemmaFamily::kGemma4,
      {{"gemma3", GemmaFamily::kGemma3}, {"gemma4_unified", GemmaFamily::kGemma4}});
}

ConnectorConfig ReadConnector(ConfigReader& reader) {
  ConnectorConfig c;
  c.num_attention_heads =
      reader.Int("connector_num_attention_heads", c.num_attention_heads, 1, kMaxHeads);
  c.attention_head_dim =
      reader.Int("connector_attention_head_dim", c.attention_head_dim, 1, kMaxWidth);
  c.num_layers = reader.Int("connector_num_layers", c.num_layers, 0, kMaxLayers);
  c.apply_gated_attention = reader.Bool("connector_apply_gated_attention", c.apply_gated_attention);
  c.ff_bias = reader.Bool("connector_ff_bias", c.ff_bias);
  c.max_pos = reader.Ints("connector_positional_embedding_max_pos", {c.max_pos}, 1, 1, 1,
                          kMaxVocabulary)[0];
  c.rope_type = reader.OneOf<RopeType>(
      "rope_type", c.rope_type,
      {{"split", RopeType::kSplit}, {"interleaved", RopeType::kInterleaved}});
  c.double_precision_rope = reader.String("frequencies_precision", "float32") == "float64";
  return c;
}

FeatureExtractorConfig ReadFeatureExtractor(ConfigReader& reader) {
  // The four flags that together mean form v2, with the only values the reference takes.
  constexpr std::array<std::pair<const char*, bool>, 4> kFlags = {
      {{"caption_proj_before_connector", true},
       {"caption_projection_first_linear", false},
       {"caption_proj_input_norm", false},
       {"caption_projection_second_linear", false}}};
  FeatureExtractorConfig c;
  bool any = false;
  for (const auto& [key, value] : kFlags) any = any || reader.Has(key);
  if (!any) return c;
  for (const auto& [key, value] : kFlags) reader.RequireEqual(key, value);
  c.form = FeatureExtractorConfig::Form::kV2;
  for (const char* key : {"num_attention_heads", "attention_head_dim", "audio_num_attention_heads",
                          "audio_attention_head_dim"}) {
    reader.Require(key);
  }
  c.video_width = reader.Int("num_attention_heads", 1, 1, kMaxHeads) *
                  reader.Int("attention_head_dim", 1, 1, kMaxWidth);
  c.audio_width = reader.Int("audio_num_attention_heads", 1, 1, kMaxHeads) *
                  reader.Int("audio_attention_head_dim", 1, 1, kMaxWidth);
  return c;
}

}  // namespace

absl::StatusOr<GemmaConfig> ParseGemmaConfig(const nlohmann::json& hf_config) {
  ConfigReader root(hf_config, "gemma_config");
  GemmaConfig c;
  c.family = ReadFamily(root);
  if (root.HasValue("gemma_version")) c.gemma_version = root.String("gemma_version", "");
  root.Require("text_config");
  ConfigReader text = root.Object("text_config");
  c.vocab_size = text.Int("vocab_size", DefaultsOf(c.family).vocab_size, 1, kMaxVocabulary);
  c.hidden_size = text.Int("hidden_size", 3840, 1, kMaxWidth);
  c.intermediate_size = text.Int("intermediate_size", 15360, 1, kMaxWidth);
  c.num_hidden_layers = text.Int("num_hidden_layers", 48, 1, kMaxLayers);
  c.rms_norm_eps = text.Number("rms_norm_eps", 1e-6, 0.0, 1.0);
  c.tie_word_embeddings = text.Bool("tie_word_embeddings", true);
  if (text.HasValue("final_logit_softcapping")) {
    c.final_logit_softcapping = text.Number("final_logit_softcapping", 30.0, 1e-6, 1e9);
  }
  RefuseSwitches(text);
  ReadAttention(text, &c);
  ReadTokenIds(root, text, &c);
  if (!root.status().ok()) return root.status();
  return c;
}

absl::StatusOr<TextProjectionConfig> ParseTextProjectionConfig(const nlohmann::json& config) {
  ConfigReader root(config, "config");
  root.Require("transformer");
  ConfigReader reader = root.Object("transformer");
  TextProjectionConfig c;
  c.feature_extractor = ReadFeatureExtractor(reader);
  c.video_connector = ReadConnector(reader);
  c.audio_connector = c.video_connector;
  c.audio_connector.num_attention_heads = reader.Int(
      "audio_connector_num_attention_heads", c.video_connector.num_attention_heads, 1, kMaxHeads);
  c.audio_connector.attention_head_dim = reader.Int(
      "audio_connector_attention_head_dim", c.video_connector.attention_head_dim, 1, kMaxWidth);
  c.audio_connector.num_layers =
      reader.Int("audio_connector_num_layers", c.video_connector.num_layers, 0, kMaxLayers);
  if (!root.status().ok()) return root.status();
  return c;
}

absl::StatusOr<DurationHeadConfig> ParseDurationHeadConfig(const nlohmann::json& config) {
  ConfigReader root(config, "config");
  ConfigReader head = root.Object("duration_head");
  ConfigReader transformer = root.Object("transformer");
  DurationHeadConfig c;
  c.pooler_hidden_dim = head.Int("pooler_hidden_dim", c.pooler_hidden_dim, 1, kMaxWidth);
  c.num_queries = head.Int("num_queries", c.num_queries, 1, kMaxWidth);
  c.num_pooler_heads = head.Int("num_pooler_heads", c.num_pooler_heads, 1, kMaxHeads);
  c.mlp_hidden = head.Int("mlp_hidden", c.mlp_hidden, 1, kMaxWidth);
  c.cross_attention_dim =
      transformer.Int("cross_attention_dim", c.cross_attention_dim, 1, kMaxWidth);
  c.audio_cross_attention_dim =
      transformer.Int("audio_cross_attention_dim", c.audio_cross_attention_dim, 1, kMaxWidth);
  if (root.status().ok() && c.pooler_hidden_dim % c.num_pooler_heads != 0) {
    head.FailValue("num_pooler_heads",
                   absl::StrCat("a divisor of pooler_hidden_dim ", c.pooler_hidden_dim));
  }
  if (!root.status().ok()) return root.status();
  return c;
}

}  // namespace ltx::checkpoint
