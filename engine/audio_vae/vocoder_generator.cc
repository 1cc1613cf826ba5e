#include "engine/audio_vae/vocoder_generator.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace ltx::audio_vae {

using checkpoint::GeneratorConfig;
using ResBlock = checkpoint::GeneratorConfig::ResBlock;

namespace {

/// PyTorch's default slope, which the reference's HiFi-GAN inherits for its last activation only.
constexpr float kFinalLeakySlope = 0.01f;
/// Kernel of conv_pre and conv_post.
constexpr int64_t kEndKernel = 7;

absl::Status CheckConfig(const GeneratorConfig& config) {
  const size_t stages = config.upsample_rates.size();
  if (stages == 0 || config.upsample_kernel_sizes.size() != stages) {
    return absl::FailedPreconditionError(absl::StrCat(
        "vocoder upsample_rates has ", stages, " entries and upsample_kernel_sizes ",
        config.upsample_kernel_sizes.size(), "; both need the same number, at least 1"));
  }
  const size_t kernels = config.resblock_kernel_sizes.size();
  if (kernels == 0 || config.resblock_dilation_sizes.size() != kernels) {
    return absl::FailedPreconditionError(absl::StrCat(
        "vocoder resblock_kernel_sizes has ", kernels, " entries and resblock_dilation_sizes ",
        config.resblock_dilation_sizes.size(), "; both need the same number, at least 1"));
  }
  // Every stage halves the channels; 63 is where the shift itself would end.
  if (stages >= 63 || (config.upsample_initial_channel >> stages) < 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("vocoder upsample_initial_channel = ", config.upsample_initial_channel,
                     "; must be at least 2^", stages, ", a halving per up-sampling stage"));
  }
  return absl::OkStatus();
}

/// The mean of `parts` in as few passes as the three-operand sum allows.
absl::StatusOr<Tensor> Mean(Device& device, const std::vector<Tensor>& parts) {
  if (parts.size() == 1) return parts[0];
  const float weight = 1.0f / static_cast<float>(parts.size());
  const auto part = [&parts](size_t i) { return i < parts.size() ? parts[i] : Tensor(); };
  LTX_ASSIGN_OR_RETURN(
      Tensor mean, device.LinearCombination(weight, parts[0], weight, parts[1], weight, part(2)));
  for (size_t i = 3; i < parts.size(); i += 2) {
    LTX_ASSIGN_OR_RETURN(
        mean, device.LinearCombination(1.0f, mean, weight, parts[i], weight, part(i + 1)));
  }
  return mean;
}

}  // namespace

absl::StatusOr<VocoderGenerator> VocoderGenerator::Load(checkpoint::WeightLoader loader,
                                                        const GeneratorConfig& config) {
  LTX_RETURN_IF_ERROR(CheckConfig(config));
  VocoderGenerator generator;
  generator.config_ = config;
  const bool amp = config.resblock == ResBlock::kAmp1;
  generator.dtype_ = amp ? DType::kF32 : loader.compute_dtype();

  int64_t channels = config.upsample_initial_channel;
  Conv1d::Options ends;
  ends.kernel = kEndKernel;
  ends.dtype = generator.dtype_;
  LTX_ASSIGN_OR_RETURN(generator.conv_pre_,
                       Conv1d::Load(loader, "conv_pre", kInputChannels, channels, ends));

  const size_t kernels = config.resblock_kernel_sizes.size();
  for (size_t i = 0; i < config.upsample_rates.size(); ++i) {
    Stage stage;
    stage.rate = config.upsample_rates[i];
    stage.kernel = config.upsample_kernel_sizes[i];
    const int64_t halved = channels / 2;
    LTX_ASSIGN_OR_RETURN(stage.upsample,
                         ConvTranspose1d::Load(loader, absl::StrCat("ups.", i), channels, halved,
                                               stage.kernel, stage.rate, generator.dtype_));
    channels = halved;
    for (size_t j = 0; j < kernels; ++j) {
      LTX_ASSIGN_OR_RETURN(
          VocoderBlock block,
          VocoderBlock::Load(loader.Sub(absl::StrCat("resblocks.", i * kernels + j, ".")),
                             config.resblock, channels, config.resblock_kernel_sizes[j],
                             config.resblock_dilation_sizes[j], generator.dtype_));
      stage.blocks.push_back(std::move(block));
    }
    generator.stages_.push_back(std::move(stage));
  }

  if (amp) {
    LTX_ASSIGN_OR_RETURN(generator.final_snake_,
                         AntiAliasedActivation::Load(loader.Sub("act_post."), channels));
  }
  ends.bias = config.use_bias_at_final;
  LTX_ASSIGN_OR_RETURN(generator.conv_post_,
                       Conv1d::Load(loader, "conv_post", channels, kOutputChannels, ends));
  return generator;
}

int64_t VocoderGenerator::OutputLength(int64_t frames) const {
  int64_t length = frames;
  for (const Stage& stage : stages_) {
    length = ConvTranspose1d::OutputLength(length, stage.kernel, stage.rate);
  }
  return length;
}

absl::StatusOr<Tensor> VocoderGenerator::RunBlocks(Device& device, const Stage& stage,
                                                   const Tensor& x,
                                                   const StageObserver& observer) const {
  std::vector<Tensor> outputs;
  outputs.reserve(stage.blocks.size());
  for (const VocoderBlock& block : stage.blocks) {
    LTX_ASSIGN_OR_RETURN(Tensor output, block.Forward(device, x));
    if (observer && outputs.empty()) observer("resblock_0", output);
    outputs.push_back(std::move(output));
  }
  return Mean(device, outputs);
}

absl::StatusOr<Tensor> VocoderGenerator::Forward(Device& device, const Tensor& mel,
                                                 const StageObserver& observer) const {
  if (mel.rank() != 3 || mel.dim(2) != kInputChannels) {
    return absl::InvalidArgumentError(absl::StrCat("vocoder input ", mel.shape().ToString(),
                                                   "; must be [B, T, ", kInputChannels, "]"));
  }
  const bool amp = config_.resblock == ResBlock::kAmp1;
  LTX_ASSIGN_OR_RETURN(Tensor x, conv_pre_.Forward(device, mel));
  if (observer) observer("conv_pre", x);
  for (size_t i = 0; i < stages_.size(); ++i) {
    if (!amp) {
      LTX_ASSIGN_OR_RETURN(x, device.LeakyRelu(x, VocoderBlock::kLeakySlope));
    }
    LTX_ASSIGN_OR_RETURN(x, stages_[i].upsample.Forward(device, x));
    const bool observed = observer && i == 0;
    if (observed) observer("ups_0", x);
    LTX_ASSIGN_OR_RETURN(x,
                         RunBlocks(device, stages_[i], x, observed ? observer : StageObserver()));
  }
  if (amp) {
    LTX_ASSIGN_OR_RETURN(x, final_snake_->Forward(device, x));
  } else {
    LTX_ASSIGN_OR_RETURN(x, device.LeakyRelu(x, kFinalLeakySlope));
  }
  LTX_ASSIGN_OR_RETURN(x, conv_post_.Forward(device, x));
  if (observer) observer("conv_post", x);
  if (!config_.apply_final_activation) return x;
  if (config_.use_tanh_at_final) return device.Apply(x, Activation::kTanh);
  return device.Clamp(x, -1.0f, 1.0f);
}

}  // namespace ltx::audio_vae
