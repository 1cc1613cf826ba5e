#include "engine/video_vae/conv_decoder.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/video_vae/attention_block.h"
#include "engine/video_vae/patchify.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::video_vae {
namespace {

using checkpoint::VideoBlock;
using checkpoint::VideoBlockKind;

/// Share of noise that a conditioned decoder mixes into the latent (decode_noise_scale of the
/// reference).
constexpr float kLatentNoiseScale = 0.025f;

std::array<int, 3> UpsampleStride(VideoBlockKind kind) {
  switch (kind) {
    case VideoBlockKind::kCompressSpace:
      return {1, 2, 2};
    case VideoBlockKind::kCompressTime:
      return {2, 1, 1};
    default:
      return {2, 2, 2};
  }
}

absl::StatusOr<int64_t> DivideWidth(int64_t width, const VideoBlock& block) {
  if (block.multiplier < 1 || width % block.multiplier != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "vae.decoder_blocks: multiplier ", block.multiplier, " of ",
        checkpoint::VideoBlockName(block.kind), " does not divide its ", width, " input channels"));
  }
  return width / block.multiplier;
}

/// Reads the block from `loader`; `*width` goes from its input's channels to its result's.
absl::StatusOr<std::unique_ptr<Block>> LoadBlock(const checkpoint::VideoDecoderConfig& config,
                                                 const VideoBlock& block,
                                                 const checkpoint::WeightLoader& loader,
                                                 int64_t* width) {
  const int64_t in = *width;
  ResnetBlockOptions resnet;
  resnet.in_channels = in;
  resnet.out_channels = in;
  resnet.norm_layer = config.norm;
  resnet.inject_noise = block.inject_noise;
  resnet.timestep_conditioning = config.timestep_conditioning;
  resnet.spatial_padding = ToPadMode(config.spatial_padding);

  switch (block.kind) {
    case VideoBlockKind::kResX:
      return ResnetStack::Load(loader, resnet, block.num_layers);
    case VideoBlockKind::kResXY: {
      LTX_ASSIGN_OR_RETURN(*width, DivideWidth(in, block));
      resnet.out_channels = *width;
      resnet.timestep_conditioning = false;
      return ResnetBlock::Load(loader, resnet);
    }
    case VideoBlockKind::kAttn:
      return AttentionBlock::Load(loader, in);
    case VideoBlockKind::kCompressSpace:
    case VideoBlockKind::kCompressTime:
    case VideoBlockKind::kCompressAll: {
      LTX_ASSIGN_OR_RETURN(*width, DivideWidth(in, block));
      UpsampleBlockOptions upsample;
      upsample.in_channels = in;
      upsample.stride = UpsampleStride(block.kind);
      upsample.reduction = block.multiplier;
      upsample.residual = block.residual;
      upsample.spatial_padding = ToPadMode(config.spatial_padding);
      return UpsampleBlock::Load(loader, upsample);
    }
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("vae.decoder_blocks: ", checkpoint::VideoBlockName(block.kind),
                       " is a block of the encoder"));
  }
}

/// A GPU does 132 tiles of 256 positions at a time; of this many positions the last round, which
/// not all of its processors share, is a small part, and so are the frames that a part keeps for
/// the next one. Half as many cost 1.5 % of a decode.
constexpr int64_t kPartPositionsOfGpu = int64_t{1} << 20;
/// A CPU's threads share any number; of this many an operation outweighs what starting it costs.
constexpr int64_t kPartPositionsOfCpu = int64_t{1} << 16;

}  // namespace

DecodeParts DecodeParts::For(const Device& device) {
  return {device.properties().is_gpu ? kPartPositionsOfGpu : kPartPositionsOfCpu};
}

