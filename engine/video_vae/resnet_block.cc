#include "engine/video_vae/resnet_block.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace ltx::video_vae {

absl::StatusOr<std::unique_ptr<ResnetBlock>> ResnetBlock::Load(checkpoint::WeightLoader loader,
                                                               const ResnetBlockOptions& options) {
  const int64_t in = options.in_channels, out = options.out_channels;
  if (in != out && (options.inject_noise || options.timestep_conditioning)) {
    return absl::InvalidArgumentError(
        absl::StrCat("video VAE: a residual block that changes its width from ", in, " to ", out,
                     " can have neither inject_noise nor timestep conditioning"));
  }
  std::unique_ptr<ResnetBlock> block(new ResnetBlock(options));
  CausalConv3dOptions conv;
  conv.spatial_padding = options.spatial_padding;
  LTX_ASSIGN_OR_RETURN(block->norm1_, Norm::Load(options.norm_layer, loader, "norm1", in,
                                                 options.groups, options.epsilon));
  LTX_ASSIGN_OR_RETURN(block->conv1_, CausalConv3d::Load(loader, "conv1.conv", in, out, conv));
  LTX_ASSIGN_OR_RETURN(block->norm2_, Norm::Load(options.norm_layer, loader, "norm2", out,
                                                 options.groups, options.epsilon));
  LTX_ASSIGN_OR_RETURN(block->conv2_, CausalConv3d::Load(loader, "conv2.conv", out, out, conv));
  if (in != out) {
    LTX_ASSIGN_OR_RETURN(block->norm3_,
                         Norm::LoadGroup(loader, "norm3", in, /*groups=*/1, options.epsilon));
    LTX_ASSIGN_OR_RETURN(block->shortcut_, loader.Conv("conv_shortcut", in, out, Shape({1, 1, 1})));
  }
  if (options.inject_noise) {
    LTX_ASSIGN_OR_RETURN(const Tensor scale1, loader.Get("per_channel_scale1", Shape({in, 1, 1})));
    LTX_ASSIGN_OR_RETURN(block->noise_scale1_, scale1.Reshape(Shape({in})));
    LTX_ASSIGN_OR_RETURN(const Tensor scale2, loader.Get("per_channel_scale2", Shape({in, 1, 1})));
    LTX_ASSIGN_OR_RETURN(block->noise_scale2_, scale2.Reshape(Shape({in})));
  }
  if (options.timestep_conditioning) {
    LTX_ASSIGN_OR_RETURN(const Tensor table, loader.Get("scale_shift_table", Shape({4, in})));
    LTX_ASSIGN_OR_RETURN(block->scale_shift_table_, table.Reshape(Shape({4 * in})));
  }
  return block;
}

absl::StatusOr<Tensor> ResnetBlock::Convolve(const Norm& norm, const CausalConv3d& conv, Tensor x,
                                             const Tensor& vectors, int64_t half, Tensor residual,
                                             const BlockContext& context) const {
  Device& device = *context.device;
  NormConvOptions around;
  if (vectors.defined()) {
    const int64_t channels = x.dim(-1);
    LTX_ASSIGN_OR_RETURN(x, norm.Forward(device, x));
    LTX_ASSIGN_OR_RETURN(
        x, ModulateVolume(device, x, vectors,
                          /*shift_offset=*/2 * half * channels,
                          /*scale_offset=*/(2 * half + 1) * channels, Activation::kSilu));
  } else {
    around.norm = norm.BeforeConv(Activation::kSilu);
    if (!around.norm) {
      LTX_ASSIGN_OR_RETURN(x, norm.Forward(device, x, Activation::kSilu));
    }
  }
  if (residual.defined() && !residual.is_shared()) around.into = residual;
  return conv.Forward(device, std::move(x), context.causal, around, std::move(residual));
}

absl::StatusOr<Tensor> ResnetBlock::InjectNoise(const Tensor& x, const Tensor& channel_scale,
                                                const BlockContext& context) const {
  if (!options_.inject_noise) return x;
  if (context.noise == nullptr || !*context.noise) {
    return absl::InvalidArgumentError(
        "video VAE: a block with inject_noise needs a noise source, got none");
  }
  LTX_ASSIGN_OR_RETURN(const Tensor draw, (*context.noise)(Shape({x.dim(2), x.dim(3)}), x.dtype()));
  return context.device->AddSpatialNoise(x, draw, channel_scale);
}

absl::StatusOr<Tensor> ResnetBlock::Forward(Tensor x, const BlockContext& context) const {
  return ForwardConditioned(std::move(x), Tensor(), context);
}

bool ResnetBlock::works_in_parts() const {
  return options_.norm_layer == checkpoint::VideoNorm::kPixelNorm && !options_.inject_noise &&
         !options_.timestep_conditioning && !shortcut_.defined();
}

