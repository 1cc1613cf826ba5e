#ifndef LTX_ENGINE_CHECKPOINT_AUDIO_CONFIG_H_
#define LTX_ENGINE_CHECKPOINT_AUDIO_CONFIG_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace ltx::checkpoint {

enum class AudioNorm { kPixel, kGroup };
enum class AudioAttention { kVanilla, kNone };
/// The axis along which convolutions see the past only; height is time.
enum class CausalityAxis { kNone, kWidth, kHeight, kWidthCompatibility };

/// `config.audio_vae`.
struct AudioVaeConfig {
  int64_t sampling_rate = 16000;
  int64_t hop_length = 160;
  /// FFT size and window length.
  int64_t filter_length = 1024;
  /// Of the time grid of audio tokens.
  bool causal = true;

  // ddconfig
  /// Base channels, and the length of the per-channel statistics.
  int64_t ch = 128;
  std::vector<int64_t> ch_mult = {1, 2, 4};
  int64_t num_res_blocks = 2;
  int64_t z_channels = 8;
  int64_t in_channels = 2;
  int64_t out_ch = 2;
  int64_t resolution = 256;
  std::vector<int64_t> attn_resolutions = {8, 16, 32};
  bool mid_block_add_attention = true;
  AudioAttention attn_type = AudioAttention::kVanilla;
  AudioNorm norm_type = AudioNorm::kPixel;
  CausalityAxis causality_axis = CausalityAxis::kHeight;
  bool resamp_with_conv = true;
  /// Absent everywhere: the decoder crops to the bins of the latent.
  std::optional<int64_t> mel_bins;

  /// 2^(levels - 1): mel frames per latent frame, and mel bins per latent bin.
  int64_t downsample_factor() const { return int64_t{1} << (ch_mult.size() - 1); }
  /// True if blocks of `level` carry attention.
  bool HasAttention(int64_t level) const;
};

/// INVALID_ARGUMENT names key, value and what is legal.
absl::StatusOr<AudioVaeConfig> ParseAudioVaeConfig(const nlohmann::json& config);

/// One waveform generator.
struct GeneratorConfig {
  enum class ResBlock { kHifiGan, kAmp1 };
  ResBlock resblock = ResBlock::kHifiGan;
  int64_t upsample_initial_channel = 1024;
  std::vector<int64_t> upsample_rates = {6, 5, 2, 2, 2};
  std::vector<int64_t> upsample_kernel_sizes = {16, 15, 8, 4, 4};
  std::vector<int64_t> resblock_kernel_sizes = {3, 7, 11};
  /// One list per residual-block kernel.
  std::vector<std::vector<int64_t>> resblock_dilation_sizes = {{1, 3, 5}, {1, 3, 5}, {1, 3, 5}};
  bool use_tanh_at_final = true;
  bool use_bias_at_final = true;
  /// False for the bandwidth extension, whatever its keys say.
  bool apply_final_activation = true;

  /// Samples per mel frame: the product of the rates.
  int64_t total_upsampling() const;
};

/// `config.vocoder`.
struct VocoderConfig {
  /// Second stage: extends the bandwidth of the first one's waveform.
  struct BandwidthExtension {
    GeneratorConfig generator;
    int64_t input_sampling_rate = 16000;
    int64_t output_sampling_rate = 48000;
    int64_t hop_length = 80;
    int64_t n_fft = 512;
    int64_t num_mels = 64;
  };
  GeneratorConfig generator;
  std::optional<BandwidthExtension> extension;
  /// Of the final waveform.
  int64_t output_sampling_rate = 24000;
};

absl::StatusOr<VocoderConfig> ParseVocoderConfig(const nlohmann::json& config);

}  // namespace ltx::checkpoint

#endif  // LTX_ENGINE_CHECKPOINT_AUDIO_CONFIG_H_
