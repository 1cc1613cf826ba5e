#ifndef LTX_ENGINE_VIDEO_VAE_UPSAMPLE_BLOCK_H_
#define LTX_ENGINE_VIDEO_VAE_UPSAMPLE_BLOCK_H_

#include <array>
#include <memory>

#include "absl/status/statusor.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/video_vae/block.h"
#include "engine/video_vae/causal_conv3d.h"
#include "kernels/device.h"

namespace ltx::video_vae {

struct UpsampleBlockOptions {
  int64_t in_channels = 0;
  /// Growth over [T, H, W], each 1 or 2.
  std::array<int, 3> stride = {1, 1, 1};
  /// The result has in_channels / reduction channels.
  int64_t reduction = 1;
  /// Adds the input, moved from channels to positions and repeated along channels.
  bool residual = false;
  PadMode spatial_padding = PadMode::kZeros;
};

/// Growth in the decoder: a convolution to prod(stride) times the result's width, then
/// depth-to-space. If time doubles, the first frame of the result is dropped, whatever the padding
/// rule: T becomes 2 T - 1. Block names `compress_space`, `compress_time`, `compress_all`.
/// Source: the reference, video_vae/sampling.py:DepthToSpaceUpsample.
class UpsampleBlock final : public Block {
 public:
  /// Reads conv.conv below the loader's prefix. INVALID_ARGUMENT if the channels do not divide as
  /// the options ask.
  static absl::StatusOr<std::unique_ptr<UpsampleBlock>> Load(checkpoint::WeightLoader loader,
                                                             const UpsampleBlockOptions& options);

  absl::StatusOr<Tensor> Forward(Tensor x, const BlockContext& context) const override;

 private:
  explicit UpsampleBlock(const UpsampleBlockOptions& options) : options_(options) {}

  const UpsampleBlockOptions options_;
  CausalConv3d conv_;
};

}  // namespace ltx::video_vae

#endif  // LTX_ENGINE_VIDEO_VAE_UPSAMPLE_BLOCK_H_
