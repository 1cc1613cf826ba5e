#include "engine/video_vae/upsample_block.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/video_vae/frame_window.h"
#include "kernels/status_macros.h"

namespace ltx::video_vae {
namespace {

int64_t Volume(const std::array<int, 3>& stride) {
  return static_cast<int64_t>(stride[0]) * stride[1] * stride[2];
}

}  // namespace

absl::StatusOr<std::unique_ptr<UpsampleBlock>> UpsampleBlock::Load(
    checkpoint::WeightLoader loader, const UpsampleBlockOptions& options) {
  const int64_t in = options.in_channels, volume = Volume(options.stride);
  if (options.reduction < 1 || in % options.reduction != 0) {
    return absl::InvalidArgumentError(absl::StrCat("video VAE: an upsampling block over ", in,
                                                   " channels cannot have multiplier ",
                                                   options.reduction));
  }
  if (options.residual && (in % volume != 0 || volume % options.reduction != 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "video VAE: a residual upsampling block needs channels (", in, ") divisible by ", volume,
        " and a multiplier (", options.reduction, ") that divides ", volume));
  }
  std::unique_ptr<UpsampleBlock> block(new UpsampleBlock(options));
  CausalConv3dOptions conv;
  conv.spatial_padding = options.spatial_padding;
  LTX_ASSIGN_OR_RETURN(block->conv_, CausalConv3d::Load(loader, "conv.conv", in,
                                                        volume * (in / options.reduction), conv));
  return block;
}

absl::StatusOr<Tensor> UpsampleBlock::Forward(Tensor x, const BlockContext& context) const {
  const ConvPart whole = ConvPart::Whole(x.dim(1));
  return Run(std::move(x), whole, Tensor(), context);
}

absl::Status UpsampleBlock::ForwardPart(Tensor x, const ConvPart& part, Tensor into,
                                        const BlockContext& context) const {
  return Run(std::move(x), part, std::move(into), context).status();
}

absl::StatusOr<Tensor> UpsampleBlock::Run(Tensor x, const ConvPart& part, Tensor into,
                                          const BlockContext& context) const {
  Device& device = *context.device;
  Tensor residual;
  if (options_.residual) {
    Tensor skip = x;
    if (part.frames() != x.dim(1)) {
      LTX_ASSIGN_OR_RETURN(skip,
                           FramesOf(x, part.begin - part.read_begin, part.end - part.read_begin));
    }
    // The skip is depth-to-space of x, its whole channel block repeated. Moving the repetition in
    // front of the shuffle makes it x repeated, so the sum happens before the one shuffle:
    // channel c volume + i of the convolution meets channel (c volume + i) mod C of x.
    const std::vector<Tensor> copies(Volume(options_.stride) / options_.reduction, skip);
    LTX_ASSIGN_OR_RETURN(residual, device.Concat(copies, /*axis=*/4));
  }
  NormConvOptions around;
  around.depth_to_space = options_.stride;
  around.drop_first_frame = options_.stride[0] == 2 && part.ends.first;
  around.into = std::move(into);
  return conv_.Forward(device, std::move(x), context.causal, around, std::move(residual),
                       part.ends);
}

}  // namespace ltx::video_vae
