#include "engine/checkpoint/transformer_config.h"

#include <algorithm>
#include <vector>

#include "engine/checkpoint/config_limits.h"
#include "engine/checkpoint/config_reader.h"

namespace ltx::checkpoint {
namespace {

/// Largest position normaliser: seconds or pixels.
constexpr int64_t kMaxPosition = 1 << 24;

template <size_t kSize>
void ReadPositions(ConfigReader& reader, const char* key, std::array<int64_t, kSize>* positions) {
  const std::vector<int64_t> values =
      reader.Ints(key, std::vector<int64_t>(positions->begin(), positions->end()), kSize, kSize, 1,
                  kMaxPosition);
  std::copy_n(values.begin(), kSize, positions->begin());
}

void ReadWidths(ConfigReader& reader, TransformerConfig* config) {
  TransformerConfig& c = *config;
  c.num_attention_heads = reader.Int("num_attention_heads", c.num_attention_heads, 1, kMaxHeads);
  c.attention_head_dim = reader.Int("attention_head_dim", c.attention_head_dim, 1, kMaxWidth);
  c.audio_num_attention_heads =
      reader.Int("audio_num_attention_heads", c.audio_num_attention_heads, 1, kMaxHeads);
  c.audio_attention_head_dim =
      reader.Int("audio_attention_head_dim", c.audio_attention_head_dim, 1, kMaxWidth);
  c.in_channels = reader.Int("in_channels", c.in_channels, 1, kMaxWidth);
  c.out_channels = reader.Int("out_channels", c.out_channels, 1, kMaxWidth);
  c.audio_in_channels = reader.Int("audio_in_channels", c.audio_in_channels, 1, kMaxWidth);
  c.audio_out_channels = reader.Int("audio_out_channels", c.audio_out_channels, 1, kMaxWidth);
  c.num_layers = reader.Int("num_layers", c.num_layers, 1, kMaxLayers);
  c.cross_attention_dim = reader.Int("cross_attention_dim", c.cross_attention_dim, 1, kMaxWidth);
  c.audio_cross_attention_dim =
      reader.Int("audio_cross_attention_dim", c.audio_cross_attention_dim, 1, kMaxWidth);
  if (reader.HasValue("caption_channels")) {
    c.caption_channels = reader.Int("caption_channels", c.caption_channels, 1, kMaxWidth);
  }
}

void ReadSwitches(ConfigReader& reader, TransformerConfig* config) {
  TransformerConfig& c = *config;
  c.rope_type = reader.OneOf<RopeType>(
      "rope_type", c.rope_type,
      {{"split", RopeType::kSplit}, {"interleaved", RopeType::kInterleaved}});
  c.double_precision_rope = reader.String("frequencies_precision", "float32") == "float64";
  c.apply_gated_attention = reader.Bool("apply_gated_attention", c.apply_gated_attention);
  c.cross_attention_adaln = reader.Bool("cross_attention_adaln", c.cross_attention_adaln);
  c.use_prompt_adaln_single = reader.Bool("use_prompt_adaln_single", c.use_prompt_adaln_single);
  c.ff_bias = reader.Bool("ff_bias", c.ff_bias);
  c.audio_ff_bias = reader.Bool("audio_ff_bias", c.audio_ff_bias);
  c.use_keyframes_abs_pos_embedding =
      reader.Bool("use_keyframes_abs_pos_embedding", c.use_keyframes_abs_pos_embedding);
  c.caption_proj_before_connector =
      reader.Bool("caption_proj_before_connector", c.caption_proj_before_connector);
}

}  // namespace

absl::StatusOr<TransformerConfig> ParseTransformerConfig(const nlohmann::json& config) {
  ConfigReader root(config, "config");
  root.Require("transformer");
  ConfigReader reader = root.Object("transformer");
  TransformerConfig c;
  ReadWidths(reader, &c);
  ReadPositions(reader, "positional_embedding_max_pos", &c.positional_embedding_max_pos);
  ReadPositions(reader, "audio_positional_embedding_max_pos",
                &c.audio_positional_embedding_max_pos);
  // An epsilon of 1 or more would drown the signal; a rope base of 1 or less gives no frequencies.
  c.norm_eps = reader.Number("norm_eps", c.norm_eps, 0.0, 1.0);
  c.positional_embedding_theta =
      reader.Number("positional_embedding_theta", c.positional_embedding_theta, 1.0, 1e12);
  c.timestep_scale_multiplier =
      reader.Number("timestep_scale_multiplier", c.timestep_scale_multiplier, 1e-6, 1e6);
  c.av_ca_timestep_scale_multiplier = reader.Number("av_ca_timestep_scale_multiplier",
                                                    c.av_ca_timestep_scale_multiplier, 1e-6, 1e6);
  ReadSwitches(reader, &c);
  if (!reader.status().ok()) return reader.status();
  return c;
}

absl::Status ValidateTransformerRequired(const nlohmann::json& config, TransformerKind kind) {
  ConfigReader root(config, "config");
  root.Require("transformer");
  ConfigReader reader = root.Object("transformer");
  reader.RequireEqual("dropout", 0.0);
  reader.RequireEqual("attention_bias", true);
  reader.RequireEqual("num_vector_embeds", nullptr);
  reader.RequireEqual("activation_fn", "gelu-approximate");
  reader.RequireEqual("num_embeds_ada_norm", 1000);
  reader.RequireEqual("use_linear_projection", false);
  reader.RequireEqual("only_cross_attention", false);
  reader.RequireEqual("cross_attention_norm", true);
  reader.RequireEqual("double_self_attention", false);
  reader.RequireEqual("upcast_attention", false);
  reader.RequireEqual("standardization_norm", "rms_norm");
  reader.RequireEqual("norm_elementwise_affine", false);
  reader.RequireEqual("qk_norm", "rms_norm");
  reader.RequireEqual("positional_embedding_type", "rope");
  reader.RequireEqual("use_middle_indices_grid", true);
  if (kind == TransformerKind::kAudioVideo) {
    reader.RequireEqual("use_audio_video_cross_attention", true);
    reader.RequireEqual("share_ff", false);
    reader.RequireEqual("av_cross_ada_norm", true);
    reader.Require("num_attention_heads");
    reader.Require("audio_num_attention_heads");
    if (reader.status().ok()) {
      reader.RequireEqual("audio_num_attention_heads", *reader.Find("num_attention_heads"));
    }
  }
  return reader.status();
}

}  // namespace ltx::checkpoint
