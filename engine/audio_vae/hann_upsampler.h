#ifndef LTX_ENGINE_AUDIO_VAE_HANN_UPSAMPLER_H_
#define LTX_ENGINE_AUDIO_VAE_HANN_UPSAMPLER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/device.h"

namespace ltx::audio_vae {

/// Raises the rate of a signal by an integer ratio with a Hann-windowed sinc:
/// y[n] = ratio * sum_j h[n - ratio j + 7 ratio] x[j], x replicated at its ends (the skip path of
/// the bandwidth extension; h from HannSincFilter()).
///
/// Each of the `ratio` output phases is a 15-tap filter of x, so the whole is one convolution with
/// ratio * channels outputs whose rows, laid end to end, are the raised signal.
class HannUpsampler {
 public:
  /// `channels`: of the signals to come. INVALID_ARGUMENT unless ratio >= 1 and channels >= 1.
  static absl::StatusOr<HannUpsampler> Create(Device& device, int64_t ratio, int64_t channels,
                                              MemoryOwner owner);

  /// x f32 [B, T, channels] -> [B, T * ratio, channels].
  absl::StatusOr<Tensor> Forward(Device& device, const Tensor& x) const;

 private:
  int64_t ratio_ = 1;
  ConvWeight phases_;
};

}  // namespace ltx::audio_vae

#endif  // LTX_ENGINE_AUDIO_VAE_HANN_UPSAMPLER_H_