absl::StatusOr<std::unique_ptr<ConvDecoder>> ConvDecoder::Load(
    const checkpoint::VideoDecoderConfig& config, const checkpoint::WeightLoader& loader,
    std::optional<DecodeParts> parts) {
  // One-file checkpoints keep the VAE below "vae.", split files have it bare.
  const checkpoint::WeightLoader root =
      loader.Has("vae.decoder.conv_in.conv.weight") ? loader.Sub("vae.") : loader;
  checkpoint::WeightLoader decoder = root.Sub("decoder.");
  const int64_t patch_area = config.patch_size * config.patch_size;

  std::unique_ptr<ConvDecoder> net(
      new ConvDecoder(&loader.device(), config, loader.compute_dtype(),
                      parts.value_or(DecodeParts::For(loader.device()))));
  net->factors_.spatial = config.spatial_factor();
  net->factors_.temporal = config.temporal_factor();
  LTX_ASSIGN_OR_RETURN(
      net->statistics_,
      ChannelStatistics::Load(root.Sub("per_channel_statistics."), config.latent_channels));
  CausalConv3dOptions conv;
  conv.spatial_padding = ToPadMode(config.spatial_padding);
  int64_t width = config.bottleneck_channels();
  LTX_ASSIGN_OR_RETURN(net->conv_in_, CausalConv3d::Load(decoder, "conv_in.conv",
                                                         config.latent_channels, width, conv));
  if (config.timestep_conditioning && !decoder.Has("timestep_scale_multiplier")) {
    return absl::NotFoundError(
        "vae.timestep_conditioning is true, or absent, which means true: then the decoder needs "
        "the tensor decoder.timestep_scale_multiplier and time embedders, which the file lacks");
  }
  LTX_RETURN_IF_ERROR(net->LoadBlocks(decoder, &width));
  LTX_ASSIGN_OR_RETURN(net->norm_out_, Norm::Load(config.norm, decoder, "conv_norm_out", width,
                                                  kNormGroups, kGroupNormEpsilon));
  LTX_ASSIGN_OR_RETURN(net->conv_out_, CausalConv3d::Load(decoder, "conv_out.conv", width,
                                                          config.out_channels * patch_area, conv));
  if (config.timestep_conditioning) LTX_RETURN_IF_ERROR(net->LoadConditioning(decoder, width));

  checkpoint::WeightLoader rest = root;
  rest.Ignore("encoder.*");
  LTX_RETURN_IF_ERROR(rest.CheckAllConsumed());
  return net;
}

absl::Status ConvDecoder::LoadBlocks(const checkpoint::WeightLoader& decoder, int64_t* width) {
  const std::vector<VideoBlock>& list = config_.blocks;
  for (size_t i = 0; i < list.size(); ++i) {
    LTX_ASSIGN_OR_RETURN(std::unique_ptr<Block> block,
                         LoadBlock(config_, list[list.size() - 1 - i],
                                   decoder.Sub(absl::StrCat("up_blocks.", i, ".")), width));
    blocks_.push_back(std::move(block));
  }
  FindLastLevel();
  return absl::OkStatus();
}

void ConvDecoder::FindLastLevel() {
  if (config_.norm != checkpoint::VideoNorm::kPixelNorm || config_.timestep_conditioning) return;
  // The config's list begins at the pixels.
  std::vector<const ResnetBlock*> level;
  for (size_t i = 0; i < config_.blocks.size(); ++i) {
    const VideoBlockKind kind = config_.blocks[i].kind;
    const size_t index = blocks_.size() - 1 - i;
    if (kind == VideoBlockKind::kCompressSpace || kind == VideoBlockKind::kCompressAll) {
      growth_ = static_cast<const UpsampleBlock*>(blocks_[index].get());
      growth_index_ = index;
      last_level_ = std::move(level);
      return;
    }
    if (kind != VideoBlockKind::kResX) return;
    const auto& stack = static_cast<const ResnetStack&>(*blocks_[index]);
    std::vector<const ResnetBlock*> earlier;
    for (const auto& block : stack.blocks()) {
      if (!block->works_in_parts()) return;
      earlier.push_back(block.get());
    }
    level.insert(level.begin(), earlier.begin(), earlier.end());
  }
}

absl::Status ConvDecoder::LoadConditioning(checkpoint::WeightLoader& decoder, int64_t width) {
  LTX_ASSIGN_OR_RETURN(const std::vector<float> multiplier,
                       decoder.GetHost("timestep_scale_multiplier", Shape()));
  timestep_scale_ = multiplier[0];
  LTX_ASSIGN_OR_RETURN(
      last_embedder_,
      TimestepEmbedder::Load(decoder.Sub("last_time_embedder.timestep_embedder."), 2 * width));
  LTX_ASSIGN_OR_RETURN(const Tensor table,
                       decoder.Get("last_scale_shift_table", Shape({2, width})));
  LTX_ASSIGN_OR_RETURN(last_table_, table.Reshape(Shape({2 * width})));
  return absl::OkStatus();
}

