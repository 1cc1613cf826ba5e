#ifndef LTX_ENGINE_VIDEO_VAE_BLOCK_H_
#define LTX_ENGINE_VIDEO_VAE_BLOCK_H_

#include "absl/status/statusor.h"
#include "engine/video_vae/noise_source.h"
#include "kernels/device.h"

namespace ltx::video_vae {

/// What a block needs besides its input.
struct BlockContext {
  Device* device = nullptr;
  /// The temporal padding rule of every convolution, see CausalConv3d.
  bool causal = true;
  /// The scaled decode timestep; read only by blocks built with timestep conditioning.
  float timestep = 0.0f;
  /// Source of the spatial draws; called only by blocks built with noise injection.
  const NoiseSource* noise = nullptr;
};

/// One entry of the encoder's or the decoder's block list.
class Block {
 public:
  virtual ~Block() = default;

  /// x [B, T, H, W, C] -> [B, T', H', W', C']. Takes the input by value so that a block can let go
  /// of it as soon as it has read it: the largest activations of a decode are inputs of blocks.
  virtual absl::StatusOr<Tensor> Forward(Tensor x, const BlockContext& context) const = 0;
};

}  // namespace ltx::video_vae

#endif  // LTX_ENGINE_VIDEO_VAE_BLOCK_H_
