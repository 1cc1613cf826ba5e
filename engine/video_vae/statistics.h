#ifndef LTX_ENGINE_VIDEO_VAE_STATISTICS_H_
#define LTX_ENGINE_VIDEO_VAE_STATISTICS_H_

#include "absl/status/statusor.h"
#include "engine/checkpoint/weight_loader.h"
#include "kernels/device.h"

namespace ltx::video_vae {

/// Mean and standard deviation of each latent channel over the training data. Diffusion works on
/// normalised latents, the VAE's convolutions and the latent upsamplers on un-normalised ones.
/// Source: the reference, video_vae/ops.py:PerChannelStatistics.
class ChannelStatistics {
 public:
  ChannelStatistics() = default;

  /// Reads mean-of-means [channels] and std-of-means [channels] below the loader's prefix, which
  /// ends in "per_channel_statistics.", in the compute dtype. Other names there that published
  /// files carry (`channel`, `mean-of-stds*`) are marked as not needed. INVALID_ARGUMENT if the
  /// file's width is not `channels`.
  static absl::StatusOr<ChannelStatistics> Load(checkpoint::WeightLoader loader, int64_t channels);

  int64_t channels() const { return channels_; }

  /// (x - mean) / std; x [..., C] in the dtype of the statistics.
  absl::StatusOr<Tensor> Normalize(Device& device, const Tensor& x) const;
  /// x * std + mean.
  absl::StatusOr<Tensor> UnNormalize(Device& device, const Tensor& x) const;

 private:
  int64_t channels_ = 0;
  Tensor mean_;
  Tensor std_;
};

}  // namespace ltx::video_vae

#endif  // LTX_ENGINE_VIDEO_VAE_STATISTICS_H_
