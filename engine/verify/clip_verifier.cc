#include "engine/verify/clip_verifier.h"

#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "kernels/cpu/parallel.h"
#include "kissfft/kiss_fftr.h"

namespace ltx::verify {
namespace {

/// Window of the loudness envelope: 20 ms, as long as one video frame at 50 frames per second.
constexpr double kEnvelopeSeconds = 0.020;

struct FftrFree {
  void operator()(kiss_fftr_cfg config) const { kiss_fftr_free(config); }
};

struct LumaFigures {
  double percentile_999 = 0;
  double deviation = 0;
};

/// BT.709 luma of a frame, by histogram in steps of 1/16: percentile and deviation need no sort.
LumaFigures MeasureLuma(absl::Span<const uint8_t> frame) {
  constexpr int kSteps = 16;
  std::array<int64_t, 255 * kSteps + 1> histogram{};
  double sum = 0;
  double sum_of_squares = 0;
  const int64_t pixels = static_cast<int64_t>(frame.size() / 3);
  for (int64_t i = 0; i < pixels; ++i) {
    const double luma =
        0.2126 * frame[3 * i] + 0.7152 * frame[3 * i + 1] + 0.0722 * frame[3 * i + 2];
    sum += luma;
    sum_of_squares += luma * luma;
    ++histogram[static_cast<int>(luma * kSteps)];
  }
  LumaFigures figures;
  const double mean = sum / pixels;
  figures.deviation = std::sqrt(std::max(0.0, sum_of_squares / pixels - mean * mean));
  const auto target = static_cast<int64_t>(std::ceil(0.999 * pixels));
  int64_t seen = 0;
  for (size_t bin = 0; bin < histogram.size(); ++bin) {
    seen += histogram[bin];
    if (seen >= target) {
      figures.percentile_999 = static_cast<double>(bin) / kSteps;
      break;
    }
  }
  return figures;
}

int64_t SumOfDifferences(absl::Span<const uint8_t> a, absl::Span<const uint8_t> b) {
  int64_t sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::abs(static_cast<int>(a[i]) - b[i]);
  return sum;
}

/// What is measured at a frame.
struct FrameFigures {
  std::array<uint8_t, SHA256_DIGEST_LENGTH> digest;
  LumaFigures luma;
  /// To the next frame, and to the one half a clip later; 0 where there is none.
  int64_t adjacent = 0;
  int64_t far = 0;
};

void MeasurePicture(const ClipView& clip, const VerifierBounds& bounds, int threads,
                    ClipReport* report) {
  const auto num_frames = static_cast<int64_t>(clip.frames.size());
  const int64_t distance = std::max<int64_t>(num_frames / 2, 1);
  std::vector<FrameFigures> figures(num_frames);
  cpu::ParallelFor(threads, num_frames, /*grain=*/1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const absl::Span<const uint8_t> frame = clip.frames[i];
      SHA256(frame.data(), frame.size(), figures[i].digest.data());
      figures[i].luma = MeasureLuma(frame);
      if (i + 1 < num_frames) figures[i].adjacent = SumOfDifferences(frame, clip.frames[i + 1]);
      if (i + distance < num_frames) {
        figures[i].far = SumOfDifferences(frame, clip.frames[i + distance]);
      }
    }
  });
  std::set<std::array<uint8_t, SHA256_DIGEST_LENGTH>> digests;
  int64_t adjacent = 0;
  int64_t far = 0;
  for (const FrameFigures& frame : figures) {
    digests.insert(frame.digest);
    report->near_black_frames += frame.luma.percentile_999 < bounds.near_black_luma;
    report->near_uniform_frames += frame.luma.deviation < bounds.near_uniform_deviation;
    adjacent += frame.adjacent;
    far += frame.far;
  }
  const auto mean = [&](int64_t sum, int64_t pairs) {
    if (pairs <= 0) return 0.0;
    return static_cast<double>(sum) / static_cast<double>(pairs * clip.frames[0].size());
  };
  report->num_frames = num_frames;
  report->distinct_frames = static_cast<int64_t>(digests.size());
  report->adjacent_mad = mean(adjacent, num_frames - 1);
  report->far_mad = mean(far, num_frames - distance);
  report->adjacent_far_ratio = report->far_mad > 0 ? report->adjacent_mad / report->far_mad : 0;
}

