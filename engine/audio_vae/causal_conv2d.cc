#include "engine/audio_vae/causal_conv2d.h"

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace ltx::audio_vae {

using checkpoint::CausalityAxis;

namespace {
constexpr int kTime = 0;
constexpr int kBins = 1;
}  // namespace

std::array<AxisGeometry, 3> CausalPadding(CausalityAxis axis, int64_t kernel) {
  const int64_t total = kernel - 1;
  AxisGeometry symmetric;
  symmetric.pad_before = total / 2;
  symmetric.pad_after = total - total / 2;
  AxisGeometry causal;
  causal.pad_before = total;
  std::array<AxisGeometry, 3> axes{symmetric, symmetric, AxisGeometry{}};
  switch (axis) {
    case CausalityAxis::kNone:
      break;
    case CausalityAxis::kHeight:
      axes[kTime] = causal;
      break;
    case CausalityAxis::kWidth:
    case CausalityAxis::kWidthCompatibility:
      axes[kBins] = causal;
      break;
  }
  return axes;
}

absl::StatusOr<CausalConv2d> CausalConv2d::Load(checkpoint::WeightLoader& loader,
                                                absl::string_view name, int64_t in_channels,
                                                int64_t out_channels, int64_t kernel,
                                                CausalityAxis axis) {
  CausalConv2d conv;
  LTX_ASSIGN_OR_RETURN(conv.weight_, loader.Conv(absl::StrCat(name, ".conv"), in_channels,
                                                 out_channels, Shape({kernel, kernel})));
  conv.padding_ = CausalPadding(axis, kernel);
  conv.axis_ = axis;
  return conv;
}

absl::StatusOr<Tensor> CausalConv2d::Forward(Device& device, const Tensor& x,
                                             const Tensor& residual) const {
  ConvOptions options;
  options.axes = padding_;
  options.residual = residual;
  return device.Conv(x, weight_, options);
}

absl::StatusOr<Tensor> CausalConv2d::ForwardDroppingFirst(Device& device, const Tensor& x) const {
  ConvOptions options;
  options.axes = padding_;
  if (axis_ == CausalityAxis::kHeight) --options.axes[kTime].pad_before;
  if (axis_ == CausalityAxis::kWidth) --options.axes[kBins].pad_before;
  return device.Conv(x, weight_, options);
}

}  // namespace ltx::audio_vae
