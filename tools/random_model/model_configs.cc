#include "tools/random_model/model_configs.h"

#include <cstdint>
#include <vector>

#include "absl/strings/str_format.h"

namespace ltx::random_model {

using checkpoint::GemmaFamily;
using nlohmann::json;

namespace {

// Behind the four special tokens and the 256 bytes: the turns in which Gemma 3 talks.
constexpr int kStartOfTurn = 260;
constexpr int kEndOfTurn = 261;

}  // namespace

json TransformerConfigOf(const ModelSize& size) {
  json transformer = {
      // Values that every published file has.
      {"activation_fn", "gelu-approximate"},
      {"attention_bias", true},
      {"av_ca_timestep_scale_multiplier", 1000.0},
      {"av_cross_ada_norm", true},
      {"cross_attention_norm", true},
      {"double_self_attention", false},
      {"dropout", 0.0},
      {"frequencies_precision", "float64"},
      {"norm_elementwise_affine", false},
      {"norm_eps", 1e-6},
      {"num_embeds_ada_norm", 1000},
      {"num_vector_embeds", nullptr},
      {"only_cross_attention", false},
      {"positional_embedding_max_pos", {20, 2048, 2048}},
      {"audio_positional_embedding_max_pos", json::array({20})},
      {"positional_embedding_theta", 10000.0},
      {"positional_embedding_type", "rope"},
      {"qk_norm", "rms_norm"},
      {"rope_type", "split"},
      {"share_ff", false},
      {"standardization_norm", "rms_norm"},
      {"timestep_scale_multiplier", 1000},
      {"upcast_attention", false},
      {"use_audio_video_cross_attention", true},
      {"use_linear_projection", false},
      {"use_middle_indices_grid", true},
      {"apply_gated_attention", true},
      {"cross_attention_adaln", true},
      {"caption_proj_before_connector", true},
      {"caption_projection_first_linear", false},
      {"caption_proj_input_norm", false},
      {"caption_projection_second_linear", false},
      {"connector_apply_gated_attention", true},
      {"connector_ff_bias", true},
      {"connector_positional_embedding_max_pos", json::array({4096})},
      // Sizes.
      {"num_layers", size.layers},
      {"num_attention_heads", size.heads},
      {"attention_head_dim", size.video_head_dim},
      {"audio_num_attention_heads", size.heads},
      {"audio_attention_head_dim", size.audio_head_dim},
      {"in_channels", 128},
      {"out_channels", 128},
      {"audio_in_channels", 128},
      {"audio_out_channels", 128},
      {"cross_attention_dim", size.video_width()},
      {"audio_cross_attention_dim", size.audio_width()},
      {"caption_channels", size.text_width},
      {"connector_num_attention_heads", size.heads},
      {"connector_attention_head_dim", size.video_head_dim},
      {"connector_num_layers", size.connector_layers},
      {"audio_connector_num_attention_heads", size.heads},
      {"audio_connector_attention_head_dim", size.audio_head_dim},
      {"audio_connector_num_layers", size.connector_layers},
  };
  if (size.family == GemmaFamily::kGemma4) {
    transformer["ff_bias"] = false;
    transformer["use_keyframes_abs_pos_embedding"] = true;
  }
  return {{"transformer", std::move(transformer)}};
}

json GemmaConfigOf(const ModelSize& size) {
  const bool gemma4 = size.family == GemmaFamily::kGemma4;
  json text = {{"vocab_size", size.vocabulary},
               {"hidden_size", size.text_width},
               {"intermediate_size", size.text_hidden},
               {"num_hidden_layers", size.text_layers},
               {"num_attention_heads", size.text_heads},
               {"num_key_value_heads", size.text_kv_heads},
               {"head_dim", size.text_head_dim},
               {"sliding_window", 1024},
               {"rms_norm_eps", 1e-6},
               {"hidden_activation", "gelu_pytorch_tanh"},
               {"tie_word_embeddings", true}};
  if (!gemma4) {
    text["query_pre_attn_scalar"] = size.text_head_dim;
    text["rope_theta"] = 1e6;
    text["rope_local_base_freq"] = 1e4;
    text["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 8.0}};
    return {{"model_type", "gemma3"},
            {"text_config", std::move(text)},
            {"eos_token_id", {1, kEndOfTurn}},
            {"image_token_index", size.vocabulary - 1}};
  }
  text["global_head_dim"] = size.text_global_head_dim;
  text["num_global_key_value_heads"] = 1;
  text["attention_k_eq_v"] = true;
  text["final_logit_softcapping"] = 30.0;
  text["use_bidirectional_attention"] = "vision";
  text["rope_parameters"] = {
      {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 1e4}}},
      {"full_attention",
       {{"rope_type", "proportional"}, {"partial_rotary_factor", 0.25}, {"rope_theta", 1e6}}}};
  return {{"model_type", "gemma4_unified"},        {"gemma_version", kGemmaVersion},
          {"text_config", std::move(text)},        {"image_token_id", size.vocabulary - 1},
          {"video_token_id", size.vocabulary - 2}, {"audio_token_id", size.vocabulary - 3}};
}

