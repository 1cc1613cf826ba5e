#ifndef LTX_ENGINE_UPSAMPLER_LATENT_UPSAMPLER_H_
#define LTX_ENGINE_UPSAMPLER_LATENT_UPSAMPLER_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/upsampler_config.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/stage_observer.h"
#include "engine/upsampler/res_block.h"
#include "engine/upsampler/resampler.h"
#include "engine/video_vae/statistics.h"
#include "kernels/device.h"

namespace ltx::upsampler {

/// Grows video latents in space (x2, or a rational factor), in time (x2) or in both:
///   initial convolution, norm and SiLU; residual blocks; resampler; residual blocks; final
///   convolution.
/// With `dims` 2 every frame is treated on its own; with `dims` 3 the convolutions and the norms'
/// statistics span the clip, so a clip cannot be cut into pieces without changing the result.
/// Source: the reference, upsampler/model.py:LatentUpsampler.
class LatentUpsampler {
 public:
  /// Reads every tensor below the loader's prefix. INVALID_ARGUMENT or NOT_FOUND for tensors that
  /// are missing, have another shape or have no use, and for settings that fit no known upsampler;
  /// each names the thing.
  static absl::StatusOr<std::unique_ptr<LatentUpsampler>> Load(
      const checkpoint::UpsamplerConfig& config, checkpoint::WeightLoader loader);

  /// Width of the latents it takes and gives.
  int64_t latent_channels() const { return config_.in_channels; }
  bool changes_space() const { return config_.spatial_upsample; }
  bool changes_time() const { return config_.temporal_upsample; }
  /// [F, H, W] of the result for such an input. A rational factor rounds odd extents up, so callers
  /// that must hit an exact size compare first.
  LatentExtents OutputExtents(const LatentExtents& input) const {
    return resampler_->OutputExtents(input);
  }

  /// Un-normalised latents [B, F, H, W, C] -> [B, F', H', W', C], un-normalised, in the compute
  /// dtype. Stages: "initial", "res_blocks", "upsampler"; with folded frames where the net folds
  /// them, and before the surplus first frame of a temporal growth is dropped.
  absl::StatusOr<Tensor> Forward(const Tensor& latent, const StageObserver& observer = {}) const;

  /// The same on normalised latents: un-normalise, upsample, normalise. `statistics` are those of
  /// the video VAE that made the latents. INVALID_ARGUMENT if their width differs.
  /// Source: the reference, upsampler/model.py:upsample_video.
  absl::StatusOr<Tensor> UpsampleNormalized(const Tensor& latent,
                                            const video_vae::ChannelStatistics& statistics,
                                            const StageObserver& observer = {}) const;

 private:
  LatentUpsampler(Device* device, const checkpoint::UpsamplerConfig& config, DType dtype)
      : device_(device), config_(config), dtype_(dtype) {}

  Device* const device_;
  const checkpoint::UpsamplerConfig config_;
  const DType dtype_;
  PlainConv initial_conv_;
  UpsamplerNorm initial_norm_;
  std::vector<ResBlock> blocks_;
  std::unique_ptr<Resampler> resampler_;
  std::vector<ResBlock> post_blocks_;
  PlainConv final_conv_;
};

}  // namespace ltx::upsampler

#endif  // LTX_ENGINE_UPSAMPLER_LATENT_UPSAMPLER_H_
