#ifndef LTX_ENGINE_AUDIO_VAE_VOCODER_H_
#define LTX_ENGINE_AUDIO_VAE_VOCODER_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "engine/audio_vae/bandwidth_extension.h"
#include "engine/audio_vae/vocoder_generator.h"
#include "engine/checkpoint/audio_config.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/stage_observer.h"
#include "kernels/device.h"

namespace ltx::audio_vae {

/// Log-mel spectrogram to stereo waveform, in both checkpoint forms: a single HiFi-GAN generator
/// (LTX-2.0), or an AMP1 generator followed by bandwidth extension (2.3, 2.5).
class Vocoder {
 public:
  /// `loader` holds the official names ("vocoder.conv_pre.weight", or "vocoder.vocoder.*",
  /// "vocoder.bwe_generator.*", "vocoder.mel_stft.*"). INVALID_ARGUMENT for tensors below
  /// "vocoder." that nothing uses; FAILED_PRECONDITION for a config whose parts do not fit
  /// together; errors of the weight loader.
  static absl::StatusOr<Vocoder> Load(checkpoint::WeightLoader loader,
                                      const checkpoint::VocoderConfig& config);

  /// Of the waveform, in Hz.
  int64_t sample_rate() const { return sample_rate_; }
  /// Samples per side for `frames` mel frames.
  int64_t OutputLength(int64_t frames) const;

  /// mel [B, T, 64, 2], f32 or bf16 -> waveform f32 [B, OutputLength(T), 2] in [-1, 1].
  /// The two-stage form is f32 throughout, and its result is not rounded back to bf16 as the
  /// reference does after a bf16 decoder: that rounding only costs precision. The single-stage form
  /// runs in the compute dtype, so its samples are widened from that.
  /// Stages: those of the first generator, low_rate (its waveform), those of the extension.
  /// INVALID_ARGUMENT if mel has another shape or no frames.
  absl::StatusOr<Tensor> Forward(Device& device, const Tensor& mel,
                                 const StageObserver& observer = {}) const;

 private:
  int64_t sample_rate_ = 0;
  VocoderGenerator generator_;
  std::optional<BandwidthExtension> extension_;
};

}  // namespace ltx::audio_vae

#endif  // LTX_ENGINE_AUDIO_VAE_VOCODER_H_