double SpectralCrest(const std::vector<float>& mono) {
  const int samples = static_cast<int>(mono.size());
  if (samples < 2) return 0;
  const int size = kiss_fftr_next_fast_size_real(samples);
  const std::unique_ptr<std::remove_pointer_t<kiss_fftr_cfg>, FftrFree> config(
      kiss_fftr_alloc(size, 0, nullptr, nullptr));
  std::vector<float> windowed(size, 0.0f);
  for (int i = 0; i < samples; ++i) {
    windowed[i] =
        mono[i] * static_cast<float>(0.5 - 0.5 * std::cos(2.0 * M_PI * i / (samples - 1)));
  }
  std::vector<kiss_fft_cpx> spectrum(size / 2 + 1);
  kiss_fftr(config.get(), windowed.data(), spectrum.data());
  double sum = 0;
  double peak = 0;
  for (const kiss_fft_cpx& bin : spectrum) {
    const double magnitude = std::hypot(bin.r, bin.i);
    sum += magnitude;
    peak = std::max(peak, magnitude);
  }
  return sum > 0 ? peak / (sum / spectrum.size()) : 0;
}

double EnvelopeVariation(const ClipView& clip, int64_t samples) {
  const auto window = static_cast<int64_t>(std::llround(kEnvelopeSeconds * clip.audio_sample_rate));
  std::vector<double> envelope;
  for (int64_t begin = 0; window > 0 && begin + window <= samples; begin += window) {
    double sum = 0;
    for (int channel = 0; channel < clip.audio_channels; ++channel) {
      for (int64_t i = begin; i < begin + window; ++i) {
        const double value = clip.waveform[channel * samples + i];
        sum += value * value;
      }
    }
    envelope.push_back(std::sqrt(sum / (window * clip.audio_channels)));
  }
  if (envelope.empty()) return 0;
  double mean = 0;
  for (const double value : envelope) mean += value;
  mean /= envelope.size();
  double variance = 0;
  for (const double value : envelope) variance += (value - mean) * (value - mean);
  return mean > 0 ? std::sqrt(variance / envelope.size()) / mean : 0;
}

void MeasureSound(const ClipView& clip, ClipReport* report) {
  if (clip.audio_channels == 0) return;
  const auto samples = static_cast<int64_t>(clip.waveform.size()) / clip.audio_channels;
  for (const float value : clip.waveform) report->nonfinite_samples += !std::isfinite(value);
  if (report->nonfinite_samples > 0 || samples == 0) return;
  std::vector<float> mono(samples, 0.0f);
  for (int channel = 0; channel < clip.audio_channels; ++channel) {
    double sum = 0;
    for (int64_t i = 0; i < samples; ++i) {
      const float value = clip.waveform[channel * samples + i];
      sum += static_cast<double>(value) * value;
      mono[i] += value;
    }
    report->audio_rms_dbfs.push_back(sum > 0 ? 10.0 * std::log10(sum / samples)
                                             : -std::numeric_limits<double>::infinity());
  }
  report->audio_envelope_cv = EnvelopeVariation(clip, samples);
  report->audio_spectral_crest = SpectralCrest(mono);
}

