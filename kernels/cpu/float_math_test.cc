#include "kernels/cpu/float_math.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace ltx::cpu {
namespace {

std::vector<float> Arguments() {
  std::vector<float> xs = {0.0f, -0.0f, 1e-30f, -1e-30f, 0.625f, -0.625f, 88.5f, -87.0f};
  for (float magnitude = 1e-6f; magnitude < 85.0f; magnitude *= 1.0007f) {
    xs.push_back(magnitude);
    xs.push_back(-magnitude);
  }
  return xs;
}

/// Largest error in ulp of the exact result.
template <typename F, typename G>
double WorstUlp(const F& f, const G& exact) {
  double worst = 0.0;
  for (const float x : Arguments()) {
    const double want = exact(static_cast<double>(x));
    if (std::abs(want) < std::numeric_limits<float>::min()) continue;
    const double ulp = std::ldexp(1.0, std::ilogb(want) - 23);
    worst = std::max(worst, std::abs(f(x) - want) / ulp);
  }
  return worst;
}

TEST(FloatMathTest, Accuracy) {
  EXPECT_LE(WorstUlp(Exp, [](double x) { return std::exp(x); }), 2.0);
  EXPECT_LE(WorstUlp(Sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }), 3.0);
  EXPECT_LE(WorstUlp(Tanh, [](double x) { return std::tanh(x); }), 3.0);
  EXPECT_LE(WorstUlp(Silu, [](double x) { return x / (1 + std::exp(-x)); }), 4.0);
}

TEST(FloatMathTest, GeluTanhMatchesTheFormula) {
  for (const float x : Arguments()) {
    const double u = std::sqrt(2 / M_PI) * (x + 0.044715 * std::pow(double{x}, 3));
    // 0.5 (1 + tanh u) = 1 / (1 + e^-2u), without the cancellation.
    const double want = x / (1 + std::exp(-2 * u));
    // The rounding of u, up to 40 before the result vanishes, is what the tolerance is for.
    EXPECT_NEAR(GeluTanh(x), want, 1e-6 * std::abs(want) * std::max(1.0, 4 * std::abs(u)) + 1e-37)
        << x;
  }
}

TEST(FloatMathTest, Extremes) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(Exp(inf), inf);
  EXPECT_EQ(Exp(-inf), 0.0f);
  EXPECT_EQ(Exp(0.0f), 1.0f);
  EXPECT_EQ(Exp(100.0f), inf);
  EXPECT_GT(Exp(-100.0f), 0.0f);
  EXPECT_TRUE(std::isnan(Exp(nan)));
  EXPECT_EQ(Tanh(inf), 1.0f);
  EXPECT_EQ(Tanh(-inf), -1.0f);
  EXPECT_TRUE(std::isnan(Tanh(nan)));
  EXPECT_EQ(Sigmoid(-inf), 0.0f);
  EXPECT_EQ(Sigmoid(inf), 1.0f);
  EXPECT_EQ(Silu(-200.0f), -0.0f);
  EXPECT_EQ(GeluTanh(-1000.0f), -0.0f);
  EXPECT_EQ(GeluTanh(1000.0f), 1000.0f);
}

}  // namespace
}  // namespace ltx::cpu
