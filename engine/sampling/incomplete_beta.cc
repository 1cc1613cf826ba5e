#include "engine/sampling/incomplete_beta.h"

#include <cmath>
#include <limits>

namespace ltx::sampling {
namespace {

constexpr double kHalfPi = 1.57079632679489661923;

/// x^a (1-x)^b / (a B(a, b)) times the continued fraction of DLMF 8.17.22, by the modified Lentz
/// method. Converges quickly for x < (a + 1) / (a + b + 2).
double LowerSide(double x, double a, double b) {
  // Keeps a vanishing denominator of the recurrence from dividing by zero.
  constexpr double kTiny = 1e-300;
  constexpr double kPrecision = std::numeric_limits<double>::epsilon();
  // It takes O(sqrt(max(a, b))) terms; far above what a schedule's parameters need.
  constexpr int kMaxTerms = 10000;
  const auto away_from_zero = [](double value) { return std::fabs(value) < kTiny ? kTiny : value; };
  double c = 1.0;
  double d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
  double fraction = d;
  for (int m = 1; m <= kMaxTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1.0 / away_from_zero(1.0 + even * d);
    c = away_from_zero(1.0 + even / c);
    fraction *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1.0 / away_from_zero(1.0 + odd * d);
    c = away_from_zero(1.0 + odd / c);
    fraction *= d * c;
    if (std::fabs(d * c - 1.0) <= kPrecision) break;
  }
  const double log_front =
      std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x);
  return std::exp(log_front) * fraction / a;
}

}  // namespace

double RegularizedIncompleteBeta(double x, double a, double b) {
  if (x <= 0.0) return 0.0;
  if (x >= 1.0) return 1.0;
  return x < (a + 1.0) / (a + b + 2.0) ? LowerSide(x, a, b) : 1.0 - LowerSide(1.0 - x, b, a);
}

double InverseRegularizedIncompleteBeta(double probability, double a, double b) {
  if (probability <= 0.0) return 0.0;
  if (probability >= 1.0) return 1.0;
  if (a == 0.5 && b == 0.5) {  // The arcsine distribution.
    const double root = std::sin(probability * kHalfPi);
    return root * root;
  }
  // Half of a symmetric distribution lies below 1/2, whatever the rounding of its function says.
  if (a == b && probability == 0.5) return 0.5;
  // Bisection down to neighbouring doubles: a schedule has few values, so certainty beats speed.
  double low = 0.0;
  double high = 1.0;
  while (true) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) return high;
    (RegularizedIncompleteBeta(middle, a, b) < probability ? low : high) = middle;
  }
}

}  // namespace ltx::sampling
