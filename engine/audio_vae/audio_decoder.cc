#include "engine/audio_vae/audio_decoder.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "engine/audio_vae/latent_grid.h"
#include "kernels/status_macros.h"

namespace ltx::audio_vae {

using checkpoint::AudioNorm;
using checkpoint::AudioVaeConfig;
using checkpoint::CausalityAxis;
using checkpoint::WeightLoader;

namespace {

absl::Status CheckConfig(const AudioVaeConfig& config) {
  if (config.ch_mult.empty()) {
    return absl::FailedPreconditionError("audio_vae ddconfig.ch_mult is empty; needs a level");
  }
  if (config.z_channels < 1 || config.ch % config.z_channels != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "audio_vae ddconfig.z_channels = ", config.z_channels,
        "; must divide ddconfig.ch = ", config.ch, ", the length of the per-channel statistics"));
  }
  if (config.norm_type == AudioNorm::kGroup && config.causality_axis != CausalityAxis::kNone) {
    return absl::FailedPreconditionError(
        "audio_vae ddconfig.norm_type = group with a causal ddconfig.causality_axis; group norm "
        "looks at the whole clip and needs causality_axis = null");
  }
  return absl::OkStatus();
}

/// The decoder counts its level resolutions upwards from the coarsest one.
bool HasAttention(const AudioVaeConfig& config, int64_t level) {
  const int64_t top = static_cast<int64_t>(config.ch_mult.size()) - 1;
  const int64_t resolution = (config.resolution >> top) << (top - level);
  return std::find(config.attn_resolutions.begin(), config.attn_resolutions.end(), resolution) !=
         config.attn_resolutions.end();
}

}  // namespace

absl::StatusOr<AudioDecoder::Level> AudioDecoder::LoadLevel(WeightLoader loader,
                                                            const AudioVaeConfig& config,
                                                            int64_t level, int64_t in_channels) {
  const int64_t channels = config.ch * config.ch_mult[level];
  const bool attention = HasAttention(config, level);
  Level loaded;
  // One block more per level than the encoder has.
  for (int64_t r = 0; r <= config.num_res_blocks; ++r) {
    LTX_ASSIGN_OR_RETURN(ResnetBlock block,
                         ResnetBlock::Load(loader.Sub(absl::StrCat("block.", r, ".")),
                                           r == 0 ? in_channels : channels, channels,
                                           config.norm_type, config.causality_axis));
    loaded.blocks.push_back(std::move(block));
    if (!attention) continue;
    LTX_ASSIGN_OR_RETURN(AttentionBlock block_attention,
                         AttentionBlock::Load(loader.Sub(absl::StrCat("attn.", r, ".")), channels,
                                              config.norm_type));
    loaded.attentions.push_back(std::move(block_attention));
  }
  if (level > 0) {
    LTX_ASSIGN_OR_RETURN(loaded.upsample,
                         Upsample::Load(loader.Sub("upsample."), channels, config.causality_axis));
  }
  return loaded;
}

absl::StatusOr<AudioDecoder> AudioDecoder::Load(WeightLoader loader, const AudioVaeConfig& config) {
  LTX_RETURN_IF_ERROR(CheckConfig(config));
  const AudioNorm norm = config.norm_type;
  const CausalityAxis axis = config.causality_axis;
  WeightLoader vae = loader.Sub("audio_vae.");
  WeightLoader weights = vae.Sub("decoder.");
  AudioDecoder decoder;
  decoder.config_ = config;
  decoder.dtype_ = loader.compute_dtype();
  LTX_ASSIGN_OR_RETURN(decoder.statistics_, AudioStatistics::Load(vae, config.ch));

  int64_t channels = config.ch * config.ch_mult.back();
  LTX_ASSIGN_OR_RETURN(decoder.conv_in_, CausalConv2d::Load(weights, "conv_in", config.z_channels,
                                                            channels, 3, axis));
  LTX_ASSIGN_OR_RETURN(decoder.mid_, MidBlock::Load(weights.Sub("mid."), channels, norm, axis,
                                                    config.mid_block_add_attention));
  decoder.levels_.resize(config.ch_mult.size());
  for (int64_t level = static_cast<int64_t>(config.ch_mult.size()) - 1; level >= 0; --level) {
    LTX_ASSIGN_OR_RETURN(
        decoder.levels_[level],
        LoadLevel(weights.Sub(absl::StrCat("up.", level, ".")), config, level, channels));
    channels = config.ch * config.ch_mult[level];
  }
  LTX_ASSIGN_OR_RETURN(decoder.norm_out_, Normalization::Load(weights, "norm_out", channels, norm));
  LTX_ASSIGN_OR_RETURN(decoder.conv_out_,
                       CausalConv2d::Load(weights, "conv_out", channels, config.out_ch, 3, axis));
  vae.Ignore("encoder.*");
  LTX_RETURN_IF_ERROR(vae.CheckAllConsumed());
  return decoder;
}

