#ifndef LTX_ENGINE_AUDIO_VAE_DECODE_AUDIO_H_
#define LTX_ENGINE_AUDIO_VAE_DECODE_AUDIO_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/audio_vae/audio_decoder.h"
#include "engine/audio_vae/vocoder.h"
#include "engine/stage_observer.h"
#include "kernels/device.h"

namespace ltx::audio_vae {

/// Stereo sound.
struct Waveform {
  /// f32 [2, N], left then right, in [-1, 1].
  Tensor samples;
  /// Hz.
  int64_t sample_rate = 0;
};

/// Normalised audio latent to sound: VAE decoder, then vocoder. With the released models N is
/// 480 (4 L - 3) at 48 kHz, 30 ms less than L / 25 s; nothing is stretched or padded here.
///
/// `tokens` [1, L, z_channels * bins], f32 or bf16; converted to the decoder's dtype. Stages: mel
/// [1, T, bins, 2], and those of decoder and vocoder.
///
/// INVALID_ARGUMENT for another shape or batch, or L = 0; DATA_LOSS if the latent or the waveform
/// holds NaN or Inf, which a clamp would pass on as noise.
absl::StatusOr<Waveform> DecodeAudio(Device& device, const AudioDecoder& decoder,
                                     const Vocoder& vocoder, const Tensor& tokens,
                                     const StageObserver& observer = {});

}  // namespace ltx::audio_vae

#endif  // LTX_ENGINE_AUDIO_VAE_DECODE_AUDIO_H_