void Judge(const VerifierBounds& bounds, ClipReport* report) {
  const auto fail = [report](std::string text) { report->failures.push_back(std::move(text)); };
  if (report->num_frames > 2 &&
      report->distinct_frames < bounds.min_distinct_share * report->num_frames) {
    fail(absl::StrCat("only ", report->distinct_frames, " of ", report->num_frames,
                      " frames are distinct"));
  }
  const bool sound_alone = report->num_frames == 0;
  if (!sound_alone && report->near_black_frames == report->num_frames) {
    fail("every frame is near-black");
  }
  if (!sound_alone && report->near_uniform_frames == report->num_frames) {
    fail("every frame is near-uniform");
  }
  if (sound_alone && report->nonfinite_samples == 0 &&
      std::all_of(report->audio_rms_dbfs.begin(), report->audio_rms_dbfs.end(),
                  [](double rms) { return std::isinf(rms); })) {
    fail("sound alone, and it is silent");
  }
  if (report->adjacent_far_ratio > bounds.noise_ratio && report->far_mad > bounds.noise_far_mad) {
    fail(
        absl::StrFormat("neighbouring frames differ as much as distant ones (ratio %.3f, far "
                        "difference %.1f): noise",
                        report->adjacent_far_ratio, report->far_mad));
  }
  if (report->nonfinite_samples > 0) {
    fail(absl::StrCat(report->nonfinite_samples, " sound samples are not finite"));
  }
  report->passed = report->failures.empty();
}

}  // namespace

std::vector<absl::Span<const uint8_t>> SplitFrames(absl::Span<const uint8_t> bytes,
                                                   size_t frame_bytes) {
  std::vector<absl::Span<const uint8_t>> frames;
  for (size_t at = 0; frame_bytes > 0 && at < bytes.size(); at += frame_bytes) {
    frames.push_back(bytes.subspan(at, frame_bytes));
  }
  return frames;
}

absl::StatusOr<ClipReport> VerifyClip(const ClipView& clip, const VerifierBounds& bounds,
                                      int threads) {
  if (clip.frames.empty() && clip.waveform.empty()) {
    return absl::InvalidArgumentError("a clip needs at least one frame, or sound");
  }
  const int64_t expected = int64_t{3} * clip.height * clip.width;
  for (const absl::Span<const uint8_t> frame : clip.frames) {
    if (expected > 0 && static_cast<int64_t>(frame.size()) == expected) continue;
    return absl::InvalidArgumentError(absl::StrCat("a frame of ", clip.width, " x ", clip.height,
                                                   " has ", expected, " bytes, not ",
                                                   frame.size()));
  }
  if (clip.audio_channels < 0 || (clip.audio_channels == 0 && !clip.waveform.empty()) ||
      (clip.audio_channels > 0 && clip.waveform.size() % clip.audio_channels != 0)) {
    return absl::InvalidArgumentError(absl::StrCat(clip.waveform.size(), " samples do not make ",
                                                   clip.audio_channels, " channels"));
  }
  ClipReport report;
  if (!clip.frames.empty()) MeasurePicture(clip, bounds, threads, &report);
  MeasureSound(clip, &report);
  Judge(bounds, &report);
  return report;
}

std::string FormatReport(const ClipReport& report) {
  std::string text = absl::StrFormat(
      "frames            %d\n"
      "distinct          %d\n"
      "near-black        %d\n"
      "near-uniform      %d\n"
      "adjacent MAD      %.3f\n"
      "far MAD           %.3f\n"
      "adjacent/far      %.3f\n",
      report.num_frames, report.distinct_frames, report.near_black_frames,
      report.near_uniform_frames, report.adjacent_mad, report.far_mad, report.adjacent_far_ratio);
  if (!report.audio_rms_dbfs.empty()) {
    absl::StrAppend(&text, "audio RMS         ",
                    absl::StrJoin(report.audio_rms_dbfs, " ",
                                  [](std::string* out, double value) {
                                    absl::StrAppend(out, absl::StrFormat("%.2f dBFS", value));
                                  }),
                    absl::StrFormat("\nenvelope CV       %.3f\nspectral crest    %.1f\n",
                                    report.audio_envelope_cv, report.audio_spectral_crest));
  }
  absl::StrAppend(
      &text, "verdict           ",
      report.passed ? "passed" : absl::StrCat("FAILED: ", absl::StrJoin(report.failures, "; ")),
      "\n");
  return text;
}

}  // namespace ltx::verify
