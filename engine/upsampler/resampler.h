#ifndef LTX_ENGINE_UPSAMPLER_RESAMPLER_H_
#define LTX_ENGINE_UPSAMPLER_RESAMPLER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "engine/checkpoint/upsampler_config.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/stage_observer.h"
#include "kernels/device.h"

namespace ltx::upsampler {

/// Extents of a latent volume.
struct LatentExtents {
  int64_t frames = 0;
  int64_t height = 0;
  int64_t width = 0;
};

/// The layer of an upsampler that changes the extents. It works on volumes [B, F, H, W, C], and on
/// frames folded into the batch as [N, 1, H, W, C].
class Resampler {
 public:
  virtual ~Resampler() = default;
  virtual LatentExtents OutputExtents(const LatentExtents& input) const = 0;
  /// Keeps the channels. Reports the stage "upsampler".
  virtual absl::StatusOr<Tensor> Forward(Device& device, const Tensor& x,
                                         const StageObserver& observer) const = 0;
};

/// The resampler that `config` asks for, read below the loader's prefix, which ends in
/// "upsampler.". INVALID_ARGUMENT for a growth of nothing, an unknown rational factor, or a
/// rational or temporal growth with dims 2.
absl::StatusOr<std::unique_ptr<Resampler>> LoadResampler(const checkpoint::UpsamplerConfig& config,
                                                         const checkpoint::WeightLoader& loader);

}  // namespace ltx::upsampler

#endif  // LTX_ENGINE_UPSAMPLER_RESAMPLER_H_
