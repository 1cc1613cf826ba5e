#include "tools/random_model/model_size.h"

namespace ltx::random_model {

using checkpoint::GemmaFamily;

ModelSize FullSize(GemmaFamily family) {
  ModelSize size;
  size.family = family;
  // The published Gemma 3 adds 64 rows for pictures.
  if (family == GemmaFamily::kGemma3) size.vocabulary = 262208;
  return size;
}

ModelSize TinySize(GemmaFamily family) {
  ModelSize size;
  size.family = family;
  size.layers = 2;
  size.heads = 4;
  size.video_head_dim = 32;
  size.audio_head_dim = 16;
  size.connector_layers = 1;
  size.text_layers = 3;
  size.text_width = 64;
  size.text_hidden = 96;
  size.text_heads = 4;
  size.text_kv_heads = 2;
  size.text_head_dim = 16;
  size.text_global_head_dim = 32;
  // 262 tokens of the tokenizer, and the places of other modalities.
  size.vocabulary = 272;
  size.decoder_channels = 8;
  size.deep_vae = false;
  size.audio_channel_multipliers = {1, 1, 1};
  size.audio_res_blocks = 0;
  // Six stages of the vocoder halve its channels each.
  size.vocoder_channels = 128;
  size.extension_channels = 64;
  size.upsampler_channels = 32;
  size.upsampler_blocks = 1;
  size.duration_head_width = 32;
  return size;
}

}  // namespace ltx::random_model
