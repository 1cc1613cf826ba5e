#include "engine/audio_vae/vocoder.h"

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace ltx::audio_vae {

absl::StatusOr<Vocoder> Vocoder::Load(checkpoint::WeightLoader loader,
                                      const checkpoint::VocoderConfig& config) {
  checkpoint::WeightLoader below = loader.Sub("vocoder.");
  Vocoder vocoder;
  vocoder.sample_rate_ = config.output_sampling_rate;
  // The two-stage form nests: its first generator lies below a second "vocoder.".
  LTX_ASSIGN_OR_RETURN(
      vocoder.generator_,
      VocoderGenerator::Load(config.extension.has_value() ? below.Sub("vocoder.") : below,
                             config.generator));
  if (config.extension.has_value()) {
    LTX_ASSIGN_OR_RETURN(vocoder.extension_, BandwidthExtension::Load(below, *config.extension));
  }
  LTX_RETURN_IF_ERROR(below.CheckAllConsumed());
  return vocoder;
}

int64_t Vocoder::OutputLength(int64_t frames) const {
  const int64_t length = generator_.OutputLength(frames);
  return extension_.has_value() ? extension_->OutputLength(length) : length;
}

absl::StatusOr<Tensor> Vocoder::Forward(Device& device, const Tensor& mel,
                                        const StageObserver& observer) const {
  constexpr int64_t kSides = VocoderGenerator::kOutputChannels;
  constexpr int64_t kBins = VocoderGenerator::kInputChannels / kSides;
  if (mel.rank() != 4 || mel.dim(1) < 1 || mel.dim(2) != kBins || mel.dim(3) != kSides) {
    return absl::InvalidArgumentError(absl::StrCat("vocoder mel ", mel.shape().ToString(),
                                                   "; must be [B, T, ", kBins, ", ", kSides,
                                                   "] with T >= 1"));
  }
  Tensor x = mel;
  if (x.dtype() != generator_.dtype()) {
    LTX_ASSIGN_OR_RETURN(x, device.Cast(x, generator_.dtype()));
  }
  LTX_ASSIGN_OR_RETURN(x, device.Permute(x, {0, 1, 3, 2}));
  LTX_ASSIGN_OR_RETURN(
      x, x.Reshape(Shape({mel.dim(0), mel.dim(1), VocoderGenerator::kInputChannels})));
  LTX_ASSIGN_OR_RETURN(x, generator_.Forward(device, x, observer));
  if (extension_.has_value()) {
    if (observer) observer("low_rate", x);
    LTX_ASSIGN_OR_RETURN(x, extension_->Forward(device, x, observer));
  }
  if (x.dtype() == DType::kF32) return x;
  return device.Cast(x, DType::kF32);
}

}  // namespace ltx::audio_vae
