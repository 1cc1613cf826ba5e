#ifndef LTX_ENGINE_VIDEO_VAE_RESNET_BLOCK_H_
#define LTX_ENGINE_VIDEO_VAE_RESNET_BLOCK_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/checkpoint/video_vae_config.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/video_vae/block.h"
#include "engine/video_vae/causal_conv3d.h"
#include "engine/video_vae/conv_progress.h"
#include "engine/video_vae/frame_window.h"
#include "engine/video_vae/norm.h"
#include "engine/video_vae/timestep_embedding.h"
#include "kernels/device.h"

namespace ltx::video_vae {

struct ResnetBlockOptions {
  int64_t in_channels = 0;
  int64_t out_channels = 0;
  checkpoint::VideoNorm norm_layer = checkpoint::VideoNorm::kPixelNorm;
  int64_t groups = kNormGroups;
  float epsilon = kGroupNormEpsilon;
  /// Adds a spatial noise draw, scaled per channel, after either convolution.
  bool inject_noise = false;
  /// Shifts and scales after either norm by the embedded decode timestep.
  bool timestep_conditioning = false;
  PadMode spatial_padding = PadMode::kZeros;
};

/// Two convolutions around a skip:
///   h = conv1(silu(mod(norm1(x)))) [+ noise];  h = conv2(silu(mod(norm2(h)))) [+ noise];
///   result = h + shortcut(norm3(x)),
/// where shortcut is a 1x1x1 convolution and norm3 a group norm with one group, whatever the norm
/// layer, if the widths differ; else both are the identity. Block name `res_x_y`.
/// Source: the reference, video_vae/resnet.py:ResnetBlock3D.
class ResnetBlock final : public Block {
 public:
  /// Reads below the loader's prefix: conv1.conv, conv2.conv; norm1, norm2 (group norm);
  /// conv_shortcut, norm3 (width change); per_channel_scale1/2 (noise); scale_shift_table
  /// (conditioning). INVALID_ARGUMENT for noise or conditioning together with a change of width,
  /// which no checkpoint can mean: their weights have the input's width and act on the output.
  static absl::StatusOr<std::unique_ptr<ResnetBlock>> Load(checkpoint::WeightLoader loader,
                                                           const ResnetBlockOptions& options);

  /// Without an embedding: INTERNAL if the block is conditioned.
  absl::StatusOr<Tensor> Forward(Tensor x, const BlockContext& context) const override;
  /// `embedding` [B or 1, 4 C]: what scale_shift_table is added to, rows (shift1, scale1, shift2,
  /// scale2); undefined if the block is not conditioned.
  absl::StatusOr<Tensor> ForwardConditioned(Tensor x, const Tensor& embedding,
                                            const BlockContext& context) const;
  /// Whether ResnetParts can do it: nothing looks further along time than the two convolutions.
  bool works_in_parts() const;

 private:
  friend class ResnetParts;
  explicit ResnetBlock(const ResnetBlockOptions& options) : options_(options) {}

  /// conv(silu(mod(norm(x)))) + residual; `half` 0 or 1 picks the shift and scale. The result takes
  /// the residual's memory if that is nobody else's.
  absl::StatusOr<Tensor> Convolve(const Norm& norm, const CausalConv3d& conv, Tensor x,
                                  const Tensor& vectors, int64_t half, Tensor residual,
                                  const BlockContext& context) const;
  absl::StatusOr<Tensor> InjectNoise(const Tensor& x, const Tensor& channel_scale,
                                     const BlockContext& context) const;

  const ResnetBlockOptions options_;
  Norm norm1_, norm2_, norm3_;
  CausalConv3d conv1_, conv2_;
  ConvWeight shortcut_;
  /// [C] each.
  Tensor noise_scale1_, noise_scale2_;
  /// [4 C].
  Tensor scale_shift_table_;
};

/// A residual block on its way through a clip, in place.
class ResnetParts {
 public:
  /// `block` must work in parts. `x` is a window over a clip of `frames` frames. Both must outlive
  /// this.
  ResnetParts(const ResnetBlock* block, FrameWindow* x, int64_t frames, bool causal)
      : block_(block),
        x_(x),
        lag_(causal ? 2 : 0),
        first_(frames, causal),
        second_(frames, causal) {}

  /// How many frames of the result there are once `ready` of the input are there; both may go on
  /// beyond the end, as ConvProgress says.
  int64_t Reach(int64_t ready) const { return second_.Reach(first_.Reach(ready) - lag_); }
  /// Puts the result up to Reach(ready) in the place of x.
  absl::Status Advance(int64_t ready, const BlockContext& context);
  bool finished() const { return second_.finished(); }

 private:
  const ResnetBlock* block_;
  FrameWindow* x_;
  /// Frames that the second convolution leaves alone because the first one still reads them: a
  /// causal one looks back further than the second lags behind by itself.
  int64_t lag_;
  ConvProgress first_;
  ConvProgress second_;
  /// What the second convolution still needs of the first one's result, from its needed_from() on.
  Tensor between_;
};

/// A row of residual blocks of one width that share one timestep embedder. Block name `res_x`.
/// Source: the reference, video_vae/resnet.py:UNetMidBlock3D.
class ResnetStack final : public Block {
 public:
  /// Reads res_blocks.0 ... res_blocks.(layers - 1) and, if conditioned,
  /// time_embedder.timestep_embedder below the loader's prefix.
  static absl::StatusOr<std::unique_ptr<ResnetStack>> Load(const checkpoint::WeightLoader& loader,
                                                           const ResnetBlockOptions& options,
                                                           int64_t layers);

  absl::StatusOr<Tensor> Forward(Tensor x, const BlockContext& context) const override;
  absl::Span<const std::unique_ptr<ResnetBlock>> blocks() const { return blocks_; }

 private:
  ResnetStack() = default;

  bool conditioned_ = false;
  TimestepEmbedder embedder_;
  std::vector<std::unique_ptr<ResnetBlock>> blocks_;
};

}  // namespace ltx::video_vae

#endif  // LTX_ENGINE_VIDEO_VAE_RESNET_BLOCK_H_
