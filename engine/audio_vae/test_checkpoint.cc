#include "engine/audio_vae/test_checkpoint.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <list>

#include "absl/strings/str_cat.h"
#include "engine/audio_vae/resampling_filters.h"

namespace ltx::audio_vae {

using checkpoint::AudioVaeConfig;
using checkpoint::GeneratorConfig;
using checkpoint::VocoderConfig;

struct TestCheckpoint::File : public checkpoint::SafetensorsFile {
  File() { path_ = "test checkpoint"; }
  void Put(const std::string& name, const Shape& shape, const std::vector<float>& values) {
    std::vector<uint8_t>& bytes = data.emplace_back(values.size() * sizeof(float));
    if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    entries_[name] = Entry{DType::kF32, shape, absl::MakeConstSpan(bytes)};
  }
  void Drop(const std::string& name) { entries_.erase(name); }
  std::list<std::vector<uint8_t>> data;
};

TestCheckpoint::TestCheckpoint() : file_(std::make_shared<File>()) {}

void TestCheckpoint::Add(const std::string& name, const Shape& shape, float scale) {
  std::vector<float> values(shape.num_elements());
  for (float& value : values) {
    // A linear congruential generator (Numerical Recipes) is random enough here.
    state_ = state_ * 1664525u + 1013904223u;
    value = scale * (static_cast<float>(state_ >> 8) / 8388608.0f - 1.0f);
  }
  file_->Put(name, shape, values);
}

void TestCheckpoint::AddValues(const std::string& name, const Shape& shape,
                               std::vector<float> values) {
  if (static_cast<int64_t>(values.size()) != shape.num_elements()) std::abort();
  file_->Put(name, shape, values);
}

void TestCheckpoint::Remove(const std::string& name) { file_->Drop(name); }

void TestCheckpoint::AddConv(const std::string& module, int64_t out, int64_t in,
                             const std::vector<int64_t>& kernel, bool bias) {
  std::vector<int64_t> dims{out, in};
  int64_t fan_in = in;
  for (const int64_t extent : kernel) {
    dims.push_back(extent);
    fan_in *= extent;
  }
  Add(absl::StrCat(module, ".weight"), Shape(absl::MakeConstSpan(dims)),
      1.5f / std::sqrt(static_cast<float>(fan_in)));
  if (bias) Add(absl::StrCat(module, ".bias"), Shape({out}), 0.1f);
}

void TestCheckpoint::AddNorm(const std::string& prefix, int64_t channels) {
  Add(absl::StrCat(prefix, ".weight"), Shape({channels}), 1.0f);
  Add(absl::StrCat(prefix, ".bias"), Shape({channels}), 0.1f);
}

void TestCheckpoint::AddResnetBlock(const std::string& prefix, int64_t in, int64_t out,
                                    bool group_norm) {
  AddConv(prefix + ".conv1.conv", out, in, {3, 3});
  AddConv(prefix + ".conv2.conv", out, out, {3, 3});
  if (in != out) AddConv(prefix + ".nin_shortcut.conv", out, in, {1, 1});
  if (!group_norm) return;
  AddNorm(prefix + ".norm1", in);
  AddNorm(prefix + ".norm2", out);
}

void TestCheckpoint::AddAttention(const std::string& prefix, int64_t channels, bool group_norm) {
  for (const char* module : {".q", ".k", ".v", ".proj_out"}) {
    AddConv(prefix + module, channels, channels, {1, 1});
  }
  if (group_norm) AddNorm(prefix + ".norm", channels);
}

void TestCheckpoint::AddDecoder(const AudioVaeConfig& config) {
  const bool group = config.norm_type == checkpoint::AudioNorm::kGroup;
  const std::string root = "audio_vae.decoder.";
  Add("audio_vae.per_channel_statistics.mean-of-means", Shape({config.ch}));
  Add("audio_vae.per_channel_statistics.std-of-means", Shape({config.ch}), 1.0f);
  int64_t channels = config.ch * config.ch_mult.back();
  AddConv(root + "conv_in.conv", channels, config.z_channels, {3, 3});
  AddResnetBlock(root + "mid.block_1", channels, channels, group);
  AddResnetBlock(root + "mid.block_2", channels, channels, group);
  if (config.mid_block_add_attention) AddAttention(root + "mid.attn_1", channels, group);
  for (int64_t level = static_cast<int64_t>(config.ch_mult.size()) - 1; level >= 0; --level) {
    const std::string up = absl::StrCat(root, "up.", level, ".");
    for (int64_t r = 0; r <= config.num_res_blocks; ++r) {
      const int64_t out = config.ch * config.ch_mult[level];
      AddResnetBlock(absl::StrCat(up, "block.", r), channels, out, group);
      channels = out;
      if (config.HasAttention(level)) {
        AddAttention(absl::StrCat(up, "attn.", r), channels, group);
      }
    }
    if (level > 0) AddConv(up + "upsample.conv.conv", channels, channels, {3, 3});
  }
  if (group) AddNorm(root + "norm_out", channels);
  AddConv(root + "conv_out.conv", config.out_ch, channels, {3, 3});
}

void TestCheckpoint::AddSnake(const std::string& prefix, int64_t channels) {
  Add(prefix + ".act.alpha", Shape({channels}));
  Add(prefix + ".act.beta", Shape({channels}));
  const Shape filter({1, 1, kActivationFilterTaps});
  AddValues(prefix + ".upsample.filter", filter,
            KaiserSincFilter(0.25, 0.3, kActivationFilterTaps));
  AddValues(prefix + ".downsample.lowpass.filter", filter,
            KaiserSincFilter(0.25, 0.3, kActivationFilterTaps));
}

void TestCheckpoint::AddGenerator(const std::string& prefix, const GeneratorConfig& config) {
  const bool amp = config.resblock == GeneratorConfig::ResBlock::kAmp1;
  int64_t channels = config.upsample_initial_channel;
  AddConv(prefix + "conv_pre", channels, 128, {7});
  const size_t kernels = config.resblock_kernel_sizes.size();
  for (size_t i = 0; i < config.upsample_rates.size(); ++i) {
    const std::string up = absl::StrCat(prefix, "ups.", i);
    Add(up + ".weight", Shape({channels, channels / 2, config.upsample_kernel_sizes[i]}));
    channels /= 2;
    Add(up + ".bias", Shape({channels}), 0.1f);
    for (size_t j = 0; j < kernels; ++j) {
      const std::string block = absl::StrCat(prefix, "resblocks.", i * kernels + j, ".");
      for (int step = 0; step < 3; ++step) {
        for (const char* group : {"1.", "2."}) {
          AddConv(absl::StrCat(block, "convs", group, step), channels, channels,
                  {config.resblock_kernel_sizes[j]});
          if (amp) AddSnake(absl::StrCat(block, "acts", group, step), channels);
        }
      }
    }
  }
  if (amp) AddSnake(prefix + "act_post", channels);
  AddConv(prefix + "conv_post", 2, channels, {7}, config.use_bias_at_final);
}

void TestCheckpoint::AddVocoder(const VocoderConfig& config) {
  if (!config.extension.has_value()) {
    AddGenerator("vocoder.", config.generator);
    return;
  }
  const VocoderConfig::BandwidthExtension& extension = *config.extension;
  AddGenerator("vocoder.vocoder.", config.generator);
  AddGenerator("vocoder.bwe_generator.", extension.generator);
  const int64_t bins = extension.n_fft / 2 + 1;
  std::vector<float> mel(extension.num_mels * bins);
  for (size_t i = 0; i < mel.size(); ++i) mel[i] = 0.01f * static_cast<float>(i % 7);
  AddValues("vocoder.mel_stft.mel_basis", Shape({extension.num_mels, bins}), mel);
  Add("vocoder.mel_stft.stft_fn.forward_basis", Shape({2 * bins, 1, extension.n_fft}));
  Add("vocoder.mel_stft.stft_fn.inverse_basis", Shape({2 * bins, 1, extension.n_fft}));
}

checkpoint::WeightLoader TestCheckpoint::Loader(Device& device, DType compute) {
  sets_.push_back(std::make_unique<checkpoint::WeightSet>());
  if (!sets_.back()->Add(file_).ok()) std::abort();
  return {&device, sets_.back().get(), compute, MemoryOwner::kWeightsAudioVae};
}

AudioVaeConfig SmallVaeConfig() {
  AudioVaeConfig config;
  config.ch = 8;
  config.ch_mult = {1, 2, 2};
  config.num_res_blocks = 0;
  config.z_channels = 2;
  config.mid_block_add_attention = false;
  config.attn_resolutions.clear();
  config.mel_bins = 64;
  return config;
}

GeneratorConfig SmallGeneratorConfig(GeneratorConfig::ResBlock form) {
  GeneratorConfig config;
  config.resblock = form;
  config.upsample_initial_channel = 16;
  config.upsample_rates = {10, 4, 4};
  config.upsample_kernel_sizes = {20, 8, 8};
  config.resblock_kernel_sizes = {3, 7};
  config.resblock_dilation_sizes = {{1, 3, 5}, {1, 3, 5}};
  return config;
}

VocoderConfig SmallVocoderConfig() {
  VocoderConfig config;
  config.generator = SmallGeneratorConfig(GeneratorConfig::ResBlock::kAmp1);
  config.generator.use_tanh_at_final = false;
  VocoderConfig::BandwidthExtension extension;
  extension.generator = SmallGeneratorConfig(GeneratorConfig::ResBlock::kAmp1);
  extension.generator.upsample_rates = {10, 6, 4};
  extension.generator.upsample_kernel_sizes = {20, 12, 8};
  extension.generator.apply_final_activation = false;
  extension.n_fft = 128;
  config.extension = extension;
  config.output_sampling_rate = extension.output_sampling_rate;
  return config;
}

}  // namespace ltx::audio_vae
