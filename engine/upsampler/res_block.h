#ifndef LTX_ENGINE_UPSAMPLER_RES_BLOCK_H_
#define LTX_ENGINE_UPSAMPLER_RES_BLOCK_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/checkpoint/weight_loader.h"
#include "kernels/device.h"

namespace ltx::upsampler {

/// Groups of every group norm of the upsamplers (a constant of the reference).
inline constexpr int64_t kNormGroups = 32;
/// Their epsilon: PyTorch's default, not the 1e-6 of the video VAE.
inline constexpr float kNormEpsilon = 1e-5f;

/// A convolution with kernel 3, stride 1 and one zero on both sides of every axis: [T, H, W] of a
/// volume (`dims` 3) or [H, W] of single frames (`dims` 2). Unlike the VAE's, time is padded with
/// zeros too.
class PlainConv {
 public:
  PlainConv() = default;
  /// Reads `module`.weight [out, in, 3 x dims] and `module`.bias [out].
  static absl::StatusOr<PlainConv> Load(checkpoint::WeightLoader& loader, absl::string_view module,
                                        int64_t in, int64_t out, int64_t dims);
  /// [B, (T,) H, W, in] -> [B, (T,) H, W, out].
  absl::StatusOr<Tensor> Forward(Device& device, const Tensor& x) const;

 private:
  ConvWeight weight_;
};

/// activation(group norm) with 32 groups. Over a volume the statistics mix all frames.
class UpsamplerNorm {
 public:
  UpsamplerNorm() = default;
  /// Reads `module`.weight and `module`.bias [channels]; INVALID_ARGUMENT if 32 does not divide
  /// `channels`.
  static absl::StatusOr<UpsamplerNorm> Load(checkpoint::WeightLoader& loader,
                                            absl::string_view module, int64_t channels);
  absl::StatusOr<Tensor> Forward(Device& device, const Tensor& x, Activation activation) const;

 private:
  Tensor weight_;
  Tensor bias_;
};

/// silu(norm2(conv2(silu(norm1(conv1(x))))) + x): the last activation follows the sum.
/// Source: the reference, upsampler/res_block.py:ResBlock.
class ResBlock {
 public:
  ResBlock() = default;
  /// Reads conv1, norm1, conv2 and norm2 below the loader's prefix; `dims` is 2 or 3.
  static absl::StatusOr<ResBlock> Load(checkpoint::WeightLoader loader, int64_t channels,
                                       int64_t dims);
  /// [B, (T,) H, W, C], shape kept.
  absl::StatusOr<Tensor> Forward(Device& device, const Tensor& x) const;

 private:
  PlainConv conv1_, conv2_;
  UpsamplerNorm norm1_, norm2_;
};

}  // namespace ltx::upsampler

#endif  // LTX_ENGINE_UPSAMPLER_RES_BLOCK_H_
