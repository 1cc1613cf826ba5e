#ifndef LTX_ENGINE_VIDEO_VAE_RESNET_BLOCK_H_
#define LTX_ENGINE_VIDEO_VAE_RESNET_BLOCK_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/video_vae_config.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/video_vae/block.h"
#include "engine/video_vae/causal_conv3d.h"
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

 private:
  explicit ResnetBlock(const ResnetBlockOptions& options) : options_(options) {}

  /// conv(silu(mod(norm(x)))) + residual; `half` 0 or 1 picks the shift and scale.
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

 private:
  ResnetStack() = default;

  bool conditioned_ = false;
  TimestepEmbedder embedder_;
  std::vector<std::unique_ptr<ResnetBlock>> blocks_;
};

}  // namespace ltx::video_vae

#endif  // LTX_ENGINE_VIDEO_VAE_RESNET_BLOCK_H_
