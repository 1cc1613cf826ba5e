#ifndef LTX_ENGINE_AUDIO_VAE_AUDIO_DECODER_H_
#define LTX_ENGINE_AUDIO_VAE_AUDIO_DECODER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/audio_vae/attention_block.h"
#include "engine/audio_vae/audio_statistics.h"
#include "engine/audio_vae/causal_conv2d.h"
#include "engine/audio_vae/mid_block.h"
#include "engine/audio_vae/normalization.h"
#include "engine/audio_vae/resnet_block.h"
#include "engine/audio_vae/upsample.h"
#include "engine/checkpoint/audio_config.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/stage_observer.h"
#include "kernels/device.h"

namespace ltx::audio_vae {

/// Audio latent to log-mel spectrogram, in the compute dtype. Source: the reference's
/// audio_vae/audio_vae.py:AudioDecoder.
class AudioDecoder {
 public:
  /// `loader` holds the official names ("audio_vae.decoder.*",
  /// "audio_vae.per_channel_statistics.*"); "audio_vae.encoder.*" is left to the encoder.
  /// INVALID_ARGUMENT for other tensors below "audio_vae." that nothing uses; FAILED_PRECONDITION,
  /// naming the key, for a config whose parts do not fit together; errors of the weight loader.
  static absl::StatusOr<AudioDecoder> Load(checkpoint::WeightLoader loader,
                                           const checkpoint::AudioVaeConfig& config);

  const checkpoint::AudioVaeConfig& config() const { return config_; }
  /// The compute dtype it was loaded in.
  DType dtype() const { return dtype_; }
  /// Values per latent frame: z_channels * bins.
  int64_t token_values() const { return statistics_.values(); }
  /// Mel frames for `latent_frames`.
  int64_t OutputFrames(int64_t latent_frames) const;

  /// Normalised latent as tokens [B, L, token_values()], value index channel * bins + bin, in the
  /// compute dtype (dtype()) -> log-mel [B, OutputFrames(L), mel_bins, out_ch], cropped or
  /// zero-padded to that. Stages: denormalized [B, L, bins, z], conv_in, mid, up_<level> [B, time,
  /// bins, C]. INVALID_ARGUMENT if the tokens have another shape or L is 0.
  absl::StatusOr<Tensor> Forward(Device& device, const Tensor& tokens,
                                 const StageObserver& observer = {}) const;

 private:
  struct Level {
    std::vector<ResnetBlock> blocks;
    /// One behind each block, or none.
    std::vector<AttentionBlock> attentions;
    std::optional<Upsample> upsample;
  };
  static absl::StatusOr<Level> LoadLevel(checkpoint::WeightLoader loader,
                                         const checkpoint::AudioVaeConfig& config, int64_t level,
                                         int64_t in_channels);
  absl::StatusOr<Tensor> RunLevel(Device& device, const Level& level, const Tensor& x) const;
  absl::StatusOr<Tensor> FitToTarget(Device& device, const Tensor& x, int64_t frames,
                                     int64_t bins) const;

  checkpoint::AudioVaeConfig config_;
  DType dtype_ = DType::kF32;
  AudioStatistics statistics_;
  CausalConv2d conv_in_;
  MidBlock mid_;
  /// Finest first.
  std::vector<Level> levels_;
  Normalization norm_out_;
  CausalConv2d conv_out_;
};

}  // namespace ltx::audio_vae

#endif  // LTX_ENGINE_AUDIO_VAE_AUDIO_DECODER_H_
