#include "engine/upsampler/latent_upsampler.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace ltx::upsampler {
namespace {

absl::StatusOr<std::vector<ResBlock>> LoadBlocks(const checkpoint::WeightLoader& loader,
                                                 absl::string_view name,
                                                 const checkpoint::UpsamplerConfig& config) {
  std::vector<ResBlock> blocks;
  for (int64_t i = 0; i < config.num_blocks_per_stage; ++i) {
    LTX_ASSIGN_OR_RETURN(ResBlock block, ResBlock::Load(loader.Sub(absl::StrCat(name, ".", i, ".")),
                                                        config.mid_channels, config.dims));
    blocks.push_back(std::move(block));
  }
  return blocks;
}

absl::Status CheckLatent(const Tensor& latent, int64_t channels) {
  if (latent.rank() != 5 || latent.dim(4) != channels || latent.num_elements() == 0) {
    return absl::InvalidArgumentError(absl::StrCat("latent upsampler: latent must be [B, F, H, W, ",
                                                   channels, "] without an empty axis, got ",
                                                   latent.shape().ToString()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<LatentUpsampler>> LatentUpsampler::Load(
    const checkpoint::UpsamplerConfig& config, checkpoint::WeightLoader loader) {
  std::unique_ptr<LatentUpsampler> net(
      new LatentUpsampler(&loader.device(), config, loader.compute_dtype()));
  const int64_t width = config.mid_channels;
  LTX_ASSIGN_OR_RETURN(net->initial_conv_, PlainConv::Load(loader, "initial_conv",
                                                           config.in_channels, width, config.dims));
  LTX_ASSIGN_OR_RETURN(net->initial_norm_, UpsamplerNorm::Load(loader, "initial_norm", width));
  LTX_ASSIGN_OR_RETURN(net->blocks_, LoadBlocks(loader, "res_blocks", config));
  LTX_ASSIGN_OR_RETURN(net->resampler_, LoadResampler(config, loader.Sub("upsampler.")));
  LTX_ASSIGN_OR_RETURN(net->post_blocks_, LoadBlocks(loader, "post_upsample_res_blocks", config));
  LTX_ASSIGN_OR_RETURN(net->final_conv_, PlainConv::Load(loader, "final_conv", width,
                                                         config.in_channels, config.dims));
  LTX_RETURN_IF_ERROR(loader.CheckAllConsumed());
  return net;
}

absl::StatusOr<Tensor> LatentUpsampler::Forward(const Tensor& latent,
                                                const StageObserver& observer) const {
  LTX_RETURN_IF_ERROR(CheckLatent(latent, config_.in_channels));
  Device& device = *device_;
  const auto report = [&observer](absl::string_view stage, const Tensor& x) {
    if (observer) observer(stage, x);
  };
  const int64_t batch = latent.dim(0), frames = latent.dim(1);
  const bool folded = config_.dims == 2;
  LTX_ASSIGN_OR_RETURN(Tensor x, device.Cast(latent, dtype_));
  if (folded) {
    LTX_ASSIGN_OR_RETURN(
        x, x.Reshape(Shape({batch * frames, latent.dim(2), latent.dim(3), latent.dim(4)})));
  }
  LTX_ASSIGN_OR_RETURN(x, initial_conv_.Forward(device, x));
  LTX_ASSIGN_OR_RETURN(x, initial_norm_.Forward(device, x, Activation::kSilu));
  report("initial", x);
  for (const ResBlock& block : blocks_) {
    LTX_ASSIGN_OR_RETURN(x, block.Forward(device, x));
  }
  report("res_blocks", x);

  if (folded) {
    LTX_ASSIGN_OR_RETURN(x, x.Reshape(Shape({batch, frames, x.dim(1), x.dim(2), x.dim(3)})));
  }
  LTX_ASSIGN_OR_RETURN(x, resampler_->Forward(device, x, observer));
  if (folded) {
    LTX_ASSIGN_OR_RETURN(x, x.Reshape(Shape({batch * frames, x.dim(2), x.dim(3), x.dim(4)})));
  }

  for (const ResBlock& block : post_blocks_) {
    LTX_ASSIGN_OR_RETURN(x, block.Forward(device, x));
  }
  LTX_ASSIGN_OR_RETURN(x, final_conv_.Forward(device, x));
  if (folded) return x.Reshape(Shape({batch, frames, x.dim(1), x.dim(2), x.dim(3)}));
  return x;
}

absl::StatusOr<Tensor> LatentUpsampler::UpsampleNormalized(
    const Tensor& latent, const video_vae::ChannelStatistics& statistics,
    const StageObserver& observer) const {
  if (statistics.channels() != config_.in_channels) {
    return absl::InvalidArgumentError(absl::StrCat(
        "latent upsampler: in_channels is ", config_.in_channels,
        ", but the video VAE's per_channel_statistics have ", statistics.channels(), " channels"));
  }
  LTX_RETURN_IF_ERROR(CheckLatent(latent, config_.in_channels));
  LTX_ASSIGN_OR_RETURN(Tensor x, device_->Cast(latent, dtype_));
  LTX_ASSIGN_OR_RETURN(x, statistics.UnNormalize(*device_, x));
  LTX_ASSIGN_OR_RETURN(x, Forward(x, observer));
  return statistics.Normalize(*device_, x);
}

}  // namespace ltx::upsampler
