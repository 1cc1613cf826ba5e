#ifndef LTX_ENGINE_VIDEO_VAE_UPSAMPLE_BLOCK_H_
#define LTX_ENGINE_VIDEO_VAE_UPSAMPLE_BLOCK_H_

#include <array>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/video_vae/block.h"
#include "engine/video_vae/causal_conv3d.h"
#include "engine/video_vae/conv_progress.h"
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
  /// The result's frames [FramesFrom(part.begin), FramesFrom(part.end)), put into `into`. x is what
  /// `part` reads of a clip, a single one.
  absl::Status ForwardPart(Tensor x, const ConvPart& part, Tensor into,
                           const BlockContext& context) const;
  /// How many frames of the result the first `frames` of the input make.
  int64_t FramesFrom(int64_t frames) const {
    return options_.stride[0] == 2 && frames > 0 ? 2 * frames - 1 : frames;
  }
  /// By how much frames grow, over [H, W], and channels of the result.
  const std::array<int, 3>& stride() const { return options_.stride; }
  int64_t out_channels() const { return options_.in_channels / options_.reduction; }

 private:
  absl::StatusOr<Tensor> Run(Tensor x, const ConvPart& part, Tensor into,
                             const BlockContext& context) const;
  explicit UpsampleBlock(const UpsampleBlockOptions& options) : options_(options) {}

  const UpsampleBlockOptions options_;
  CausalConv3d conv_;
};

}  // namespace ltx::video_vae

#endif  // LTX_ENGINE_VIDEO_VAE_UPSAMPLE_BLOCK_H_
