#include "kernels/cpu/fast_math.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "gtest/gtest.h"

namespace ltx::cpu {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr double kSqrtTwoOverPi = 0.79788456080286535588;

float FromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

float Only(Vec value) { return _mm256_cvtss_f32(value); }

/// Distance of two neighbouring floats around `value`.
double Ulp(double value) {
  const int exponent = value == 0.0 ? -126 : std::max(std::ilogb(value), -126);
  return std::ldexp(1.0, exponent - 23);
}

struct Worst {
  double ulps = 0.0;
  float at = 0.0f;
};

/// Largest error of `fast` against `exact` in ulps over floats of all exponents and both signs with
/// low <= x <= high; a finite `exact` beyond the float range must come out as infinity.
template <typename Fast, typename Exact>
Worst WorstError(const Fast& fast, const Exact& exact, float low, float high) {
  Worst worst;
  // An odd stride meets all low bits; some four million values.
  constexpr uint32_t kStride = 1021;
  alignas(32) float x[kLanes];
  alignas(32) float y[kLanes];
  int filled = 0;
  const auto flush = [&] {
    _mm256_store_ps(y, fast(_mm256_load_ps(x)));
    for (int i = 0; i < filled; ++i) {
      const double want = exact(static_cast<double>(x[i]));
      double error = 0.0;
      if (std::isinf(static_cast<float>(want))) {
        error = y[i] == static_cast<float>(want) ? 0.0 : HUGE_VAL;
      } else {
        error = std::abs(static_cast<double>(y[i]) - want) / Ulp(want);
      }
      if (!(error <= worst.ulps)) worst = {std::isnan(error) ? HUGE_VAL : error, x[i]};
    }
    filled = 0;
  };
  for (uint64_t bits = 0; bits <= 0xffffffffu; bits += kStride) {
    const float value = FromBits(static_cast<uint32_t>(bits));
    if (!(value >= low && value <= high)) continue;
    x[filled++] = value;
    if (filled == kLanes) flush();
  }
  if (filled > 0) {
    std::fill(x + filled, x + kLanes, x[0]);
    flush();
  }
  return worst;
}

#define EXPECT_WITHIN_ULPS(worst, bound)                             \
  do {                                                               \
    const Worst seen = (worst);                                      \
    EXPECT_LE(seen.ulps, bound) << "at " << seen.at;                 \
    RecordProperty("worst_ulps", std::to_string(seen.ulps).c_str()); \
  } while (false)

TEST(FastMathTest, Exp) {
  EXPECT_WITHIN_ULPS(
      WorstError([](Vec x) { return Exp(x); }, [](double x) { return std::exp(x); }, -kInf, kInf),
      1.5);
  EXPECT_EQ(Only(Exp(Broadcast(-kInf))), 0.0f);
  EXPECT_EQ(Only(Exp(Broadcast(kInf))), kInf);
  EXPECT_EQ(Only(Exp(Zero())), 1.0f);
  EXPECT_TRUE(std::isnan(Only(Exp(Broadcast(kNan)))));
}

TEST(FastMathTest, ExpNonPositive) {
  EXPECT_WITHIN_ULPS(WorstError([](Vec x) { return ExpNonPositive(x); },
                                [](double x) { return std::exp(x); }, -87.3f, 0.0f),
                     1.5);
  EXPECT_EQ(Only(ExpNonPositive(Broadcast(-87.4f))), 0.0f);
  EXPECT_EQ(Only(ExpNonPositive(Broadcast(-1e30f))), 0.0f);
  EXPECT_EQ(Only(ExpNonPositive(Broadcast(-kInf))), 0.0f);
  EXPECT_EQ(Only(ExpNonPositive(Zero())), 1.0f);
  EXPECT_TRUE(std::isnan(Only(ExpNonPositive(Broadcast(kNan)))));
}

TEST(FastMathTest, Sigmoid) {
  EXPECT_WITHIN_ULPS(WorstError([](Vec x) { return Sigmoid(x); },
                                [](double x) { return 1.0 / (1.0 + std::exp(-x)); }, -kInf, kInf),
                     2.5);
  EXPECT_TRUE(std::isnan(Only(Sigmoid(Broadcast(kNan)))));
}

TEST(FastMathTest, Silu) {
  // Below -87 the exponential loses bits as a denormal before the product recovers its size.
  EXPECT_WITHIN_ULPS(WorstError([](Vec x) { return Silu(x); },
                                [](double x) { return x / (1.0 + std::exp(-x)); }, -87.0f, 1e38f),
                     3.0);
  EXPECT_LE(std::abs(Only(Silu(Broadcast(-95.0f)))), 1e-38f);
  EXPECT_TRUE(std::isnan(Only(Silu(Broadcast(kNan)))));
}

TEST(FastMathTest, Tanh) {
  EXPECT_WITHIN_ULPS(
      WorstError([](Vec x) { return Tanh(x); }, [](double x) { return std::tanh(x); }, -kInf, kInf),
      2.0);
  EXPECT_TRUE(std::isnan(Only(Tanh(Broadcast(kNan)))));
  EXPECT_EQ(Only(Tanh(Zero())), 0.0f);
}

TEST(FastMathTest, Sin) {
  EXPECT_WITHIN_ULPS(
      WorstError([](Vec x) { return Sin(x); }, [](double x) { return std::sin(x); }, -3.5f, 3.5f),
      2.0);
  // Further out too, also where the result is close to zero.
  EXPECT_WITHIN_ULPS(
      WorstError([](Vec x) { return Sin(x); }, [](double x) { return std::sin(x); }, -1e6f, 1e6f),
      2.0);
  // The floats nearest to multiples of pi.
  for (int n = -20000; n <= 20000; ++n) {
    const auto x = static_cast<float>(n * 3.14159265358979323846);
    const double want = std::sin(static_cast<double>(x));
    ASSERT_LE(std::abs(Only(Sin(Broadcast(x))) - want), 2.0 * Ulp(want)) << x;
  }
  EXPECT_TRUE(std::isnan(Only(Sin(Broadcast(kInf)))));
  EXPECT_TRUE(std::isnan(Only(Sin(Broadcast(kNan)))));
}

TEST(FastMathTest, GeluTanh) {
  const auto exact = [](double x) {
    return x / (1.0 + std::exp(-2.0 * kSqrtTwoOverPi * (x + 0.044715 * x * x * x)));
  };
  // The argument's rounding error grows with it: up to 2u = 16 here, times 2^-24 and three steps.
  EXPECT_WITHIN_ULPS(WorstError([](Vec x) { return GeluTanh(x); }, exact, -1.0f, 1e38f), 6.0);
  EXPECT_WITHIN_ULPS(WorstError([](Vec x) { return GeluTanh(x); }, exact, -5.0f, -1.0f), 40.0);
  // Beyond, only the absolute size matters.
  for (const float x : {-6.0f, -9.0f, -20.0f, -1e4f, -1e15f, -3e38f}) {
    EXPECT_LE(std::abs(Only(GeluTanh(Broadcast(x))) - exact(x)), 1e-14) << x;
  }
  EXPECT_EQ(Only(GeluTanh(Zero())), 0.0f);
  EXPECT_EQ(Only(GeluTanh(Broadcast(3e38f))), 3e38f);
  EXPECT_TRUE(std::isnan(Only(GeluTanh(Broadcast(kNan)))));
}

TEST(FastMathTest, DispatchChoosesTheFunction) {
  const auto value = [](Activation activation) {
    return DispatchActivation(activation, [](auto f) { return Only(f(Broadcast(0.7f))); });
  };
  EXPECT_EQ(value(Activation::kNone), 0.7f);
  EXPECT_NEAR(value(Activation::kSilu), 0.7 / (1 + std::exp(-0.7)), 1e-6);
  EXPECT_NEAR(value(Activation::kTanh), std::tanh(0.7), 1e-6);
  EXPECT_NEAR(value(Activation::kSigmoid), 1 / (1 + std::exp(-0.7)), 1e-6);
  EXPECT_NEAR(value(Activation::kExp), std::exp(0.7), 1e-6);
  EXPECT_NEAR(value(Activation::kGeluTanh),
              0.35 * (1 + std::tanh(kSqrtTwoOverPi * (0.7 + 0.044715 * 0.343))), 1e-6);
}

}  // namespace
}  // namespace ltx::cpu
