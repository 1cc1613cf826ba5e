#include "engine/audio_vae/bandwidth_extension.h"

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace ltx::audio_vae {
namespace {

using Config = checkpoint::VocoderConfig::BandwidthExtension;

absl::Status CheckConfig(const Config& config) {
  if (config.input_sampling_rate < 1 || config.output_sampling_rate < 1 ||
      config.output_sampling_rate % config.input_sampling_rate != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("vocoder bwe: output_sampling_rate = ", config.output_sampling_rate,
                     "; must be a multiple of input_sampling_rate = ", config.input_sampling_rate));
  }
  if (config.num_mels * VocoderGenerator::kOutputChannels != VocoderGenerator::kInputChannels) {
    return absl::FailedPreconditionError(
        absl::StrCat("vocoder bwe: num_mels = ", config.num_mels, "; must be ",
                     VocoderGenerator::kInputChannels / VocoderGenerator::kOutputChannels));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BandwidthExtension> BandwidthExtension::Load(checkpoint::WeightLoader loader,
                                                            const Config& config) {
  LTX_RETURN_IF_ERROR(CheckConfig(config));
  BandwidthExtension extension;
  extension.config_ = config;
  LTX_ASSIGN_OR_RETURN(extension.generator_,
                       VocoderGenerator::Load(loader.Sub("bwe_generator."), config.generator));
  LTX_ASSIGN_OR_RETURN(extension.mel_stft_, MelStft::Load(loader.Sub("mel_stft."), config.n_fft,
                                                          config.hop_length, config.num_mels));
  const int64_t ratio = config.output_sampling_rate / config.input_sampling_rate;
  // Lengths are affine in the frame count, so two of them settle all.
  for (const int64_t frames : {1, 2}) {
    const int64_t raised = frames * config.hop_length * ratio;
    const int64_t generated = extension.generator_.OutputLength(frames);
    if (generated != raised) {
      return absl::FailedPreconditionError(
          absl::StrCat("vocoder bwe: upsample_rates and upsample_kernel_sizes make ", generated,
                       " samples of ", frames, " frame(s); must be hop_length ", config.hop_length,
                       " x rate ratio ", ratio, " = ", raised));
    }
  }
  LTX_ASSIGN_OR_RETURN(extension.upsampler_,
                       HannUpsampler::Create(loader.device(), ratio,
                                             VocoderGenerator::kOutputChannels, loader.owner()));
  return extension;
}

int64_t BandwidthExtension::OutputLength(int64_t length) const {
  return length * (config_.output_sampling_rate / config_.input_sampling_rate);
}

absl::StatusOr<Tensor> BandwidthExtension::Forward(Device& device, const Tensor& x,
                                                   const StageObserver& observer) const {
  const int64_t length = x.dim(1);
  Tensor padded = x;
  if (const int64_t rest = length % config_.hop_length; rest != 0) {
    LTX_ASSIGN_OR_RETURN(padded, device.Pad(x, 1, 0, config_.hop_length - rest, PadMode::kZeros));
  }
  LTX_ASSIGN_OR_RETURN(const Tensor mel, mel_stft_.Forward(device, padded));
  if (observer) observer("bwe_mel", mel);
  LTX_ASSIGN_OR_RETURN(const Tensor residual, generator_.Forward(device, mel));
  if (observer) observer("residual", residual);
  LTX_ASSIGN_OR_RETURN(const Tensor skip, upsampler_.Forward(device, padded));
  if (observer) observer("skip", skip);
  LTX_ASSIGN_OR_RETURN(Tensor wave, device.Add(residual, skip));
  LTX_ASSIGN_OR_RETURN(wave, device.Clamp(wave, -1.0f, 1.0f));
  const int64_t output_length = OutputLength(length);
  if (output_length == wave.dim(1)) return wave;
  return device.Slice(wave, 1, 0, output_length);
}

}  // namespace ltx::audio_vae
