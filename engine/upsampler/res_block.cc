#include "engine/upsampler/res_block.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace ltx::upsampler {

absl::StatusOr<PlainConv> PlainConv::Load(checkpoint::WeightLoader& loader,
                                          absl::string_view module, int64_t in, int64_t out,
                                          int64_t dims) {
  if (dims != 2 && dims != 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("latent upsampler: dims must be 2 or 3, got ", dims));
  }
  PlainConv conv;
  LTX_ASSIGN_OR_RETURN(conv.weight_,
                       loader.Conv(module, in, out, dims == 2 ? Shape({3, 3}) : Shape({3, 3, 3})));
  return conv;
}

absl::StatusOr<Tensor> PlainConv::Forward(Device& device, const Tensor& x) const {
  ConvOptions options;
  for (int axis = 0; axis < weight_.kernel.rank(); ++axis) {
    options.axes[axis].pad_before = 1;
    options.axes[axis].pad_after = 1;
  }
  return device.Conv(x, weight_, options);
}

absl::StatusOr<UpsamplerNorm> UpsamplerNorm::Load(checkpoint::WeightLoader& loader,
                                                  absl::string_view module, int64_t channels) {
  if (channels < 1 || channels % kNormGroups != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("latent upsampler: mid_channels must be a positive multiple of ", kNormGroups,
                     ", got ", channels));
  }
  UpsamplerNorm norm;
  LTX_ASSIGN_OR_RETURN(norm.weight_,
                       loader.Get(absl::StrCat(module, ".weight"), Shape({channels})));
  LTX_ASSIGN_OR_RETURN(norm.bias_, loader.Get(absl::StrCat(module, ".bias"), Shape({channels})));
  return norm;
}

absl::StatusOr<Tensor> UpsamplerNorm::Forward(Device& device, const Tensor& x,
                                              Activation activation) const {
  GroupNormOptions options;
  options.groups = kNormGroups;
  options.epsilon = kNormEpsilon;
  options.activation = activation;
  return device.GroupNorm(x, weight_, bias_, options);
}

absl::StatusOr<ResBlock> ResBlock::Load(checkpoint::WeightLoader loader, int64_t channels,
                                        int64_t dims) {
  ResBlock block;
  LTX_ASSIGN_OR_RETURN(block.conv1_, PlainConv::Load(loader, "conv1", channels, channels, dims));
  LTX_ASSIGN_OR_RETURN(block.norm1_, UpsamplerNorm::Load(loader, "norm1", channels));
  LTX_ASSIGN_OR_RETURN(block.conv2_, PlainConv::Load(loader, "conv2", channels, channels, dims));
  LTX_ASSIGN_OR_RETURN(block.norm2_, UpsamplerNorm::Load(loader, "norm2", channels));
  return block;
}

absl::StatusOr<Tensor> ResBlock::Forward(Device& device, const Tensor& x) const {
  LTX_ASSIGN_OR_RETURN(Tensor h, conv1_.Forward(device, x));
  LTX_ASSIGN_OR_RETURN(h, norm1_.Forward(device, h, Activation::kSilu));
  LTX_ASSIGN_OR_RETURN(h, conv2_.Forward(device, h));
  LTX_ASSIGN_OR_RETURN(h, norm2_.Forward(device, h, Activation::kNone));
  LTX_ASSIGN_OR_RETURN(h, device.Add(h, x));
  return device.Apply(h, Activation::kSilu);
}

}  // namespace ltx::upsampler
