#include "tools/random_model/model_layout.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/audio_config.h"
#include "engine/checkpoint/text_config.h"
#include "engine/checkpoint/transformer_config.h"
#include "engine/checkpoint/upsampler_config.h"
#include "engine/checkpoint/video_vae_config.h"
#include "engine/dit/tensor_shapes.h"
#include "kernels/status_macros.h"
#include "tools/random_model/model_configs.h"

namespace ltx::random_model {
namespace {

using checkpoint::FileKind;
using checkpoint::GemmaFamily;
using Shapes = std::map<std::string, Shape>;

constexpr char kDitPrefix[] = "model.diffusion_model.";
/// Rows of learned registers in a connector.
constexpr int64_t kRegisters = 128;
constexpr int64_t kFilterTaps = 12;
/// Of the vocoder's first and last convolution.
constexpr int64_t kVocoderKernel = 7;

/// `name`.weight [out, in, kernel...] and `name`.bias [out].
void AddConv(Shapes* shapes, const std::string& name, int64_t in, int64_t out,
             const std::vector<int64_t>& kernel) {
  std::vector<int64_t> dims = {out, in};
  dims.insert(dims.end(), kernel.begin(), kernel.end());
  (*shapes)[name + ".weight"] = Shape(dims);
  (*shapes)[name + ".bias"] = {out};
}

void AddConnector(Shapes* shapes, const std::string& name,
                  const checkpoint::ConnectorConfig& config) {
  const int64_t width = config.width();
  (*shapes)[name + ".learnable_registers"] = {kRegisters, width};
  for (int64_t i = 0; i < config.num_layers; ++i) {
    const std::string block = absl::StrCat(name, ".transformer_1d_blocks.", i, ".");
    dit::AddAttention(shapes, block + "attn1", width, width, width, config.num_attention_heads,
                      config.apply_gated_attention);
    dit::AddLinear(shapes, block + "ff.net.0.proj", width, 4 * width, config.ff_bias);
    dit::AddLinear(shapes, block + "ff.net.2", 4 * width, width, config.ff_bias);
  }
}

void AddTower(Shapes* shapes, const checkpoint::GemmaConfig& c) {
  const bool gemma4 = c.family == GemmaFamily::kGemma4;
  const std::string model = gemma4 ? "model." : "language_model.model.";
  const int64_t width = c.hidden_size;
  (*shapes)[model + "embed_tokens.weight"] = {c.vocab_size, width};
  (*shapes)[model + "norm.weight"] = {width};
  for (int64_t i = 0; i < c.num_hidden_layers; ++i) {
    const std::string layer = absl::StrCat(model, "layers.", i, ".");
    const std::string attention = layer + "self_attn.";
    const bool full = c.full_attention[i];
    const int64_t head = full ? c.global_head_dim : c.head_dim;
    const int64_t kv = head * (full ? c.num_global_key_value_heads : c.num_key_value_heads);
    const auto linear = [&](const std::string& name, int64_t in, int64_t out) {
      dit::AddLinear(shapes, name, in, out, /*bias=*/false);
    };
    for (const char* norm : {"input_layernorm", "post_attention_layernorm",
                             "pre_feedforward_layernorm", "post_feedforward_layernorm"}) {
      (*shapes)[absl::StrCat(layer, norm, ".weight")] = {width};
    }
    linear(attention + "q_proj", width, head * c.num_attention_heads);
    linear(attention + "k_proj", width, kv);
    if (!(full && c.attention_k_eq_v)) linear(attention + "v_proj", width, kv);
    linear(attention + "o_proj", head * c.num_attention_heads, width);
    (*shapes)[attention + "q_norm.weight"] = {head};
    (*shapes)[attention + "k_norm.weight"] = {head};
    linear(layer + "mlp.gate_proj", width, c.intermediate_size);
    linear(layer + "mlp.up_proj", width, c.intermediate_size);
    linear(layer + "mlp.down_proj", c.intermediate_size, width);
    if (gemma4) (*shapes)[layer + "layer_scalar"] = {1};
  }
}

/// Positions of a block's stride.
int64_t StrideOf(checkpoint::VideoBlockKind kind) {
  using Kind = checkpoint::VideoBlockKind;
  switch (kind) {
    case Kind::kCompressTime:
    case Kind::kCompressTimeRes:
      return 2;
    case Kind::kCompressSpace:
    case Kind::kCompressSpaceRes:
      return 4;
    default:
      return 8;
  }
}

void AddResBlocks(Shapes* shapes, const std::string& block, int64_t count, int64_t width) {
  for (int64_t i = 0; i < count; ++i) {
    for (const char* conv : {"conv1", "conv2"}) {
      AddConv(shapes, absl::StrCat(block, "res_blocks.", i, ".", conv, ".conv"), width, width,
              {3, 3, 3});
    }
  }
}

void AddVideoEncoder(Shapes* shapes, const checkpoint::VideoEncoderConfig& c) {
  int64_t width = c.latent_channels;
  AddConv(shapes, "encoder.conv_in.conv", c.in_channels * c.patch_size * c.patch_size, width,
          {3, 3, 3});
  for (size_t i = 0; i < c.blocks.size(); ++i) {
    const std::string name = absl::StrCat("encoder.down_blocks.", i, ".");
    const checkpoint::VideoBlock& block = c.blocks[i];
    if (block.kind == checkpoint::VideoBlockKind::kResX) {
      AddResBlocks(shapes, name, block.num_layers, width);
      continue;
    }
    const int64_t out = width * block.multiplier;
    AddConv(shapes, name + "conv.conv", width, out / StrideOf(block.kind), {3, 3, 3});
    width = out;
  }
  AddConv(shapes, "encoder.conv_out.conv", width, c.conv_out_channels(), {3, 3, 3});
}

void AddVideoDecoder(Shapes* shapes, const checkpoint::VideoDecoderConfig& c) {
  int64_t width = c.bottleneck_channels();
  AddConv(shapes, "decoder.conv_in.conv", c.latent_channels, width, {3, 3, 3});
  for (size_t i = 0; i < c.blocks.size(); ++i) {
    const std::string name = absl::StrCat("decoder.up_blocks.", i, ".");
    const checkpoint::VideoBlock& block = c.blocks[c.blocks.size() - 1 - i];
    if (block.kind == checkpoint::VideoBlockKind::kResX) {
      AddResBlocks(shapes, name, block.num_layers, width);
      continue;
    }
    const int64_t out = width / block.multiplier;
    AddConv(shapes, name + "conv.conv", width, out * StrideOf(block.kind), {3, 3, 3});
    width = out;
  }
  AddConv(shapes, "decoder.conv_out.conv", width, c.out_channels * c.patch_size * c.patch_size,
          {3, 3, 3});
}

void AddAudioRes(Shapes* shapes, const std::string& block, int64_t in, int64_t out) {
  AddConv(shapes, block + ".conv1.conv", in, out, {3, 3});
  AddConv(shapes, block + ".conv2.conv", out, out, {3, 3});
  if (in != out) AddConv(shapes, block + ".nin_shortcut.conv", in, out, {1, 1});
}

void AddAudioVae(Shapes* shapes, const checkpoint::AudioVaeConfig& c) {
  const auto levels = static_cast<int64_t>(c.ch_mult.size());
  const auto width = [&](int64_t level) { return c.ch * c.ch_mult[level]; };
  const int64_t top = width(levels - 1);
  const std::string vae = "audio_vae.";
  (*shapes)[vae + "per_channel_statistics.mean-of-means"] = {c.ch};
  (*shapes)[vae + "per_channel_statistics.std-of-means"] = {c.ch};
  for (const char* half : {"encoder.mid.", "decoder.mid."}) {
    AddAudioRes(shapes, absl::StrCat(vae, half, "block_1"), top, top);
    AddAudioRes(shapes, absl::StrCat(vae, half, "block_2"), top, top);
  }
  AddConv(shapes, vae + "encoder.conv_in.conv", c.in_channels, c.ch, {3, 3});
  AddConv(shapes, vae + "encoder.conv_out.conv", top, 2 * c.z_channels, {3, 3});
  AddConv(shapes, vae + "decoder.conv_in.conv", c.z_channels, top, {3, 3});
  AddConv(shapes, vae + "decoder.conv_out.conv", width(0), c.out_ch, {3, 3});
  for (int64_t level = 0; level < levels; ++level) {
    const int64_t out = width(level);
    const std::string down = absl::StrCat(vae, "encoder.down.", level, ".");
    for (int64_t r = 0; r < c.num_res_blocks; ++r) {
      const int64_t in = r > 0 ? out : level > 0 ? width(level - 1) : c.ch;
      AddAudioRes(shapes, absl::StrCat(down, "block.", r), in, out);
    }
    if (level < levels - 1) AddConv(shapes, down + "downsample.conv", out, out, {3, 3});
    const std::string up = absl::StrCat(vae, "decoder.up.", level, ".");
    for (int64_t r = 0; r <= c.num_res_blocks; ++r) {
      const int64_t in = r > 0 ? out : level < levels - 1 ? width(level + 1) : top;
      AddAudioRes(shapes, absl::StrCat(up, "block.", r), in, out);
    }
    if (level > 0) AddConv(shapes, up + "upsample.conv.conv", out, out, {3, 3});
  }
}

void AddActivation(Shapes* shapes, const std::string& name, int64_t width) {
  (*shapes)[name + ".act.alpha"] = {width};
  (*shapes)[name + ".act.beta"] = {width};
  (*shapes)[name + ".upsample.filter"] = {1, 1, kFilterTaps};
  (*shapes)[name + ".downsample.lowpass.filter"] = {1, 1, kFilterTaps};
}

/// An AMP1 generator; `channels` of its input are those of all sides.
void AddGenerator(Shapes* shapes, const std::string& name, const checkpoint::GeneratorConfig& c,
                  int64_t channels, int64_t sides) {
  int64_t width = c.upsample_initial_channel;
  AddConv(shapes, name + ".conv_pre", channels, width, {kVocoderKernel});
  const size_t kernels = c.resblock_kernel_sizes.size();
  for (size_t i = 0; i < c.upsample_rates.size(); ++i) {
    const std::string up = absl::StrCat(name, ".ups.", i);
    (*shapes)[up + ".weight"] = {width, width / 2, c.upsample_kernel_sizes[i]};
    width /= 2;
    (*shapes)[up + ".bias"] = {width};
    for (size_t j = 0; j < kernels; ++j) {
      const std::string block = absl::StrCat(name, ".resblocks.", i * kernels + j, ".");
      for (size_t k = 0; k < c.resblock_dilation_sizes[j].size(); ++k) {
        for (const char* half : {"s1.", "s2."}) {
          AddConv(shapes, absl::StrCat(block, "conv", half, k), width, width,
                  {c.resblock_kernel_sizes[j]});
          AddActivation(shapes, absl::StrCat(block, "act", half, k), width);
        }
      }
    }
  }
  AddActivation(shapes, name + ".act_post", width);
  (*shapes)[name + ".conv_post.weight"] = {sides, width, kVocoderKernel};
  if (c.use_bias_at_final) (*shapes)[name + ".conv_post.bias"] = {sides};
}

void AddUpsampler(Shapes* shapes, const checkpoint::UpsamplerConfig& c) {
  const int64_t mid = c.mid_channels;
  const auto norm = [&](const std::string& name) {
    (*shapes)[name + ".weight"] = {mid};
    (*shapes)[name + ".bias"] = {mid};
  };
  AddConv(shapes, "initial_conv", c.in_channels, mid, {3, 3, 3});
  norm("initial_norm");
  for (const char* stack : {"res_blocks.", "post_upsample_res_blocks."}) {
    for (int64_t i = 0; i < c.num_blocks_per_stage; ++i) {
      for (const char* half : {"1", "2"}) {
        AddConv(shapes, absl::StrCat(stack, i, ".conv", half), mid, mid, {3, 3, 3});
        norm(absl::StrCat(stack, i, ".norm", half));
      }
    }
  }
  // A convolution of frames, four outputs for each pixel.
  AddConv(shapes, "upsampler.0", mid, 4 * mid, {3, 3});
  AddConv(shapes, "final_conv", mid, c.in_channels, {3, 3, 3});
}

FileLayout NewFile(FileKind kind, const std::string& path, const nlohmann::json& config,
                   const ModelSize& size) {
  FileLayout file;
  file.kind = kind;
  file.path = path;
  file.metadata["config"] = config.dump();
  file.metadata["model_version"] = VersionOf(size);
  return file;
}

}  // namespace

int64_t FileLayout::num_values() const {
  int64_t values = 0;
  for (const auto& [name, shape] : tensors) values += shape.num_elements();
  return values;
}

absl::StatusOr<FileLayout> TransformerFile(const ModelSize& size) {
  const nlohmann::json config = TransformerConfigOf(size);
  FileLayout file =
      NewFile(FileKind::kTransformer,
              "diffusion_models/random-distilled-transformer-bf16.safetensors", config, size);
  if (size.family == GemmaFamily::kGemma4) {
    file.metadata["gemma_source_checkpoint"] =
        nlohmann::json{{"gemma_version", kGemmaVersion}}.dump();
  }
  LTX_ASSIGN_OR_RETURN(const auto transformer, checkpoint::ParseTransformerConfig(config));
  LTX_ASSIGN_OR_RETURN(const auto text, checkpoint::ParseTextProjectionConfig(config));
  Shapes shapes = dit::ShapesOf(transformer);
  AddConnector(&shapes, "video_embeddings_connector", text.video_connector);
  AddConnector(&shapes, "audio_embeddings_connector", text.audio_connector);
  for (const auto& [name, shape] : shapes) file.tensors[kDitPrefix + name] = shape;
  return file;
}

absl::StatusOr<FileLayout> TextEncoderFile(const ModelSize& size) {
  FileLayout file;
  file.kind = FileKind::kTextEncoder;
  file.path = "text_encoders/random-gemma-with-proj-bf16.safetensors";
  const nlohmann::json config = GemmaConfigOf(size);
  file.metadata["gemma_config"] = config.dump();
  LTX_ASSIGN_OR_RETURN(const auto gemma, checkpoint::ParseGemmaConfig(config));
  AddTower(&file.tensors, gemma);
  const int64_t states = gemma.hidden_size * (gemma.num_hidden_layers + 1);
  dit::AddLinear(&file.tensors, "text_embedding_projection.video_aggregate_embed", states,
                 size.video_width());
  dit::AddLinear(&file.tensors, "text_embedding_projection.audio_aggregate_embed", states,
                 size.audio_width());
  file.texts["tokenizer_json"] = TokenizerJson().dump();
  file.texts["hf_asset__tokenizer_config.json"] = TokenizerConfigJson().dump();
  file.texts["hf_asset__processor_config.json"] = "{}";
  return file;
}

absl::StatusOr<FileLayout> VideoVaeFile(const ModelSize& size) {
  const nlohmann::json config = VideoVaeConfigOf(size);
  FileLayout file =
      NewFile(FileKind::kVideoVae, "vae/random-video-vae-conv-bf16.safetensors", config, size);
  LTX_ASSIGN_OR_RETURN(const auto decoder, checkpoint::ParseVideoDecoderConfig(config));
  file.tensors["per_channel_statistics.mean-of-means"] = {decoder.latent_channels};
  file.tensors["per_channel_statistics.std-of-means"] = {decoder.latent_channels};
  LTX_ASSIGN_OR_RETURN(const auto encoder, checkpoint::ParseVideoEncoderConfig(config));
  AddVideoEncoder(&file.tensors, encoder);
  AddVideoDecoder(&file.tensors, decoder);
  return file;
}

absl::StatusOr<FileLayout> AudioVaeFile(const ModelSize& size) {
  const nlohmann::json config = AudioVaeConfigOf(size);
  FileLayout file =
      NewFile(FileKind::kAudioVae, "vae/random-audio-vae-bf16.safetensors", config, size);
  LTX_ASSIGN_OR_RETURN(const auto vae, checkpoint::ParseAudioVaeConfig(config));
  AddAudioVae(&file.tensors, vae);
  LTX_ASSIGN_OR_RETURN(const auto vocoder, checkpoint::ParseVocoderConfig(config));
  AddGenerator(&file.tensors, "vocoder.vocoder", vocoder.generator, vae.out_ch * *vae.mel_bins,
               vae.out_ch);
  const auto& extension = *vocoder.extension;
  AddGenerator(&file.tensors, "vocoder.bwe_generator", extension.generator,
               vae.out_ch * extension.num_mels, vae.out_ch);
  const int64_t bins = extension.n_fft / 2 + 1;
  file.tensors["vocoder.mel_stft.mel_basis"] = {extension.num_mels, bins};
  for (const char* basis : {"forward_basis", "inverse_basis"}) {
    file.tensors[absl::StrCat("vocoder.mel_stft.stft_fn.", basis)] = {2 * bins, 1, extension.n_fft};
  }
  return file;
}

absl::StatusOr<FileLayout> SpatialUpsamplerFile(const ModelSize& size) {
  const nlohmann::json config = UpsamplerConfigOf(size);
  FileLayout file =
      NewFile(FileKind::kSpatialUpsampler,
              "latent_upscale_models/random-spatial-upscaler-x2-bf16.safetensors", config, size);
  LTX_ASSIGN_OR_RETURN(const auto parsed, checkpoint::ParseUpsamplerConfig(config));
  AddUpsampler(&file.tensors, parsed);
  return file;
}

absl::StatusOr<FileLayout> DurationHeadFile(const ModelSize& size) {
  const nlohmann::json config = DurationHeadConfigOf(size);
  FileLayout file = NewFile(FileKind::kDurationHead,
                            "model_patches/random-duration-head-bf16.safetensors", config, size);
  LTX_ASSIGN_OR_RETURN(const auto c, checkpoint::ParseDurationHeadConfig(config));
  const int64_t width = c.pooler_hidden_dim;
  Shapes& shapes = file.tensors;
  const std::string head = "duration_head.";
  dit::AddLinear(&shapes, head + "video_input_proj", c.cross_attention_dim, width);
  dit::AddLinear(&shapes, head + "audio_input_proj", c.audio_cross_attention_dim, width);
  shapes[head + "video_modality_emb"] = {width};
  shapes[head + "audio_modality_emb"] = {width};
  const std::string pooler = head + "attention_pooler.";
  shapes[pooler + "query_tokens"] = {c.num_queries, width};
  shapes[pooler + "cross_attn.in_proj_weight"] = {3 * width, width};
  shapes[pooler + "cross_attn.in_proj_bias"] = {3 * width};
  dit::AddLinear(&shapes, pooler + "cross_attn.out_proj", width, width);
  dit::AddLinear(&shapes, head + "mlp_hidden", c.num_queries * width, c.mlp_hidden);
  dit::AddLinear(&shapes, head + "mlp_out", c.mlp_hidden, 1);
  return file;
}

absl::StatusOr<std::vector<FileLayout>> FilesOf(const ModelSize& size) {
  std::vector<FileLayout> files;
  for (const auto make : {&TransformerFile, &TextEncoderFile, &VideoVaeFile, &AudioVaeFile,
                          &SpatialUpsamplerFile, &DurationHeadFile}) {
    if (make == &DurationHeadFile && size.family != GemmaFamily::kGemma4) continue;
    LTX_ASSIGN_OR_RETURN(FileLayout file, make(size));
    files.push_back(std::move(file));
  }
  return files;
}

std::string ManifestOf(const std::string& name) {
  return nlohmann::json{{"name", name}, {"kind", "distilled"}}.dump(2) + "\n";
}

}  // namespace ltx::random_model
