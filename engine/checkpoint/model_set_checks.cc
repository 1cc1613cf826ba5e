#include "engine/checkpoint/model_set_checks.h"

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/json_text.h"
#include "engine/checkpoint/tensor_checks.h"
#include "kernels/status_macros.h"

namespace ltx::checkpoint {
namespace {

constexpr absl::string_view kTransformerPrefix = "model.diffusion_model.";
/// Learned registers of a text connector; not configurable.
constexpr int64_t kConnectorRegisters = 128;
/// Versions from here on have to name their text encoder (reference:
/// encoder_configurator.py:_GEMMA_SOURCE_CHECKPOINT_REQUIRED_SINCE).
const ModelVersion& GemmaSourceRequiredSince() {
  static const auto* const version = new ModelVersion{2, 4, 0};
  return *version;
}
/// Pixels per latent cell and frames per latent frame, which positions and sizes are built on.
constexpr int64_t kSpatialFactor = 32;
constexpr int64_t kTemporalFactor = 8;
/// Kernel extents.
constexpr int64_t k3 = 3;
constexpr int64_t kVocoderKernel = 7;

absl::Status CheckBlocks(const TensorChecks& tensors, const TransformerConfig& c) {
  LTX_RETURN_IF_ERROR(
      tensors.Indices("transformer_blocks", "config.transformer.num_layers", c.num_layers));
  const int64_t video = c.video_width();
  const int64_t audio = c.audio_width();
  const int64_t rows = c.cross_attention_adaln ? 9 : 6;
  for (int64_t i = 0; i < c.num_layers; ++i) {
    const TensorChecks block = tensors.Sub(absl::StrCat("transformer_blocks.", i, "."));
    LTX_RETURN_IF_ERROR(block.Shape("scale_shift_table", {rows, video}));
    LTX_RETURN_IF_ERROR(block.Shape("audio_scale_shift_table", {rows, audio}));
    LTX_RETURN_IF_ERROR(block.Shape("attn1.to_q.weight", {video, video}));
    LTX_RETURN_IF_ERROR(block.Shape("attn2.to_k.weight", {video, c.cross_attention_dim}));
    LTX_RETURN_IF_ERROR(block.Shape("audio_attn1.to_q.weight", {audio, audio}));
    LTX_RETURN_IF_ERROR(
        block.Shape("audio_attn2.to_k.weight", {audio, c.audio_cross_attention_dim}));
    LTX_RETURN_IF_ERROR(block.Shape("audio_to_video_attn.to_q.weight", {audio, video}));
    LTX_RETURN_IF_ERROR(block.Shape("video_to_audio_attn.to_k.weight", {audio, video}));
    LTX_RETURN_IF_ERROR(block.Switch("attn1.to_gate_logits.weight",
                                     "config.transformer.apply_gated_attention",
                                     c.apply_gated_attention));
    LTX_RETURN_IF_ERROR(block.Switch("prompt_scale_shift_table",
                                     "config.transformer.cross_attention_adaln",
                                     c.cross_attention_adaln));
    LTX_RETURN_IF_ERROR(block.Switch("ff.net.2.bias", "config.transformer.ff_bias", c.ff_bias));
    LTX_RETURN_IF_ERROR(
        block.Switch("audio_ff.net.2.bias", "config.transformer.audio_ff_bias", c.audio_ff_bias));
  }
  return absl::OkStatus();
}

absl::Status CheckConnector(const TensorChecks& tensors, const ConnectorConfig& c,
                            const std::string& layers_key) {
  LTX_RETURN_IF_ERROR(tensors.Shape("learnable_registers", {kConnectorRegisters, c.width()}));
  LTX_RETURN_IF_ERROR(tensors.Indices("transformer_1d_blocks", layers_key, c.num_layers));
  for (int64_t i = 0; i < c.num_layers; ++i) {
    const TensorChecks block = tensors.Sub(absl::StrCat("transformer_1d_blocks.", i, "."));
    LTX_RETURN_IF_ERROR(block.Shape("attn1.to_q.weight", {c.width(), c.width()}));
    LTX_RETURN_IF_ERROR(block.Switch("attn1.to_gate_logits.weight",
                                     "config.transformer.connector_apply_gated_attention",
                                     c.apply_gated_attention));
    LTX_RETURN_IF_ERROR(
        block.Switch("ff.net.2.bias", "config.transformer.connector_ff_bias", c.ff_bias));
  }
  return absl::OkStatus();
}

absl::Status CheckTransformer(ModelSet* set) {
  const TransformerConfig& c = set->transformer;
  const TensorChecks tensors(*set->transformer_file, kTransformerPrefix);
  LTX_RETURN_IF_ERROR(tensors.PlainWeights());
  LTX_RETURN_IF_ERROR(tensors.Shape("patchify_proj.weight", {c.video_width(), c.in_channels}));
  LTX_RETURN_IF_ERROR(tensors.Shape("proj_out.weight", {c.out_channels, c.video_width()}));
  LTX_RETURN_IF_ERROR(
      tensors.Shape("audio_patchify_proj.weight", {c.audio_width(), c.audio_in_channels}));
  LTX_RETURN_IF_ERROR(
      tensors.Shape("audio_proj_out.weight", {c.audio_out_channels, c.audio_width()}));
  LTX_RETURN_IF_ERROR(
      tensors.Switch("prompt_adaln_single.linear.weight",
                     "config.transformer.use_prompt_adaln_single (with cross_attention_adaln)",
                     c.cross_attention_adaln && c.use_prompt_adaln_single));
  LTX_RETURN_IF_ERROR(tensors.Switch(
      "caption_projection.linear_1.weight",
      "that config.transformer.caption_proj_before_connector leaves captions to the transformer",
      !c.caption_proj_before_connector));
  LTX_RETURN_IF_ERROR(CheckBlocks(tensors, c));

  constexpr absl::string_view kKeyframes = "keyframes_abs_pos_embedding";
  set->keyframe_embedding = tensors.Has(kKeyframes);
  if (c.use_keyframes_abs_pos_embedding && !set->keyframe_embedding) {
    // One published export declares it and lacks it: it is then not applied.
    set->warnings.push_back(absl::StrCat(set->transformer_file->path(),
                                         ": config.transformer.use_keyframes_abs_pos_embedding is ",
                                         "true, but tensor \"", kTransformerPrefix, kKeyframes,
                                         "\" is missing: keyframes cannot be generated"));
  } else {
    LTX_RETURN_IF_ERROR(tensors.Switch(kKeyframes,
                                       "config.transformer.use_keyframes_abs_pos_embedding",
                                       c.use_keyframes_abs_pos_embedding));
  }
  if (set->keyframe_embedding) {
    LTX_RETURN_IF_ERROR(tensors.Shape(kKeyframes, {1, c.video_width()}));
  }
  LTX_RETURN_IF_ERROR(CheckConnector(tensors.Sub("video_embeddings_connector."),
                                     set->text_projection.video_connector,
                                     "config.transformer.connector_num_layers"));
  return CheckConnector(tensors.Sub("audio_embeddings_connector."),
                        set->text_projection.audio_connector,
                        "config.transformer.audio_connector_num_layers");
}

/// The feature projection is in the text encoder's file or in the transformer's.
absl::Status CheckTextProjection(const ModelSet& set, const SafetensorsFile* text_file) {
  constexpr absl::string_view kPrefix = "text_embedding_projection.";
  const bool in_text_file = text_file != nullptr && TensorChecks(*text_file, "").HasBelow(kPrefix);
  const TensorChecks tensors(in_text_file ? *text_file : *set.transformer_file, kPrefix);
  LTX_RETURN_IF_ERROR(tensors.PlainWeights());
  const int64_t states = set.gemma.hidden_size * (set.gemma.num_hidden_layers + 1);
  const FeatureExtractorConfig& c = set.text_projection.feature_extractor;
  if (c.form == FeatureExtractorConfig::Form::kV1) {
    return tensors.Shape("aggregate_embed.weight", {set.gemma.hidden_size, states});
  }
  LTX_RETURN_IF_ERROR(tensors.Shape("video_aggregate_embed.weight", {c.video_width, states}));
  return tensors.Shape("audio_aggregate_embed.weight", {c.audio_width, states});
}

absl::Status CheckTextEncoder(const ModelSet& set) {
  const SafetensorsFile* const file = set.text_encoder_file.get();
  if (file == nullptr) return CheckTextProjection(set, nullptr);
  const TensorChecks tensors(*file, "");
  // Towers of other modalities are not loaded and may be stored in any form.
  LTX_RETURN_IF_ERROR(tensors.Sub("model.").PlainWeights());
  for (const char* name : {"model.embed_tokens.weight", "model.language_model.embed_tokens.weight",
                           "language_model.model.embed_tokens.weight"}) {
    if (!tensors.Has(name)) continue;
    LTX_RETURN_IF_ERROR(tensors.Shape(name, {set.gemma.vocab_size, set.gemma.hidden_size}));
  }
  return CheckTextProjection(set, file);
}

absl::Status CheckVideoVae(const ModelSet& set) {
  const TensorChecks root(*set.video_vae_file, "");
  const TensorChecks tensors = root.HasBelow("vae.decoder.") ? root.Sub("vae.") : root;
  const TensorChecks decoder = tensors.Sub("decoder.");
  const VideoDecoderConfig& d = set.video_decoder;
  LTX_RETURN_IF_ERROR(decoder.PlainWeights());
  LTX_RETURN_IF_ERROR(tensors.Sub("per_channel_statistics.").Statistics(d.latent_channels));
  LTX_RETURN_IF_ERROR(decoder.Shape("conv_in.conv.weight",
                                    {d.bottleneck_channels(), d.latent_channels, k3, k3, k3}));
  LTX_RETURN_IF_ERROR(
      decoder.Shape("conv_out.conv.weight",
                    {d.out_channels * d.patch_size * d.patch_size, d.base_channels, k3, k3, k3}));
  LTX_RETURN_IF_ERROR(decoder.Indices("up_blocks", "config.vae.decoder_blocks",
                                      static_cast<int64_t>(d.blocks.size())));
  LTX_RETURN_IF_ERROR(decoder.Switch("last_scale_shift_table", "config.vae.timestep_conditioning",
                                     d.timestep_conditioning));
  if (!tensors.HasBelow("encoder.")) return absl::OkStatus();
  const TensorChecks encoder = tensors.Sub("encoder.");
  const VideoEncoderConfig& e = set.video_encoder;
  LTX_RETURN_IF_ERROR(encoder.PlainWeights());
  LTX_RETURN_IF_ERROR(
      encoder.Shape("conv_in.conv.weight",
                    {e.latent_channels, e.in_channels * e.patch_size * e.patch_size, k3, k3, k3}));
  return encoder.Indices("down_blocks", "config.vae.encoder_blocks",
                         static_cast<int64_t>(e.blocks.size()));
}

absl::Status CheckAudioVae(const ModelSet& set) {
  const TensorChecks root(*set.audio_vae_file, "");
  const TensorChecks vae = root.Sub("audio_vae.");
  const AudioVaeConfig& c = set.audio_vae;
  LTX_RETURN_IF_ERROR(vae.PlainWeights());
  LTX_RETURN_IF_ERROR(vae.Sub("per_channel_statistics.").Statistics(c.ch));
  const TensorChecks decoder = vae.Sub("decoder.");
  LTX_RETURN_IF_ERROR(
      decoder.Shape("conv_in.conv.weight", {c.ch * c.ch_mult.back(), c.z_channels, k3, k3}));
  LTX_RETURN_IF_ERROR(
      decoder.Shape("conv_out.conv.weight", {c.out_ch, c.ch * c.ch_mult.front(), k3, k3}));

  const TensorChecks vocoder = root.Sub("vocoder.");
  LTX_RETURN_IF_ERROR(vocoder.PlainWeights());
  const bool two_stages = set.vocoder.extension.has_value();
  const TensorChecks first = two_stages ? vocoder.Sub("vocoder.") : vocoder;
  if (c.mel_bins.has_value()) {
    LTX_RETURN_IF_ERROR(first.Shape(
        "conv_pre.weight",
        {set.vocoder.generator.upsample_initial_channel, c.out_ch * *c.mel_bins, kVocoderKernel}));
  }
  if (two_stages) {
    const auto& extension = *set.vocoder.extension;
    LTX_RETURN_IF_ERROR(vocoder.Shape("bwe_generator.conv_pre.weight",
                                      {extension.generator.upsample_initial_channel,
                                       c.out_ch * extension.num_mels, kVocoderKernel}));
    LTX_RETURN_IF_ERROR(
        vocoder.Shape("mel_stft.mel_basis", {extension.num_mels, extension.n_fft / 2 + 1}));
  }
  return absl::OkStatus();
}

absl::Status CheckUpsampler(const ModelSet::Upsampler& upsampler) {
  const TensorChecks tensors(*upsampler.file, "");
  const UpsamplerConfig& c = upsampler.config;
  LTX_RETURN_IF_ERROR(tensors.PlainWeights());
  const bool flat = c.dims == 2;
  const Shape initial = flat ? Shape({c.mid_channels, c.in_channels, k3, k3})
                             : Shape({c.mid_channels, c.in_channels, k3, k3, k3});
  const Shape final = flat ? Shape({c.in_channels, c.mid_channels, k3, k3})
                           : Shape({c.in_channels, c.mid_channels, k3, k3, k3});
  LTX_RETURN_IF_ERROR(tensors.Shape("initial_conv.weight", initial));
  LTX_RETURN_IF_ERROR(tensors.Shape("final_conv.weight", final));
  return tensors.Indices("res_blocks", "config.num_blocks_per_stage", c.num_blocks_per_stage);
}

absl::Status CheckDurationHead(const ModelSet::DurationHead& head) {
  const TensorChecks tensors(*head.file, "duration_head.");
  const DurationHeadConfig& c = head.config;
  LTX_RETURN_IF_ERROR(tensors.PlainWeights());
  LTX_RETURN_IF_ERROR(
      tensors.Shape("video_input_proj.weight", {c.pooler_hidden_dim, c.cross_attention_dim}));
  return tensors.Shape("audio_input_proj.weight",
                       {c.pooler_hidden_dim, c.audio_cross_attention_dim});
}

/// One number of a config, for messages.
struct Width {
  std::string path;
  absl::string_view key;
  int64_t value;
};

absl::Status CheckEqual(const Width& a, const Width& b) {
  if (a.value == b.value) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("files that do not belong together: ", a.path,
                                                 ": ", a.key, " is ", a.value, ", but ", b.path,
                                                 ": ", b.key, " is ", b.value));
}

absl::Status CheckContexts(const ModelSet& set) {
  const TransformerConfig& t = set.transformer;
  const TextProjectionConfig& text = set.text_projection;
  const std::string& path = set.transformer_file->path();
  const Width video_connector = {path, "width of the video connector",
                                 text.video_connector.width()};
  const Width audio_connector = {path, "width of the audio connector",
                                 text.audio_connector.width()};
  if (t.caption_proj_before_connector) {
    LTX_RETURN_IF_ERROR(CheckEqual(
        {path, "config.transformer.cross_attention_dim", t.cross_attention_dim}, video_connector));
    LTX_RETURN_IF_ERROR(CheckEqual(
        {path, "config.transformer.audio_cross_attention_dim", t.audio_cross_attention_dim},
        audio_connector));
  } else {
    const Width captions = {path, "config.transformer.caption_channels", t.caption_channels};
    LTX_RETURN_IF_ERROR(CheckEqual(captions, video_connector));
    LTX_RETURN_IF_ERROR(CheckEqual(captions, audio_connector));
  }
  const FeatureExtractorConfig& features = text.feature_extractor;
  const bool v1 = features.form == FeatureExtractorConfig::Form::kV1;
  const int64_t hidden = set.gemma.hidden_size;
  const std::string& source = v1 ? set.text_encoder_path : path;
  LTX_RETURN_IF_ERROR(
      CheckEqual({source, "width of the video features", v1 ? hidden : features.video_width},
                 video_connector));
  return CheckEqual({source, "width of the audio features", v1 ? hidden : features.audio_width},
                    audio_connector);
}

absl::Status CheckVideoLatents(const ModelSet& set) {
  const TransformerConfig& t = set.transformer;
  const std::string& path = set.transformer_file->path();
  const std::string& vae = set.video_vae_file->path();
  const Width latent = {path, "config.transformer.in_channels", t.in_channels};
  LTX_RETURN_IF_ERROR(
      CheckEqual({path, "config.transformer.out_channels", t.out_channels}, latent));
  LTX_RETURN_IF_ERROR(CheckEqual(
      {vae, "latent channels of the decoder", set.video_decoder.latent_channels}, latent));
  LTX_RETURN_IF_ERROR(CheckEqual(
      {vae, "latent channels of the encoder", set.video_encoder.latent_channels}, latent));
  const Width space = {"this engine", "pixels per latent cell", kSpatialFactor};
  const Width time = {"this engine", "frames per latent frame", kTemporalFactor};
  LTX_RETURN_IF_ERROR(CheckEqual(
      {vae, "pixels per latent cell of the decoder", set.video_decoder.spatial_factor()}, space));
  LTX_RETURN_IF_ERROR(CheckEqual(
      {vae, "frames per latent frame of the decoder", set.video_decoder.temporal_factor()}, time));
  if (!set.video_encoder.blocks.empty()) {
    LTX_RETURN_IF_ERROR(CheckEqual(
        {vae, "pixels per latent cell of the encoder", set.video_encoder.spatial_factor()}, space));
    LTX_RETURN_IF_ERROR(CheckEqual(
        {vae, "frames per latent frame of the encoder", set.video_encoder.temporal_factor()},
        time));
  }
  for (const auto* upsampler : {&set.spatial_upsampler, &set.temporal_upsampler}) {
    if (!upsampler->has_value()) continue;
    LTX_RETURN_IF_ERROR(CheckEqual(
        {(*upsampler)->file->path(), "config.in_channels", (*upsampler)->config.in_channels},
        latent));
  }
  return absl::OkStatus();
}

absl::Status CheckAudioLatents(const ModelSet& set) {
  const TransformerConfig& t = set.transformer;
  const std::string& path = set.transformer_file->path();
  const std::string& vae = set.audio_vae_file->path();
  const Width latent = {path, "config.transformer.audio_in_channels", t.audio_in_channels};
  LTX_RETURN_IF_ERROR(
      CheckEqual({path, "config.transformer.audio_out_channels", t.audio_out_channels}, latent));
  // Channels times bins of the latent: the length of its statistics.
  LTX_RETURN_IF_ERROR(CheckEqual({vae, "ddconfig.ch", set.audio_vae.ch}, latent));
  // A mel frame has to become as many samples as lie between two mel frames.
  const int64_t rate = set.vocoder.extension.has_value()
                           ? set.vocoder.extension->input_sampling_rate
                           : set.vocoder.output_sampling_rate;
  LTX_RETURN_IF_ERROR(
      CheckEqual({vae, "product of vocoder.upsample_rates times sampling_rate",
                  set.vocoder.generator.total_upsampling() * set.audio_vae.sampling_rate},
                 {vae, "hop_length times the vocoder's rate", set.audio_vae.hop_length * rate}));
  if (set.vocoder.extension.has_value()) {
    const auto& extension = *set.vocoder.extension;
    LTX_RETURN_IF_ERROR(
        CheckEqual({vae, "product of vocoder.bwe.upsample_rates times bwe.input_sampling_rate",
                    extension.generator.total_upsampling() * extension.input_sampling_rate},
                   {vae, "bwe.hop_length times bwe.output_sampling_rate",
                    extension.hop_length * extension.output_sampling_rate}));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckTensors(ModelSet* set) {
  LTX_RETURN_IF_ERROR(CheckTransformer(set));
  LTX_RETURN_IF_ERROR(CheckTextEncoder(*set));
  LTX_RETURN_IF_ERROR(CheckVideoVae(*set));
  LTX_RETURN_IF_ERROR(CheckAudioVae(*set));
  for (const auto* upsampler : {&set->spatial_upsampler, &set->temporal_upsampler}) {
    if (upsampler->has_value()) LTX_RETURN_IF_ERROR(CheckUpsampler(**upsampler));
  }
  if (set->duration_head.has_value()) {
    LTX_RETURN_IF_ERROR(CheckDurationHead(*set->duration_head));
  }
  return absl::OkStatus();
}

absl::Status CheckWidths(const ModelSet& set) {
  LTX_RETURN_IF_ERROR(CheckContexts(set));
  LTX_RETURN_IF_ERROR(CheckVideoLatents(set));
  LTX_RETURN_IF_ERROR(CheckAudioLatents(set));
  if (!set.duration_head.has_value()) return absl::OkStatus();
  const std::string& head = set.duration_head->file->path();
  const std::string& path = set.transformer_file->path();
  const DurationHeadConfig& c = set.duration_head->config;
  LTX_RETURN_IF_ERROR(CheckEqual(
      {head, "config.transformer.cross_attention_dim", c.cross_attention_dim},
      {path, "config.transformer.cross_attention_dim", set.transformer.cross_attention_dim}));
  return CheckEqual(
      {head, "config.transformer.audio_cross_attention_dim", c.audio_cross_attention_dim},
      {path, "config.transformer.audio_cross_attention_dim",
       set.transformer.audio_cross_attention_dim});
}

absl::Status CheckGemmaVersion(ModelSet* set) {
  const std::string& path = set->transformer_file->path();
  const auto& metadata = set->transformer_file->metadata();
  const auto source = metadata.find("gemma_source_checkpoint");
  const std::string actual = absl::StrCat(set->text_encoder_path, ": gemma_version is ",
                                          set->gemma.gemma_version.has_value()
                                              ? absl::StrCat("\"", *set->gemma.gemma_version, "\"")
                                              : "absent");
  if (source != metadata.end()) {
    LTX_ASSIGN_OR_RETURN(
        const nlohmann::json json,
        ParseJsonObject(source->second, absl::StrCat(path, ": metadata gemma_source_checkpoint")));
    const auto expected = json.find("gemma_version");
    const bool none = expected == json.end() || expected->is_null();
    const bool equal =
        none ? !set->gemma.gemma_version.has_value()
             : set->gemma.gemma_version.has_value() && *expected == *set->gemma.gemma_version;
    if (equal) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        actual, ", but ", path, ": gemma_source_checkpoint calls for ",
        none ? "none" : expected->dump(-1, ' ', true, nlohmann::json::error_handler_t::replace)));
  }
  if (ParseModelVersion(set->model_version) >= GemmaSourceRequiredSince()) {
    if (set->gemma.gemma_version.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": model_version ", set->model_version,
          " calls for metadata gemma_source_checkpoint, which is missing, and ", actual));
    }
    set->warnings.push_back(absl::StrCat(path, ": model_version ", set->model_version,
                                         " does not name its text encoder, and ", actual,
                                         ": whether the two belong together is not known"));
    return absl::OkStatus();
  }
  if (set->gemma.family == GemmaFamily::kGemma3) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": without metadata gemma_source_checkpoint the text encoder has to be ",
                   "gemma3, but ", set->text_encoder_path, " is gemma4_unified"));
}

}  // namespace ltx::checkpoint
