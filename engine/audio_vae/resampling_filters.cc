#include "engine/audio_vae/resampling_filters.h"

#include <algorithm>
#include <cmath>

namespace ltx::audio_vae {
namespace {

constexpr double kPi = 3.14159265358979323846;

double Sinc(double x) { return x == 0.0 ? 1.0 : std::sin(kPi * x) / (kPi * x); }

/// Modified Bessel function of the first kind, order 0, by its power series; the arguments here are
/// small, so it converges in a few dozen terms.
double BesselI0(double x) {
  double sum = 1.0;
  double term = 1.0;
  for (int k = 1; k < 200 && term > sum * 1e-17; ++k) {
    const double factor = x / (2.0 * k);
    term *= factor * factor;
    sum += term;
  }
  return sum;
}

/// Kaiser's empirical shape for a stop-band attenuation in dB (Kaiser 1974).
double KaiserBeta(double attenuation) {
  if (attenuation > 50.0) return 0.1102 * (attenuation - 8.7);
  if (attenuation < 21.0) return 0.0;
  return 0.5842 * std::pow(attenuation - 21.0, 0.4) + 0.07886 * (attenuation - 21.0);
}

}  // namespace

std::vector<float> KaiserSincFilter(double cutoff, double half_width, int64_t taps) {
  const int64_t half = taps / 2;
  // 2.285 and 7.95 are Kaiser's constants: attenuation of `half - 1` lobes over a transition of
  // four half-widths.
  const double attenuation = 2.285 * static_cast<double>(half - 1) * kPi * 4.0 * half_width + 7.95;
  const double beta = KaiserBeta(attenuation);
  const double centre = static_cast<double>(taps - 1) / 2.0;
  std::vector<double> filter(taps);
  double sum = 0.0;
  for (int64_t i = 0; i < taps; ++i) {
    const double from_centre = static_cast<double>(i) - centre;
    const double position = centre == 0.0 ? 0.0 : from_centre / centre;
    const double window =
        BesselI0(beta * std::sqrt(std::max(0.0, 1.0 - position * position))) / BesselI0(beta);
    filter[i] = 2.0 * cutoff * window * Sinc(2.0 * cutoff * from_centre);
    sum += filter[i];
  }
  std::vector<float> normalized(taps);
  for (int64_t i = 0; i < taps; ++i) normalized[i] = static_cast<float>(filter[i] / sum);
  return normalized;
}

std::vector<float> HannSincFilter(int64_t ratio) {
  // torchaudio's defaults: the pass band ends at 99 % of Nyquist, six zero crossings each side.
  constexpr double kRolloff = 0.99;
  constexpr double kZeroCrossings = 6.0;
  std::vector<float> filter(2 * kHannFilterWidth * ratio + 1);
  for (size_t i = 0; i < filter.size(); ++i) {
    const double t = (static_cast<double>(i) / static_cast<double>(ratio) -
                      static_cast<double>(kHannFilterWidth)) *
                     kRolloff;
    const double window =
        std::cos(kPi * std::clamp(t, -kZeroCrossings, kZeroCrossings) / kZeroCrossings / 2.0);
    filter[i] =
        static_cast<float>(Sinc(t) * window * window * kRolloff / static_cast<double>(ratio));
  }
  return filter;
}

}  // namespace ltx::audio_vae
