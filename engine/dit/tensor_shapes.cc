#include "engine/dit/tensor_shapes.h"

#include "absl/strings/str_cat.h"
#include "engine/dit/timestep_embedding.h"

namespace ltx::dit {

void AddLinear(TensorShapes* shapes, const std::string& name, int64_t in, int64_t out, bool bias) {
  (*shapes)[name + ".weight"] = {out, in};
  if (bias) (*shapes)[name + ".bias"] = {out};
}

void AddAdaln(TensorShapes* shapes, const std::string& name, int64_t width, int64_t rows) {
  AddLinear(shapes, name + ".emb.timestep_embedder.linear_1", kSinusoidChannels, width);
  AddLinear(shapes, name + ".emb.timestep_embedder.linear_2", width, width);
  AddLinear(shapes, name + ".linear", width, rows * width);
}

void AddAttention(TensorShapes* shapes, const std::string& name, int64_t query, int64_t context,
                  int64_t inner, int64_t heads, bool gated) {
  AddLinear(shapes, name + ".to_q", query, inner);
  AddLinear(shapes, name + ".to_k", context, inner);
  AddLinear(shapes, name + ".to_v", context, inner);
  AddLinear(shapes, name + ".to_out.0", inner, query);
  if (gated) AddLinear(shapes, name + ".to_gate_logits", query, heads);
  (*shapes)[name + ".q_norm.weight"] = {inner};
  (*shapes)[name + ".k_norm.weight"] = {inner};
}

namespace {

/// One stream's tensors, `prefix` being "" or "audio_".
void AddStream(TensorShapes* shapes, const checkpoint::TransformerConfig& config,
               const std::string& prefix) {
  const bool video = prefix.empty();
  const int64_t width = video ? config.video_width() : config.audio_width();
  const int64_t heads = video ? config.num_attention_heads : config.audio_num_attention_heads;
  const int64_t rows = config.cross_attention_adaln ? 9 : 6;
  AddLinear(shapes, prefix + "patchify_proj", video ? config.in_channels : config.audio_in_channels,
            width);
  AddLinear(shapes, prefix + "proj_out", width,
            video ? config.out_channels : config.audio_out_channels);
  (*shapes)[prefix + "scale_shift_table"] = {2, width};
  AddAdaln(shapes, prefix + "adaln_single", width, rows);
  if (config.cross_attention_adaln && config.use_prompt_adaln_single) {
    AddAdaln(shapes, prefix + "prompt_adaln_single", width, 2);
  }
  if (!config.caption_proj_before_connector) {
    AddLinear(shapes, prefix + "caption_projection.linear_1", config.caption_channels, width);
    AddLinear(shapes, prefix + "caption_projection.linear_2", width, width);
  }
  if (video && config.use_keyframes_abs_pos_embedding) {
    (*shapes)["keyframes_abs_pos_embedding"] = {1, width};
  }
  for (int64_t i = 0; i < config.num_layers; ++i) {
    const std::string block = absl::StrCat("transformer_blocks.", i, ".", prefix);
    const bool gated = config.apply_gated_attention;
    AddAttention(shapes, block + "attn1", width, width, width, heads, gated);
    AddAttention(shapes, block + "attn2", width, width, width, heads, gated);
    const bool bias = video ? config.ff_bias : config.audio_ff_bias;
    AddLinear(shapes, block + "ff.net.0.proj", width, 4 * width, bias);
    AddLinear(shapes, block + "ff.net.2", 4 * width, width, bias);
    (*shapes)[block + "scale_shift_table"] = {rows, width};
    if (config.cross_attention_adaln) (*shapes)[block + "prompt_scale_shift_table"] = {2, width};
  }
}

}  // namespace

TensorShapes ShapesOf(const checkpoint::TransformerConfig& config) {
  TensorShapes shapes;
  AddStream(&shapes, config, "");
  AddStream(&shapes, config, "audio_");
  const int64_t video = config.video_width();
  const int64_t audio = config.audio_width();
  AddAdaln(&shapes, "av_ca_video_scale_shift_adaln_single", video, 4);
  AddAdaln(&shapes, "av_ca_audio_scale_shift_adaln_single", audio, 4);
  AddAdaln(&shapes, "av_ca_a2v_gate_adaln_single", video, 1);
  AddAdaln(&shapes, "av_ca_v2a_gate_adaln_single", audio, 1);
  for (int64_t i = 0; i < config.num_layers; ++i) {
    const std::string block = absl::StrCat("transformer_blocks.", i, ".");
    const int64_t heads = config.audio_num_attention_heads;
    const bool gated = config.apply_gated_attention;
    AddAttention(&shapes, block + "audio_to_video_attn", video, audio, audio, heads, gated);
    AddAttention(&shapes, block + "video_to_audio_attn", audio, video, audio, heads, gated);
    shapes[block + "scale_shift_table_a2v_ca_video"] = {5, video};
    shapes[block + "scale_shift_table_a2v_ca_audio"] = {5, audio};
  }
  return shapes;
}

}  // namespace ltx::dit
