#ifndef LTX_ENGINE_AUDIO_VAE_BANDWIDTH_EXTENSION_H_
#define LTX_ENGINE_AUDIO_VAE_BANDWIDTH_EXTENSION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/audio_vae/hann_upsampler.h"
#include "engine/audio_vae/mel_stft.h"
#include "engine/audio_vae/vocoder_generator.h"
#include "engine/checkpoint/audio_config.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/stage_observer.h"
#include "kernels/device.h"

namespace ltx::audio_vae {

/// Second stage of the vocoder: raises the waveform to the output rate and adds what a second
/// generator makes of its log-mel spectrogram:
/// clamp(generator(log_mel(x)) + hann_upsample(x), -1, 1). Always f32. Source: the reference's
/// audio_vae/vocoder.py:VocoderWithBWE.
class BandwidthExtension {
 public:
  /// Weights below `loader` (which stands below the outer "vocoder."): bwe_generator.*, mel_stft.*.
  /// FAILED_PRECONDITION naming the keys if the output rate is no multiple of the input
  /// rate, the spectrogram does not have the generator's 64 mels, or the rates' product is not
  /// hop_length * (output / input rate); errors of the weight loader.
  static absl::StatusOr<BandwidthExtension> Load(
      checkpoint::WeightLoader loader, const checkpoint::VocoderConfig::BandwidthExtension& config);

  /// Samples at the output rate for `length` at the input rate.
  int64_t OutputLength(int64_t length) const;

  /// x f32 [B, n, 2] in [-1, 1] -> [B, OutputLength(n), 2]. Stages: bwe_mel [B, frames, 2 * mels],
  /// residual and skip [B, samples, 2], over the input padded to whole hops.
  absl::StatusOr<Tensor> Forward(Device& device, const Tensor& x,
                                 const StageObserver& observer = {}) const;

 private:
  checkpoint::VocoderConfig::BandwidthExtension config_;
  VocoderGenerator generator_;
  MelStft mel_stft_;
  HannUpsampler upsampler_;
};

}  // namespace ltx::audio_vae

#endif  // LTX_ENGINE_AUDIO_VAE_BANDWIDTH_EXTENSION_H_
