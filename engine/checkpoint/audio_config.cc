#include "engine/checkpoint/audio_config.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/config_limits.h"
#include "engine/checkpoint/config_reader.h"

namespace ltx::checkpoint {
namespace {

constexpr int64_t kMaxSampleRate = 1'000'000;
constexpr int64_t kMaxFftSize = 1 << 20;
/// Levels of the audio VAE, stages of a generator, kernels of a stage.
constexpr size_t kMaxStages = 16;
/// Dilations of one residual block: its three pairs of convolutions.
constexpr size_t kDilations = 3;

void ReadCodec(ConfigReader& reader, AudioVaeConfig* config) {
  AudioVaeConfig& c = *config;
  c.ch = reader.Int("ch", c.ch, 1, kMaxWidth);
  c.ch_mult = reader.Ints("ch_mult", c.ch_mult, 1, kMaxStages, 1, kMaxKernel);
  c.num_res_blocks = reader.Int("num_res_blocks", c.num_res_blocks, 0, kMaxLayers);
  c.z_channels = reader.Int("z_channels", c.z_channels, 1, kMaxWidth);
  c.in_channels = reader.Int("in_channels", c.in_channels, 1, kMaxWidth);
  c.out_ch = reader.Int("out_ch", c.out_ch, 1, kMaxWidth);
  c.resolution = reader.Int("resolution", c.resolution, 1, kMaxWidth);
  c.attn_resolutions =
      reader.Ints("attn_resolutions", c.attn_resolutions, 0, kMaxStages, 1, kMaxWidth);
  c.mid_block_add_attention = reader.Bool("mid_block_add_attention", c.mid_block_add_attention);
  c.resamp_with_conv = reader.Bool("resamp_with_conv", c.resamp_with_conv);
  c.norm_type = reader.OneOf<AudioNorm>(
      "norm_type", c.norm_type, {{"pixel", AudioNorm::kPixel}, {"group", AudioNorm::kGroup}});
  c.attn_type = reader.OneOf<AudioAttention>(
      "attn_type", c.attn_type,
      {{"vanilla", AudioAttention::kVanilla}, {"none", AudioAttention::kNone}});
  if (reader.Has("causality_axis") && !reader.HasValue("causality_axis")) {
    c.causality_axis = CausalityAxis::kNone;
  } else {
    c.causality_axis =
        reader.OneOf<CausalityAxis>("causality_axis", c.causality_axis,
                                    {{"height", CausalityAxis::kHeight},
                                     {"width", CausalityAxis::kWidth},
                                     {"width-compatibility", CausalityAxis::kWidthCompatibility}});
  }
  // The encoder's head is halved whatever this says, so that only true makes sense.
  if (!reader.Bool("double_z", true)) reader.FailValue("double_z", "true");
  if (c.norm_type == AudioNorm::kGroup && c.causality_axis != CausalityAxis::kNone) {
    reader.FailValue("norm_type", "\"pixel\" with a causal axis");
  }
  // The statistics have ch entries, one per latent channel and bin.
  if (reader.status().ok() && c.ch % c.z_channels != 0) {
    reader.FailValue("ch", absl::StrCat("a multiple of z_channels ", c.z_channels));
  }
}

/// The first of three places that says a number other than 0.
std::optional<int64_t> ReadMelBins(ConfigReader& ddconfig, ConfigReader& mel,
                                   ConfigReader& variables) {
  const std::pair<ConfigReader*, const char*> places[] = {
      {&ddconfig, "mel_bins"}, {&mel, "n_mel_channels"}, {&variables, "mel_bins"}};
  for (const auto& [reader, key] : places) {
    if (!reader->HasValue(key)) continue;
    const int64_t bins = reader->Int(key, 0, 0, kMaxWidth);
    if (bins > 0) return bins;
  }
  return std::nullopt;
}

void ReadDilations(ConfigReader& reader, GeneratorConfig* generator) {
  constexpr char kKey[] = "resblock_dilation_sizes";
  const nlohmann::json* const lists = reader.Find(kKey);
  if (lists != nullptr) {
    const std::string legal = absl::StrCat("one list of ", kDilations,
                                           " integers from 1 for each of resblock_kernel_sizes");
    if (!lists->is_array() || lists->size() > kMaxStages) return reader.FailValue(kKey, legal);
    generator->resblock_dilation_sizes.clear();
    for (const nlohmann::json& list : *lists) {
      const nlohmann::json wrapped = {{kKey, list}};
      ConfigReader item(wrapped, "");
      generator->resblock_dilation_sizes.push_back(
          item.Ints(kKey, {}, kDilations, kDilations, 1, kMaxKernel));
      if (!item.status().ok()) return reader.FailValue(kKey, legal);
    }
  }
  if (generator->resblock_dilation_sizes.size() != generator->resblock_kernel_sizes.size()) {
    reader.FailValue(kKey, absl::StrCat(generator->resblock_kernel_sizes.size(),
                                        " lists, as many as resblock_kernel_sizes"));
  }
}

GeneratorConfig ReadGenerator(ConfigReader& reader) {
  GeneratorConfig g;
  g.upsample_initial_channel =
      reader.Int("upsample_initial_channel", g.upsample_initial_channel, 1, kMaxWidth);
  g.upsample_rates = reader.Ints("upsample_rates", g.upsample_rates, 1, kMaxStages, 1, kMaxKernel);
  g.upsample_kernel_sizes =
      reader.Ints("upsample_kernel_sizes", g.upsample_kernel_sizes, 1, kMaxStages, 1, kMaxKernel);
  g.resblock_kernel_sizes =
      reader.Ints("resblock_kernel_sizes", g.resblock_kernel_sizes, 1, kMaxStages, 1, kMaxKernel);
  g.use_tanh_at_final = reader.Bool("use_tanh_at_final", g.use_tanh_at_final);
  g.use_bias_at_final = reader.Bool("use_bias_at_final", g.use_bias_at_final);
  ReadDilations(reader, &g);
  if (!reader.status().ok()) return g;

  if (g.upsample_kernel_sizes.size() != g.upsample_rates.size()) {
    reader.FailValue("upsample_kernel_sizes",
                     absl::StrCat("as many entries as upsample_rates, ", g.upsample_rates.size()));
    return g;
  }
  int64_t upsampling = 1;
  for (size_t i = 0; i < g.upsample_rates.size(); ++i) {
    upsampling *= g.upsample_rates[i];
    if (upsampling > kMaxSampleRate) {
      reader.FailValue("upsample_rates",
                       absl::StrCat("entries with a product up to ", kMaxSampleRate));
      return g;
    }
    // A shorter kernel would leave samples that nothing writes.
    if (g.upsample_kernel_sizes[i] < g.upsample_rates[i]) {
      reader.FailValue("upsample_kernel_sizes", "entries from the matching upsample_rates on");
    }
  }
  for (const int64_t kernel : g.resblock_kernel_sizes) {
    // An even kernel has no symmetric padding that keeps the length.
    if (kernel % 2 == 0) reader.FailValue("resblock_kernel_sizes", "odd integers");
  }
  // An odd width loses the half.
  if (g.upsample_initial_channel >> g.upsample_rates.size() < 1) {
    reader.FailValue(
        "upsample_initial_channel",
        absl::StrCat("2^", g.upsample_rates.size(), " or more, since every stage halves it"));
  }
  return g;
}

VocoderConfig::BandwidthExtension ReadExtension(ConfigReader& reader) {
  VocoderConfig::BandwidthExtension extension;
  extension.generator = ReadGenerator(reader);
  extension.generator.resblock = GeneratorConfig::ResBlock::kAmp1;
  extension.generator.apply_final_activation = false;
  for (const char* key :
       {"input_sampling_rate", "output_sampling_rate", "hop_length", "n_fft", "num_mels"}) {
    reader.Require(key);
  }
  extension.input_sampling_rate = reader.Int("input_sampling_rate", 16000, 1, kMaxSampleRate);
  extension.output_sampling_rate = reader.Int("output_sampling_rate", 48000, 1, kMaxSampleRate);
  extension.hop_length = reader.Int("hop_length", 80, 1, kMaxFftSize);
  extension.n_fft = reader.Int("n_fft", 512, 2, kMaxFftSize);
  extension.num_mels = reader.Int("num_mels", 64, 1, kMaxWidth);
  if (reader.status().ok()) {
    if (extension.output_sampling_rate % extension.input_sampling_rate != 0) {
      reader.FailValue("output_sampling_rate", absl::StrCat("a multiple of input_sampling_rate ",
                                                            extension.input_sampling_rate));
    }
    if (extension.n_fft < extension.hop_length) {
      reader.FailValue("n_fft", absl::StrCat("from hop_length ", extension.hop_length, " on"));
    }
  }
  return extension;
}

void RequireAmp(ConfigReader& reader) {
  reader.RequireEqual("resblock", "AMP1");
  reader.RequireEqual("stereo", true);
  reader.RequireEqual("activation", "snakebeta");
}

}  // namespace

bool AudioVaeConfig::HasAttention(int64_t level) const {
  const int64_t level_resolution = resolution >> level;
  return std::find(attn_resolutions.begin(), attn_resolutions.end(), level_resolution) !=
         attn_resolutions.end();
}

absl::StatusOr<AudioVaeConfig> ParseAudioVaeConfig(const nlohmann::json& config) {
  ConfigReader root(config, "config");
  root.Require("audio_vae");
  ConfigReader vae = root.Object("audio_vae");
  ConfigReader model = vae.Object("model");
  ConfigReader params = model.Object("params");
  ConfigReader ddconfig = params.Object("ddconfig");
  ConfigReader preprocessing = vae.Object("preprocessing");
  ConfigReader stft = preprocessing.Object("stft");
  ConfigReader mel = preprocessing.Object("mel");
  ConfigReader variables = vae.Object("variables");

  AudioVaeConfig c;
  c.sampling_rate = params.Int("sampling_rate", c.sampling_rate, 1, kMaxSampleRate);
  c.hop_length = stft.Int("hop_length", c.hop_length, 1, kMaxFftSize);
  c.filter_length = stft.Int("filter_length", c.filter_length, 2, kMaxFftSize);
  c.causal = stft.Bool("causal", c.causal);
  ReadCodec(ddconfig, &c);
  c.mel_bins = ReadMelBins(ddconfig, mel, variables);
  if (!root.status().ok()) return root.status();
  return c;
}

int64_t GeneratorConfig::total_upsampling() const {
  int64_t product = 1;
  for (const int64_t rate : upsample_rates) product *= rate;
  return product;
}

absl::StatusOr<VocoderConfig> ParseVocoderConfig(const nlohmann::json& config) {
  ConfigReader root(config, "config");
  root.Require("vocoder");
  ConfigReader vocoder = root.Object("vocoder");
  VocoderConfig c;
  if (!vocoder.Has("bwe")) {
    vocoder.RequireEqual("resblock", "1");
    vocoder.RequireEqual("stereo", true);
    c.generator = ReadGenerator(vocoder);
    c.output_sampling_rate =
        vocoder.Int("output_sampling_rate", c.output_sampling_rate, 1, kMaxSampleRate);
  } else {
    vocoder.Require("vocoder");
    ConfigReader first = vocoder.Object("vocoder");
    ConfigReader second = vocoder.Object("bwe");
    RequireAmp(first);
    RequireAmp(second);
    c.generator = ReadGenerator(first);
    c.generator.resblock = GeneratorConfig::ResBlock::kAmp1;
    c.extension = ReadExtension(second);
    c.output_sampling_rate = c.extension->output_sampling_rate;
  }
  if (!root.status().ok()) return root.status();
  return c;
}

}  // namespace ltx::checkpoint
