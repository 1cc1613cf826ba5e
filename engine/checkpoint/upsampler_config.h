#ifndef LTX_ENGINE_CHECKPOINT_UPSAMPLER_CONFIG_H_
#define LTX_ENGINE_CHECKPOINT_UPSAMPLER_CONFIG_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace ltx::checkpoint {

/// Config of a latent upsampler, which is flat.
struct UpsamplerConfig {
  int64_t in_channels = 128;
  /// A multiple of 32, the groups of its norms.
  int64_t mid_channels = 512;
  int64_t num_blocks_per_stage = 4;
  /// 2: every frame on its own; 3: volumes.
  int64_t dims = 3;
  bool spatial_upsample = true;
  bool temporal_upsample = false;
  /// Only read by the rational resampler.
  double spatial_scale = 2.0;
  bool rational_resampler = false;
  /// spatial_scale of the rational resampler as a fraction: shuffle up, then blur and stride down.
  int64_t rational_up = 2;
  int64_t rational_down = 1;

  /// By how much it multiplies height and width, as a fraction, and the frame rate of latents.
  int64_t spatial_up() const {
    return !spatial_upsample ? 1 : rational_resampler ? rational_up : 2;
  }
  int64_t spatial_down() const {
    return spatial_upsample && rational_resampler ? rational_down : 1;
  }
};

/// INVALID_ARGUMENT names key, value and what is legal: neither flag set, a rational scale other
/// than 0.75, 1.5, 2 and 4, two dimensions with a temporal or rational step.
absl::StatusOr<UpsamplerConfig> ParseUpsamplerConfig(const nlohmann::json& config);

}  // namespace ltx::checkpoint

#endif  // LTX_ENGINE_CHECKPOINT_UPSAMPLER_CONFIG_H_