json VideoVaeConfigOf(const ModelSize& size) {
  const auto res = [&](int64_t layers) {
    return json::array({"res_x", {{"num_layers", size.deep_vae ? layers : 1}}});
  };
  const auto resample = [](const char* name, int64_t multiplier) {
    return json::array({name, {{"multiplier", multiplier}}});
  };
  // Pixel side first, in both lists.
  json encoder = json::array(
      {res(4), resample("compress_space_res", 2), res(6), resample("compress_time_res", 2), res(4),
       resample("compress_all_res", 2), res(2), resample("compress_all_res", 1), res(2)});
  if (!size.deep_vae) {
    // The same factors at a constant width.
    encoder = json::array();
    for (int i = 0; i < 3; ++i) encoder.push_back(resample("compress_all_res", 1));
  }
  const json decoder = json::array(
      {res(4), resample("compress_space", 2), res(6), resample("compress_time", 2), res(4),
       resample("compress_all", 1), res(2), resample("compress_all", 2), res(2)});
  return {{"vae",
           {{"_class_name", "CausalVideoAutoencoder"},
            {"dims", 3},
            {"in_channels", 3},
            {"out_channels", 3},
            {"latent_channels", 128},
            {"encoder_blocks", encoder},
            {"decoder_blocks", decoder},
            {"decoder_base_channels", size.decoder_channels},
            {"norm_layer", "pixel_norm"},
            {"patch_size", 4},
            {"latent_log_var", "uniform"},
            {"causal_decoder", false},
            {"timestep_conditioning", false},
            {"spatial_padding_mode", "zeros"},
            {"encoder_spatial_padding_mode", "zeros"}}}};
}

json AudioVaeConfigOf(const ModelSize& size) {
  const json dilations = {{1, 3, 5}, {1, 3, 5}, {1, 3, 5}};
  const json generator = {{"resblock", "AMP1"},
                          {"activation", "snakebeta"},
                          {"stereo", true},
                          {"upsample_initial_channel", size.vocoder_channels},
                          {"upsample_rates", {5, 2, 2, 2, 2, 2}},
                          {"upsample_kernel_sizes", {11, 4, 4, 4, 4, 4}},
                          {"resblock_kernel_sizes", {3, 7, 11}},
                          {"resblock_dilation_sizes", dilations},
                          {"use_tanh_at_final", false},
                          {"use_bias_at_final", false}};
  json extension = generator;
  extension["upsample_initial_channel"] = size.extension_channels;
  extension["upsample_rates"] = {6, 5, 2, 2, 2};
  extension["upsample_kernel_sizes"] = {12, 11, 4, 4, 4};
  extension["input_sampling_rate"] = 16000;
  extension["output_sampling_rate"] = 48000;
  extension["hop_length"] = 80;
  extension["n_fft"] = 512;
  extension["num_mels"] = 64;
  const json ddconfig = {{"double_z", true},
                         {"mel_bins", 64},
                         {"z_channels", 8},
                         {"resolution", 256},
                         {"in_channels", 2},
                         {"out_ch", 2},
                         {"ch", 128},
                         {"ch_mult", size.audio_channel_multipliers},
                         {"num_res_blocks", size.audio_res_blocks},
                         {"attn_resolutions", json::array()},
                         {"mid_block_add_attention", false},
                         {"norm_type", "pixel"},
                         {"causality_axis", "height"}};
  return {{"audio_vae",
           {{"model", {{"params", {{"ddconfig", ddconfig}, {"sampling_rate", 16000}}}}},
            {"preprocessing",
             {{"stft", {{"filter_length", 1024}, {"hop_length", 160}, {"causal", true}}},
              {"mel", {{"n_mel_channels", 64}}}}}}},
          {"vocoder", {{"vocoder", generator}, {"bwe", extension}}}};
}

json UpsamplerConfigOf(const ModelSize& size) {
  return {{"_class_name", "LatentUpsampler"},
          {"in_channels", 128},
          {"mid_channels", size.upsampler_channels},
          {"num_blocks_per_stage", size.upsampler_blocks},
          {"dims", 3},
          {"spatial_upsample", true},
          {"temporal_upsample", false},
          {"spatial_scale", 2.0},
          {"rational_resampler", false}};
}

json DurationHeadConfigOf(const ModelSize& size) {
  json config = TransformerConfigOf(size);
  config["duration_head"] = {{"pooler_hidden_dim", size.duration_head_width},
                             {"num_queries", 1},
                             {"num_pooler_heads", 4},
                             {"mlp_hidden", size.duration_head_width}};
  return config;
}

std::string VersionOf(const ModelSize& size) {
  return size.family == GemmaFamily::kGemma4 ? "2.5.0" : "2.3.0";
}

json TokenizerJson() {
  json vocabulary = {{"<pad>", 0},
                     {"<eos>", 1},
                     {"<bos>", 2},
                     {"<unk>", 3},
                     {"<start_of_turn>", kStartOfTurn},
                     {"<end_of_turn>", kEndOfTurn}};
  json special = json::array();
  for (const auto& [token, id] : vocabulary.items()) {
    special.push_back({{"id", id}, {"content", token}, {"normalized", false}, {"special", true}});
  }
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary[absl::StrFormat("<0x%02X>", byte)] = 4 + byte;
  }
  return {{"version", "1.0"},
          {"added_tokens", std::move(special)},
          {"normalizer", nullptr},
          {"pre_tokenizer", nullptr},
          {"post_processor", nullptr},
          {"decoder", {{"type", "ByteFallback"}}},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", "<unk>"},
            {"fuse_unk", true},
            {"byte_fallback", true},
            {"ignore_merges", false},
            {"vocab", std::move(vocabulary)},
            {"merges", json::array()}}}};
}

json TokenizerConfigJson() {
  return {{"bos_token", "<bos>"}, {"eos_token", "<eos>"},   {"pad_token", "<pad>"},
          {"unk_token", "<unk>"}, {"padding_side", "left"}, {"tokenizer_class", "GemmaTokenizer"}};
}

}  // namespace ltx::random_model
