#ifndef LTX_ENGINE_AUDIO_VAE_RESAMPLING_FILTERS_H_
#define LTX_ENGINE_AUDIO_VAE_RESAMPLING_FILTERS_H_

#include <cstdint>
#include <vector>

namespace ltx::audio_vae {

/// Taps of the x2 low-pass filters of the anti-aliased activation. Checkpoints store them.
inline constexpr int64_t kActivationFilterTaps = 12;

/// Low-pass filter of unit sum: sinc at `cutoff` (cycles per sample, 0.5 = Nyquist) under a
/// symmetric Kaiser window whose shape follows from the transition half-width (Kaiser's formula).
/// With cutoff 0.25, half-width 0.3 and 12 taps it is what the stored filters were made from;
/// models use the stored ones, which are rounded to bf16. Source: the reference's
/// audio_vae/vocoder.py:kaiser_sinc_filter1d.
std::vector<float> KaiserSincFilter(double cutoff, double half_width, int64_t taps);

/// Half-width in input samples of the Hann filter below: six zero crossings at 99 % of the band.
inline constexpr int64_t kHannFilterWidth = 7;

/// Hann-windowed sinc for up-sampling by `ratio`: 14 ratio + 1 taps, centre 7 ratio, each tap
/// 0.99 / ratio sinc(t) cos^2(pi clamp(t, -6, 6) / 12) with t = 0.99 (i / ratio - 7). It sums to
/// about 1 / ratio per phase, so the caller multiplies by `ratio`. Not stored in checkpoints.
/// Source: the reference's audio_vae/vocoder.py:UpSample1d, after torchaudio's resampler.
std::vector<float> HannSincFilter(int64_t ratio);

}  // namespace ltx::audio_vae

#endif  // LTX_ENGINE_AUDIO_VAE_RESAMPLING_FILTERS_H_
