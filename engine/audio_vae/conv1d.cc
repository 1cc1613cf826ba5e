#include "engine/audio_vae/conv1d.h"

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace ltx::audio_vae {
namespace {

/// Weight and bias (undefined if `bias` is false) in `dtype`.
struct Parameters {
  Tensor weight;
  Tensor bias;
};

absl::StatusOr<Parameters> LoadWidened(checkpoint::WeightLoader& loader, absl::string_view module,
                                       const Shape& weight, int64_t out_channels, bool bias) {
  Parameters parameters;
  LTX_ASSIGN_OR_RETURN(parameters.weight, loader.GetF32(absl::StrCat(module, ".weight"), weight));
  if (bias) {
    LTX_ASSIGN_OR_RETURN(parameters.bias,
                         loader.GetF32(absl::StrCat(module, ".bias"), Shape({out_channels})));
  }
  return parameters;
}

}  // namespace

absl::StatusOr<Conv1d> Conv1d::Load(checkpoint::WeightLoader& loader, absl::string_view module,
                                    int64_t in_channels, int64_t out_channels,
                                    const Options& options) {
  Conv1d conv;
  if (options.dtype == loader.compute_dtype()) {
    LTX_ASSIGN_OR_RETURN(conv.weight_, loader.Conv(module, in_channels, out_channels,
                                                   Shape({options.kernel}), options.bias));
  } else {
    LTX_ASSIGN_OR_RETURN(
        const Parameters parameters,
        LoadWidened(loader, module, Shape({out_channels, in_channels, options.kernel}),
                    out_channels, options.bias));
    LTX_ASSIGN_OR_RETURN(conv.weight_, loader.device().PrepareConv(
                                           parameters.weight, parameters.bias, loader.owner()));
  }
  const int64_t padding = options.dilation * (options.kernel - 1);
  conv.geometry_.dilation = options.dilation;
  conv.geometry_.pad_before = padding / 2;
  conv.geometry_.pad_after = padding - padding / 2;
  return conv;
}

absl::StatusOr<Tensor> Conv1d::Forward(Device& device, const Tensor& x,
                                       const Tensor& residual) const {
  ConvOptions options;
  options.axes[0] = geometry_;
  options.residual = residual;
  return device.Conv(x, weight_, options);
}

absl::StatusOr<ConvTranspose1d> ConvTranspose1d::Load(checkpoint::WeightLoader& loader,
                                                      absl::string_view module, int64_t in_channels,
                                                      int64_t out_channels, int64_t kernel,
                                                      int64_t stride, DType dtype) {
  if (stride < 1 || kernel < stride) {
    return absl::FailedPreconditionError(
        absl::StrCat("vocoder ", module, ": kernel ", kernel, " with rate ", stride,
                     "; the rate must be at least 1 and the kernel at least the rate"));
  }
  ConvTranspose1d conv;
  if (dtype == loader.compute_dtype()) {
    LTX_ASSIGN_OR_RETURN(conv.weight_,
                         loader.ConvTranspose1d(module, in_channels, out_channels, kernel));
  } else {
    LTX_ASSIGN_OR_RETURN(
        const Parameters parameters,
        LoadWidened(loader, module, Shape({in_channels, out_channels, kernel}), out_channels,
                    /*bias=*/true));
    LTX_ASSIGN_OR_RETURN(conv.weight_, loader.device().PrepareConvTranspose1d(
                                           parameters.weight, parameters.bias, loader.owner()));
  }
  conv.stride_ = stride;
  conv.padding_ = (kernel - stride) / 2;
  return conv;
}

absl::StatusOr<Tensor> ConvTranspose1d::Forward(Device& device, const Tensor& x) const {
  return device.ConvTranspose1d(x, weight_, stride_, padding_);
}

int64_t ConvTranspose1d::OutputLength(int64_t length, int64_t kernel, int64_t stride) {
  return (length - 1) * stride - 2 * ((kernel - stride) / 2) + kernel;
}

}  // namespace ltx::audio_vae
