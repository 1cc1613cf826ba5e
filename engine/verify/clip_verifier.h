#ifndef LTX_ENGINE_VERIFY_CLIP_VERIFIER_H_
#define LTX_ENGINE_VERIFY_CLIP_VERIFIER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace ltx::verify {

/// A finished clip, as somebody would see and hear it.
struct ClipView {
  /// RGB [H, W, 3] of each frame; none in sound alone.
  std::vector<absl::Span<const uint8_t>> frames;
  int height = 0;
  int width = 0;
  /// [channels, N] in [-1, 1]; empty without sound.
  absl::Span<const float> waveform;
  int audio_channels = 0;
  /// Samples per second.
  int audio_sample_rate = 0;
};

/// The frames of `bytes` [n, H, W, 3], which has `frame_bytes` each; the last one is short if they
/// do not divide.
std::vector<absl::Span<const uint8_t>> SplitFrames(absl::Span<const uint8_t> bytes,
                                                   size_t frame_bytes);

/// What makes a clip fail. docs/verifier.md tells why each bound is where it is.
struct VerifierBounds {
  /// Fewer distinct frames than this share (clips of more than 2 frames): frozen.
  double min_distinct_share = 0.5;
  /// The 99.9th percentile of luma (0..255) below this makes a frame near-black.
  double near_black_luma = 16.0;
  /// A standard deviation of luma below this makes a frame near-uniform.
  double near_uniform_deviation = 1.5;
  /// A ratio above the first with a far difference above the second: noise.
  double noise_ratio = 0.9;
  double noise_far_mad = 20.0;
};

struct ClipReport {
  bool passed = false;
  /// One sentence for each reason of failure.
  std::vector<std::string> failures;

  int64_t num_frames = 0;
  int64_t distinct_frames = 0;
  int64_t near_black_frames = 0;
  int64_t near_uniform_frames = 0;
  /// Mean absolute difference (0..255) of neighbouring frames, and of frames half the clip apart.
  double adjacent_mad = 0;
  double far_mad = 0;
  /// adjacent / far; 1.0 is uncorrelated noise, 0 if nothing moves.
  double adjacent_far_ratio = 0;

  /// Per channel, dBFS; -infinity for silence.
  std::vector<double> audio_rms_dbfs;
  /// Standard deviation over mean of the RMS of 20 ms windows, over all channels; 0 for silence.
  double audio_envelope_cv = 0;
  /// Maximum over mean of the magnitude spectrum of the whole clip (Hann window, channels summed);
  /// 0 for silence.
  double audio_spectral_crest = 0;
  /// Samples that are NaN or infinite.
  int64_t nonfinite_samples = 0;
};

/// Measures a clip and judges it. A legal but dull clip passes: silence is a legal sound beside a
/// picture, and a black background is a legal picture as long as something is on it.
/// `threads` share the frames; the figures do not depend on their number.
/// INVALID_ARGUMENT if the spans do not have the sizes that the extents say, or there is neither
/// frame nor sound.
absl::StatusOr<ClipReport> VerifyClip(const ClipView& clip, const VerifierBounds& bounds = {},
                                      int threads = 1);

/// One figure a line, the verdict last.
std::string FormatReport(const ClipReport& report);

}  // namespace ltx::verify

#endif  // LTX_ENGINE_VERIFY_CLIP_VERIFIER_H_
