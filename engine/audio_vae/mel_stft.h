#ifndef LTX_ENGINE_AUDIO_VAE_MEL_STFT_H_
#define LTX_ENGINE_AUDIO_VAE_MEL_STFT_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/checkpoint/weight_loader.h"
#include "kernels/device.h"

namespace ltx::audio_vae {

/// Causal log-mel spectrogram of the bandwidth extension: frame t sees the `n_fft` samples that end
/// with hop t (zeros before the signal), windowed DFT with the checkpoint's own bf16 bases,
/// magnitude, mel filter bank, natural logarithm floored at 1e-5. Always f32. Source: the
/// reference's audio_vae/vocoder.py:MelSTFT.
///
/// The DFT with stride `hop` is computed as a stride-1 causal convolution over blocks of `hop`
/// samples (hop input channels, ceil(n_fft / hop) taps): one dense matrix product instead of a
/// single-channel convolution.
class MelStft {
 public:
  /// Weights below `loader`: mel_basis [num_mels, n_fft / 2 + 1] and
  /// stft_fn.forward_basis [2 (n_fft / 2 + 1), 1, n_fft], real rows first. The inverse basis is
  /// known and not needed. FAILED_PRECONDITION for sizes that are not positive; errors of the
  /// weight loader.
  static absl::StatusOr<MelStft> Load(checkpoint::WeightLoader loader, int64_t n_fft, int64_t hop,
                                      int64_t num_mels);

  /// x f32 [B, n, C], n a multiple of the hop -> [B, n / hop, C * num_mels], feature index
  /// channel * num_mels + mel.
  absl::StatusOr<Tensor> Forward(Device& device, const Tensor& x) const;

 private:
  int64_t hop_ = 1;
  int64_t taps_ = 1;
  ConvWeight basis_;
  LinearWeight mel_basis_;
};

}  // namespace ltx::audio_vae

#endif  // LTX_ENGINE_AUDIO_VAE_MEL_STFT_H_