absl::Status ConvDecoder::CheckLatent(const Tensor& latent) const {
  if (latent.rank() != 5 || latent.dim(4) != config_.latent_channels ||
      latent.num_elements() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("video VAE: latent must be [B, F, H, W, ", config_.latent_channels,
                     "] without an empty axis, got ", latent.shape().ToString()));
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> ConvDecoder::AddLatentNoise(const Tensor& latent,
                                                   const NoiseSource& noise) const {
  if (!noise) {
    return absl::InvalidArgumentError(
        "video VAE: a timestep-conditioned decoder needs a noise source, got none");
  }
  LTX_ASSIGN_OR_RETURN(
      const Tensor draw,
      noise(Shape({latent.dim(0), latent.dim(4), latent.dim(1), latent.dim(2), latent.dim(3)}),
            dtype_));
  LTX_ASSIGN_OR_RETURN(const Tensor channels_last, device_->Permute(draw, {0, 2, 3, 4, 1}));
  return device_->LinearCombination(kLatentNoiseScale, channels_last, 1.0f - kLatentNoiseScale,
                                    latent, 0.0f, Tensor());
}

absl::StatusOr<Tensor> ConvDecoder::Begin(const Tensor& latent,
                                          const ConvDecodeOptions& options) const {
  Device& device = *device_;
  LTX_ASSIGN_OR_RETURN(Tensor x, device.Cast(latent, dtype_));
  if (config_.timestep_conditioning) {
    LTX_ASSIGN_OR_RETURN(x, AddLatentNoise(x, options.noise));
  }
  LTX_ASSIGN_OR_RETURN(x, statistics_.UnNormalize(device, x));
  return conv_in_.Forward(device, std::move(x), config_.causal);
}

absl::StatusOr<Tensor> ConvDecoder::Finish(Tensor x, float scaled_timestep,
                                           const ClipEnds& ends) const {
  Device& device = *device_;
  NormConvOptions around;
  if (config_.timestep_conditioning) {
    const int64_t channels = x.dim(-1);
    LTX_ASSIGN_OR_RETURN(x, norm_out_.Forward(device, x));
    LTX_ASSIGN_OR_RETURN(const Tensor embedding, last_embedder_.Forward(device, scaled_timestep));
    LTX_ASSIGN_OR_RETURN(const Tensor vectors, AddTable(device, embedding, last_table_));
    LTX_ASSIGN_OR_RETURN(x, ModulateVolume(device, x, vectors, /*shift_offset=*/0,
                                           /*scale_offset=*/channels, Activation::kSilu));
  } else {
    around.norm = norm_out_.BeforeConv(Activation::kSilu);
    if (!around.norm) {
      LTX_ASSIGN_OR_RETURN(x, norm_out_.Forward(device, x, Activation::kSilu));
    }
  }
  LTX_ASSIGN_OR_RETURN(
      x, conv_out_.Forward(device, std::move(x), config_.causal, around, Tensor(), ends));
  return Unpatchify(device, x, config_.patch_size);
}

BlockContext ConvDecoder::Context(const ConvDecodeOptions& options) const {
  BlockContext context;
  context.device = device_;
  context.causal = config_.causal;
  context.timestep = options.timestep * timestep_scale_;
  context.noise = &options.noise;
  return context;
}

absl::StatusOr<Tensor> ConvDecoder::Decode(const Tensor& latent,
                                           const ConvDecodeOptions& options) const {
  LTX_RETURN_IF_ERROR(CheckLatent(latent));
  const BlockContext context = Context(options);
  LTX_ASSIGN_OR_RETURN(Tensor x, Begin(latent, options));
  if (options.observer) options.observer("conv_in", x);
  for (size_t i = 0; i < blocks_.size(); ++i) {
    LTX_ASSIGN_OR_RETURN(x, blocks_[i]->Forward(std::move(x), context));
    if (options.observer) options.observer(absl::StrCat("up_blocks.", i), x);
  }
  return Finish(std::move(x), context.timestep, {});
}

absl::StatusOr<Tensor> ToFrames(Device& device, const Tensor& video) {
  LTX_ASSIGN_OR_RETURN(Tensor x, device.Cast(video, DType::kF32));
  const std::vector<float> halves(video.dim(-1), 0.5f);
  LTX_ASSIGN_OR_RETURN(const Tensor half, TensorFromFloats(device, halves, Shape({video.dim(-1)})));
  LTX_ASSIGN_OR_RETURN(x, device.ScaleShiftChannels(x, half, half));
  return device.Clamp(x, 0.0f, 1.0f);
}

}  // namespace ltx::video_vae
