#ifndef LTX_ENGINE_CHECKPOINT_TRANSFORMER_CONFIG_H_
#define LTX_ENGINE_CHECKPOINT_TRANSFORMER_CONFIG_H_

#include <array>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace ltx::checkpoint {

enum class RopeType { kSplit, kInterleaved };

/// `config.transformer` as far as the diffusion transformer reads it. Member names are those of the
/// JSON keys; the initial values are the reference's for an absent key.
struct TransformerConfig {
  int64_t num_attention_heads = 32;
  int64_t attention_head_dim = 128;
  int64_t audio_num_attention_heads = 32;
  int64_t audio_attention_head_dim = 64;
  /// Latent channels of a video token.
  int64_t in_channels = 128;
  int64_t out_channels = 128;
  /// Width of an audio token: channels x mel bins of the audio latent.
  int64_t audio_in_channels = 128;
  int64_t audio_out_channels = 128;
  int64_t num_layers = 48;
  /// Widths of the text contexts. The audio one is also the rope width of cross-modal attention.
  int64_t cross_attention_dim = 4096;
  int64_t audio_cross_attention_dim = 2048;
  double norm_eps = 1e-6;
  double positional_embedding_theta = 10000.0;
  /// Seconds, pixels, pixels.
  std::array<int64_t, 3> positional_embedding_max_pos = {20, 2048, 2048};
  /// Seconds.
  std::array<int64_t, 1> audio_positional_embedding_max_pos = {20};
  RopeType rope_type = RopeType::kSplit;
  /// True if `frequencies_precision` is "float64": the frequency grid is built in double.
  bool double_precision_rope = false;
  double timestep_scale_multiplier = 1000.0;
  double av_ca_timestep_scale_multiplier = 1.0;
  bool apply_gated_attention = false;
  bool cross_attention_adaln = false;
  /// Has an effect with cross_attention_adaln alone.
  bool use_prompt_adaln_single = true;
  bool ff_bias = true;
  bool audio_ff_bias = true;
  bool use_keyframes_abs_pos_embedding = false;
  /// False: the transformer itself projects captions of caption_channels (LTX-2.0).
  bool caption_proj_before_connector = false;
  int64_t caption_channels = 3840;

  int64_t video_width() const { return num_attention_heads * attention_head_dim; }
  int64_t audio_width() const { return audio_num_attention_heads * audio_attention_head_dim; }
};

/// Reads `config["transformer"]`: types, ranges and enumerations are checked, absent keys take the
/// defaults, unknown keys are left alone. INVALID_ARGUMENT names key, value and what is legal.
absl::StatusOr<TransformerConfig> ParseTransformerConfig(const nlohmann::json& config);

enum class TransformerKind { kAudioVideo, kSingleStream };

/// The keys that the reference wants to hold one exact value, and to be present. For whole
/// checkpoints: files with text connectors alone, and test cases, lack some of them.
/// INVALID_ARGUMENT names key, value and what is legal.
absl::Status ValidateTransformerRequired(const nlohmann::json& config,
                                         TransformerKind kind = TransformerKind::kAudioVideo);

}  // namespace ltx::checkpoint

#endif  // LTX_ENGINE_CHECKPOINT_TRANSFORMER_CONFIG_H_
