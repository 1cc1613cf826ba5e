#include "engine/audio_vae/vocoder_block.h"

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace ltx::audio_vae {

using ResBlock = checkpoint::GeneratorConfig::ResBlock;

namespace {

absl::StatusOr<Tensor> Activate(Device& device, const std::optional<AntiAliasedActivation>& snake,
                                const Tensor& x) {
  if (snake.has_value()) return snake->Forward(device, x);
  return device.LeakyRelu(x, VocoderBlock::kLeakySlope);
}

}  // namespace

absl::StatusOr<VocoderBlock> VocoderBlock::Load(checkpoint::WeightLoader loader, ResBlock form,
                                                int64_t channels, int64_t kernel,
                                                absl::Span<const int64_t> dilations, DType dtype) {
  if (dilations.size() != kSteps) {
    return absl::FailedPreconditionError(
        absl::StrCat("vocoder resblock_dilation_sizes: ", dilations.size(),
                     " dilations for a block; must be ", kSteps));
  }
  VocoderBlock block;
  for (int i = 0; i < kSteps; ++i) {
    // The reference pads half the reach on both sides here, so an odd reach would lose a sample.
    if (form == ResBlock::kAmp1 && (dilations[i] * (kernel - 1) % 2 != 0 || kernel % 2 == 0)) {
      return absl::FailedPreconditionError(absl::StrCat("vocoder resblock_kernel_sizes: ", kernel,
                                                        "; AMP1 blocks need an odd kernel"));
    }
    Step& step = block.steps_[i];
    Conv1d::Options options;
    options.kernel = kernel;
    options.dtype = dtype;
    LTX_ASSIGN_OR_RETURN(
        step.conv2, Conv1d::Load(loader, absl::StrCat("convs2.", i), channels, channels, options));
    options.dilation = dilations[i];
    LTX_ASSIGN_OR_RETURN(
        step.conv1, Conv1d::Load(loader, absl::StrCat("convs1.", i), channels, channels, options));
    if (form == ResBlock::kHifiGan) continue;
    LTX_ASSIGN_OR_RETURN(
        step.activation1,
        AntiAliasedActivation::Load(loader.Sub(absl::StrCat("acts1.", i, ".")), channels));
    LTX_ASSIGN_OR_RETURN(
        step.activation2,
        AntiAliasedActivation::Load(loader.Sub(absl::StrCat("acts2.", i, ".")), channels));
  }
  return block;
}

absl::StatusOr<Tensor> VocoderBlock::Forward(Device& device, const Tensor& x) const {
  Tensor sum = x;
  for (const Step& step : steps_) {
    LTX_ASSIGN_OR_RETURN(Tensor h, Activate(device, step.activation1, sum));
    LTX_ASSIGN_OR_RETURN(h, step.conv1.Forward(device, h));
    LTX_ASSIGN_OR_RETURN(h, Activate(device, step.activation2, h));
    LTX_ASSIGN_OR_RETURN(sum, step.conv2.Forward(device, h, sum));
  }
  return sum;
}

}  // namespace ltx::audio_vae
