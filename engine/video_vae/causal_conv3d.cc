#include "engine/video_vae/causal_conv3d.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace ltx::video_vae {
namespace {

/// Mirroring needs as many inner elements as it pads, wrapping as many elements.
absl::Status CheckExtent(absl::string_view axis, int64_t extent, int64_t pad, PadMode mode) {
  if (mode == PadMode::kReflect && extent <= pad) {
    return absl::InvalidArgumentError(absl::StrCat("video VAE: reflect padding by ", pad, " needs ",
                                                   axis, " of at least ", pad + 1,
                                                   " at every level, got ", extent));
  }
  if (mode == PadMode::kCircular && extent < pad) {
    return absl::InvalidArgumentError(absl::StrCat("video VAE: circular padding by ", pad,
                                                   " needs ", axis, " of at least ", pad,
                                                   " at every level, got ", extent));
  }
  return absl::OkStatus();
}

}  // namespace

PadMode ToPadMode(checkpoint::SpatialPadding padding) {
  switch (padding) {
    case checkpoint::SpatialPadding::kZeros:
      return PadMode::kZeros;
    case checkpoint::SpatialPadding::kReflect:
      return PadMode::kReflect;
    case checkpoint::SpatialPadding::kReplicate:
      return PadMode::kReplicate;
    case checkpoint::SpatialPadding::kCircular:
      return PadMode::kCircular;
  }
  return PadMode::kZeros;
}

absl::StatusOr<CausalConv3d> CausalConv3d::Load(checkpoint::WeightLoader& loader,
                                                absl::string_view module, int64_t in, int64_t out,
                                                const CausalConv3dOptions& options) {
  if (options.kernel < 1 || options.kernel % 2 == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("video VAE: kernel_size must be odd and positive, got ", options.kernel));
  }
  CausalConv3d conv;
  conv.options_ = options;
  LTX_ASSIGN_OR_RETURN(
      conv.weight_,
      loader.Conv(module, in, out, Shape({options.kernel, options.kernel, options.kernel})));
  return conv;
}

absl::StatusOr<Tensor> CausalConv3d::Forward(Device& device, Tensor x, bool causal,
                                             const NormConvOptions& around, Tensor residual,
                                             const ClipEnds& ends) const {
  if (x.rank() != 5) {
    return absl::InternalError(
        absl::StrCat("causal convolution: expected [B, T, H, W, C], got ", x.shape().ToString()));
  }
  const int64_t copies = options_.kernel - 1;
  const int64_t spatial_pad = options_.kernel / 2;
  LTX_RETURN_IF_ERROR(CheckExtent("a height", x.dim(2), spatial_pad, options_.spatial_padding));
  LTX_RETURN_IF_ERROR(CheckExtent("a width", x.dim(3), spatial_pad, options_.spatial_padding));

  ConvOptions conv;
  conv.axes[0].stride = options_.stride[0];
  if (ends.first) conv.axes[0].pad_before = causal ? copies : copies / 2;
  if (ends.last) conv.axes[0].pad_after = causal ? 0 : copies / 2;
  conv.axes[0].pad_mode = PadMode::kReplicate;
  for (int axis = 1; axis < 3; ++axis) {
    conv.axes[axis].stride = options_.stride[axis];
    conv.axes[axis].pad_before = spatial_pad;
    conv.axes[axis].pad_after = spatial_pad;
    conv.axes[axis].pad_mode = options_.spatial_padding;
  }
  conv.residual = std::move(residual);
  return device.NormConv(std::move(x), weight_, conv, around);
}

}  // namespace ltx::video_vae
