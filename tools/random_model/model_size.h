#ifndef LTX_TOOLS_RANDOM_MODEL_MODEL_SIZE_H_
#define LTX_TOOLS_RANDOM_MODEL_MODEL_SIZE_H_

#include <cstdint>
#include <vector>

#include "engine/checkpoint/text_config.h"

namespace ltx::random_model {

/// How large the parts of a made-up model are; the default is LTX-2.5 as published. What is not
/// here is the same at every size: latent channels, mel bins, block lists but for their depth.
struct ModelSize {
  /// kGemma4: the files of a 2.5 model, kGemma3: those of a 2.3 model with its text encoder in one
  /// file.
  checkpoint::GemmaFamily family = checkpoint::GemmaFamily::kGemma4;

  // Transformer and text connectors, whose widths are heads x head width.
  int64_t layers = 48;
  int64_t heads = 32;
  int64_t video_head_dim = 128;
  int64_t audio_head_dim = 64;
  int64_t connector_layers = 8;

  // Text tower.
  int64_t text_layers = 48;
  int64_t text_width = 3840;
  int64_t text_hidden = 15360;
  int64_t text_heads = 16;
  int64_t text_kv_heads = 8;
  int64_t text_head_dim = 256;
  /// Of full-attention layers; Gemma 4 only.
  int64_t text_global_head_dim = 512;
  int64_t vocabulary = 262144;

  // Video VAE.
  /// Of the decoder, at the pixel end.
  int64_t decoder_channels = 128;
  /// False: one residual block wherever the published decoder has several, and an encoder of the
  /// fewest blocks.
  bool deep_vae = true;

  // Audio VAE and vocoder.
  std::vector<int64_t> audio_channel_multipliers = {1, 2, 4};
  int64_t audio_res_blocks = 2;
  int64_t vocoder_channels = 1536;
  int64_t extension_channels = 512;

  // Upsampler.
  int64_t upsampler_channels = 1024;
  int64_t upsampler_blocks = 4;

  int64_t duration_head_width = 256;

  int64_t video_width() const { return heads * video_head_dim; }
  int64_t audio_width() const { return heads * audio_head_dim; }
};

/// The published size. Gemma 3 has a vocabulary of its own.
ModelSize FullSize(checkpoint::GemmaFamily family = checkpoint::GemmaFamily::kGemma4);

/// As small as the formats allow within reason: 18 MB in all, for tests.
ModelSize TinySize(checkpoint::GemmaFamily family = checkpoint::GemmaFamily::kGemma4);

}  // namespace ltx::random_model

#endif  // LTX_TOOLS_RANDOM_MODEL_MODEL_SIZE_H_