absl::StatusOr<Tensor> ResnetBlock::ForwardConditioned(Tensor x, const Tensor& embedding,
                                                       const BlockContext& context) const {
  Device& device = *context.device;
  Tensor vectors;
  if (options_.timestep_conditioning) {
    if (!embedding.defined()) {
      return absl::InternalError("video VAE: a conditioned residual block was given no embedding");
    }
    LTX_ASSIGN_OR_RETURN(vectors, AddTable(device, embedding, scale_shift_table_));
  }
  LTX_ASSIGN_OR_RETURN(Tensor h, Convolve(norm1_, conv1_, x, vectors, 0, Tensor(), context));
  LTX_ASSIGN_OR_RETURN(h, InjectNoise(h, noise_scale1_, context));
  if (shortcut_.defined()) {
    LTX_ASSIGN_OR_RETURN(x, norm3_.Forward(device, x));
    LTX_ASSIGN_OR_RETURN(x, device.Conv(x, shortcut_, ConvOptions()));
  }
  // The skip rides in the convolution's epilogue; the noise is added to the sum, which is the same
  // sum in another order.
  LTX_ASSIGN_OR_RETURN(h,
                       Convolve(norm2_, conv2_, std::move(h), vectors, 1, std::move(x), context));
  return InjectNoise(h, noise_scale2_, context);
}

absl::Status ResnetParts::Advance(int64_t ready, const BlockContext& context) {
  const int64_t between_begin = second_.needed_from();
  const int64_t kept = between_.defined() ? between_.dim(1) : 0;
  const ConvPart first = first_.Next(ready);
  const ConvPart second = second_.Next(first_.Reach(ready) - lag_);
  if (first.frames() == 0 && second.frames() == 0) return absl::OkStatus();
  Device& device = *context.device;
  const auto around = [&](const Norm& norm, Tensor into) {
    NormConvOptions options;
    options.norm = norm.BeforeConv(Activation::kSilu);
    options.into = std::move(into);
    return options;
  };
  if (first.frames() > 0) {
    LTX_ASSIGN_OR_RETURN(Tensor x, x_->Frames(first.read_begin, first.read_end));
    LTX_ASSIGN_OR_RETURN(FrameWindow between,
                         FrameWindow::Create(device, Shape(x.shape().dims().subspan(2)), x.dtype(),
                                             kept + first.frames(), between_begin));
    if (kept > 0) {
      LTX_ASSIGN_OR_RETURN(Tensor front, between.Append(device, kept, between_begin));
      LTX_RETURN_IF_ERROR(device.Copy(between_, &front));
    }
    LTX_ASSIGN_OR_RETURN(Tensor into, between.Append(device, first.frames(), between_begin));
    LTX_RETURN_IF_ERROR(block_->conv1_
                            .Forward(device, std::move(x), context.causal,
                                     around(block_->norm1_, std::move(into)), Tensor(), first.ends)
                            .status());
    LTX_ASSIGN_OR_RETURN(between_, between.Frames(between_begin, between.end()));
  }
  if (second.frames() > 0) {
    LTX_ASSIGN_OR_RETURN(Tensor h, FramesOf(between_, second.read_begin - between_begin,
                                            second.read_end - between_begin));
    LTX_ASSIGN_OR_RETURN(const Tensor skip, x_->Frames(second.begin, second.end));
    LTX_RETURN_IF_ERROR(block_->conv2_
                            .Forward(device, std::move(h), context.causal,
                                     around(block_->norm2_, skip), skip, second.ends)
                            .status());
  }
  if (second_.finished()) {
    between_ = Tensor();
  } else if (between_.defined()) {
    LTX_ASSIGN_OR_RETURN(
        between_,
        device.Slice(between_, /*axis=*/1, second_.needed_from() - between_begin, between_.dim(1)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ResnetStack>> ResnetStack::Load(
    const checkpoint::WeightLoader& loader, const ResnetBlockOptions& options, int64_t layers) {
  if (options.in_channels != options.out_channels) {
    return absl::InternalError("video VAE: a stack of residual blocks keeps its width");
  }
  std::unique_ptr<ResnetStack> stack(new ResnetStack());
  stack->conditioned_ = options.timestep_conditioning;
  if (stack->conditioned_) {
    LTX_ASSIGN_OR_RETURN(stack->embedder_,
                         TimestepEmbedder::Load(loader.Sub("time_embedder.timestep_embedder."),
                                                4 * options.in_channels));
  }
  for (int64_t layer = 0; layer < layers; ++layer) {
    LTX_ASSIGN_OR_RETURN(
        auto block,
        ResnetBlock::Load(loader.Sub(absl::StrCat("res_blocks.", layer, ".")), options));
    stack->blocks_.push_back(std::move(block));
  }
  return stack;
}

absl::StatusOr<Tensor> ResnetStack::Forward(Tensor x, const BlockContext& context) const {
  Tensor embedding;
  if (conditioned_) {
    LTX_ASSIGN_OR_RETURN(embedding, embedder_.Forward(*context.device, context.timestep));
  }
  for (const auto& block : blocks_) {
    LTX_ASSIGN_OR_RETURN(x, block->ForwardConditioned(std::move(x), embedding, context));
  }
  return x;
}

}  // namespace ltx::video_vae
