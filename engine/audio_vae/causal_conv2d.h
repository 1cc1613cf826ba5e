#ifndef LTX_ENGINE_AUDIO_VAE_CAUSAL_CONV2D_H_
#define LTX_ENGINE_AUDIO_VAE_CAUSAL_CONV2D_H_

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/checkpoint/audio_config.h"
#include "engine/checkpoint/weight_loader.h"
#include "kernels/device.h"

namespace ltx::audio_vae {

/// Zero padding of a stride-1 convolution with a square kernel over [time, bins], so that extents
/// stay: the causal axis is padded in front only, the other on both sides (source: the reference's
/// audio_vae/causal_conv_2d.py:CausalConv2d, whose "height" is time and "width" is bins).
std::array<AxisGeometry, 3> CausalPadding(checkpoint::CausalityAxis axis, int64_t kernel);

/// A 2-D convolution of the audio VAE. Weights lie one level below the module's name, at
/// `<name>.conv.weight` [out, in, k, k] and `<name>.conv.bias` [out].
class CausalConv2d {
 public:
  /// Errors of the weight loader.
  static absl::StatusOr<CausalConv2d> Load(checkpoint::WeightLoader& loader, absl::string_view name,
                                           int64_t in_channels, int64_t out_channels,
                                           int64_t kernel, checkpoint::CausalityAxis axis);

  /// x [B, time, bins, in] -> [B, time, bins, out], plus `residual` (same shape) if defined.
  absl::StatusOr<Tensor> Forward(Device& device, const Tensor& x,
                                 const Tensor& residual = {}) const;

  /// Forward without the first element of the causal axis (time for kHeight, bins for kWidth;
  /// nothing is left out for the other axes). One element less of padding leaves out exactly that
  /// output, so it is never computed.
  absl::StatusOr<Tensor> ForwardDroppingFirst(Device& device, const Tensor& x) const;

 private:
  ConvWeight weight_;
  std::array<AxisGeometry, 3> padding_{};
  checkpoint::CausalityAxis axis_ = checkpoint::CausalityAxis::kHeight;
};

}  // namespace ltx::audio_vae

#endif  // LTX_ENGINE_AUDIO_VAE_CAUSAL_CONV2D_H_