int64_t AudioDecoder::OutputFrames(int64_t latent_frames) const {
  return LatentGrid::MelFrames(latent_frames, config_.causality_axis != CausalityAxis::kNone);
}

absl::StatusOr<Tensor> AudioDecoder::RunLevel(Device& device, const Level& level,
                                              const Tensor& x) const {
  Tensor h = x;
  for (size_t r = 0; r < level.blocks.size(); ++r) {
    LTX_ASSIGN_OR_RETURN(h, level.blocks[r].Forward(device, h));
    if (level.attentions.empty()) continue;
    LTX_ASSIGN_OR_RETURN(h, level.attentions[r].Forward(device, h));
  }
  if (!level.upsample.has_value()) return h;
  return level.upsample->Forward(device, h);
}

absl::StatusOr<Tensor> AudioDecoder::FitToTarget(Device& device, const Tensor& x, int64_t frames,
                                                 int64_t bins) const {
  Tensor h = x;
  const std::array<int64_t, 2> target{frames, bins};
  for (int i = 0; i < 2; ++i) {
    const int axis = i + 1;
    if (h.dim(axis) > target[i]) {
      LTX_ASSIGN_OR_RETURN(h, device.Slice(h, axis, 0, target[i]));
    } else if (h.dim(axis) < target[i]) {
      LTX_ASSIGN_OR_RETURN(h, device.Pad(h, axis, 0, target[i] - h.dim(axis), PadMode::kZeros));
    }
  }
  return h;
}

absl::StatusOr<Tensor> AudioDecoder::Forward(Device& device, const Tensor& tokens,
                                             const StageObserver& observer) const {
  if (tokens.rank() != 3 || tokens.dim(1) < 1 || tokens.dim(2) != token_values()) {
    return absl::InvalidArgumentError(absl::StrCat("audio latent ", tokens.shape().ToString(),
                                                   "; must be [B, L, ", token_values(),
                                                   "] with L >= 1 latent frames"));
  }
  const int64_t batch = tokens.dim(0);
  const int64_t frames = tokens.dim(1);
  const int64_t bins = token_values() / config_.z_channels;
  LTX_ASSIGN_OR_RETURN(Tensor h, statistics_.Denormalize(device, tokens));
  LTX_ASSIGN_OR_RETURN(h, h.Reshape(Shape({batch, frames, config_.z_channels, bins})));
  LTX_ASSIGN_OR_RETURN(h, device.Permute(h, {0, 1, 3, 2}));
  if (observer) observer("denormalized", h);
  LTX_ASSIGN_OR_RETURN(h, conv_in_.Forward(device, h));
  if (observer) observer("conv_in", h);
  LTX_ASSIGN_OR_RETURN(h, mid_.Forward(device, h));
  if (observer) observer("mid", h);
  for (int64_t level = static_cast<int64_t>(levels_.size()) - 1; level >= 0; --level) {
    LTX_ASSIGN_OR_RETURN(h, RunLevel(device, levels_[level], h));
    if (observer) observer(absl::StrCat("up_", level), h);
  }
  LTX_ASSIGN_OR_RETURN(h, norm_out_.Forward(device, h, Activation::kSilu));
  LTX_ASSIGN_OR_RETURN(h, conv_out_.Forward(device, h));
  return FitToTarget(device, h, OutputFrames(frames), config_.mel_bins.value_or(bins));
}

}  // namespace ltx::audio_vae
