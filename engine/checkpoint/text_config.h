#ifndef LTX_ENGINE_CHECKPOINT_TEXT_CONFIG_H_
#define LTX_ENGINE_CHECKPOINT_TEXT_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/transformer_config.h"
#include "nlohmann/json.hpp"

namespace ltx::checkpoint {

enum class GemmaFamily { kGemma3, kGemma4 };

/// Rotary embedding of one kind of tower layer.
struct GemmaRope {
  enum class Type {
    kDefault,
    /// Positions divided by `factor`.
    kLinear,
    /// Only `partial_rotary_factor` of the head rotates; the exponents' denominator is the full
    /// head width.
    kProportional,
  };
  Type type = Type::kDefault;
  double theta = 10000.0;
  double factor = 1.0;
  double partial_rotary_factor = 1.0;
};

/// The Hugging Face config of the text tower. Absent keys take the values of the published 12B
/// model of the family.
struct GemmaConfig {
  GemmaFamily family = GemmaFamily::kGemma4;
  /// The top-level `gemma_version`, which a transformer file may ask for.
  std::optional<std::string> gemma_version;
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t num_hidden_layers = 0;
  int64_t num_attention_heads = 0;
  int64_t num_key_value_heads = 0;
  int64_t head_dim = 0;
  /// Of full-attention layers; Gemma 3: equal to the two above.
  int64_t global_head_dim = 0;
  int64_t num_global_key_value_heads = 0;
  /// Gemma 4: full-attention layers take their values from the key projection.
  bool attention_k_eq_v = false;
  /// One per layer, true for full attention.
  std::vector<bool> full_attention;
  int64_t sliding_window = 1024;
  GemmaRope local_rope;
  GemmaRope global_rope;
  /// Factor of the scores: query_pre_attn_scalar^-0.5 (Gemma 3) or 1 (Gemma 4).
  double attention_scale = 1.0;
  /// Of the logits alone; absent: none.
  std::optional<double> final_logit_softcapping;
  double rms_norm_eps = 1e-6;
  bool tie_word_embeddings = true;
  int64_t pad_token_id = 0;
  int64_t bos_token_id = 2;
  std::vector<int64_t> eos_token_ids = {1};
  /// Placeholder tokens of other modalities (Gemma 3 knows images only).
  std::optional<int64_t> image_token_id;
  std::optional<int64_t> video_token_id;
  std::optional<int64_t> audio_token_id;
};

/// Reads a Hugging Face config (a folder's config.json, or the metadata `gemma_config`).
/// INVALID_ARGUMENT names key, value and what is legal; UNIMPLEMENTED for switches that the tower
/// does not have (shared key/value layers, double-wide MLP, fully bidirectional attention, the
/// dense `gemma4` family).
absl::StatusOr<GemmaConfig> ParseGemmaConfig(const nlohmann::json& hf_config);

/// How hidden states of the tower become features.
struct FeatureExtractorConfig {
  enum class Form {
    /// LTX-2.0: masked mean and range, one projection for both streams.
    kV1,
    /// LTX-2.3 and later: per-token RMS, one projection per stream.
    kV2,
  };
  Form form = Form::kV1;
  /// Feature widths of form v2 (heads x head width of the transformer's streams); 0 for form v1.
  int64_t video_width = 0;
  int64_t audio_width = 0;
};

/// One text connector.
struct ConnectorConfig {
  int64_t num_attention_heads = 30;
  int64_t attention_head_dim = 128;
  int64_t num_layers = 2;
  bool apply_gated_attention = false;
  bool ff_bias = true;
  /// `connector_positional_embedding_max_pos`, its only entry.
  int64_t max_pos = 1;
  RopeType rope_type = RopeType::kSplit;
  bool double_precision_rope = false;

  int64_t width() const { return num_attention_heads * attention_head_dim; }
};

/// The text side of `config["transformer"]`.
struct TextProjectionConfig {
  FeatureExtractorConfig feature_extractor;
  ConnectorConfig video_connector;
  ConnectorConfig audio_connector;
};

/// INVALID_ARGUMENT names key, value and what is legal; also if only some of the four keys of form
/// v2 are there.
absl::StatusOr<TextProjectionConfig> ParseTextProjectionConfig(const nlohmann::json& config);

struct DurationHeadConfig {
  int64_t pooler_hidden_dim = 256;
  int64_t num_queries = 1;
  int64_t num_pooler_heads = 4;
  int64_t mlp_hidden = 256;
  /// Widths of the contexts it reads, from `config["transformer"]`.
  int64_t cross_attention_dim = 4096;
  int64_t audio_cross_attention_dim = 2048;
};

/// Reads `config["duration_head"]`; an absent object stands for the defaults.
absl::StatusOr<DurationHeadConfig> ParseDurationHeadConfig(const nlohmann::json& config);

}  // namespace ltx::checkpoint

#endif  // LTX_ENGINE_CHECKPOINT_TEXT_CONFIG_H_
