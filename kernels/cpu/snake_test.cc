#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/test_util.h"

namespace ltx::cpu {
namespace {

using Vector = std::vector<double>;

class SnakeTest : public CpuDeviceTest {
 protected:
  struct Parameters {
    Tensor up, down, alpha, inverse_beta;
  };
  Parameters MakeParameters(int64_t channels, float alpha_spread) {
    std::vector<float> alpha = Random(channels, alpha_spread);
    for (float& a : alpha) a = std::abs(a) + 0.1f;
    // No symmetry: a transposed filter must not pass.
    return {MakeRandom(Shape({12}), DType::kF32, 0.3f), MakeRandom(Shape({12}), DType::kF32, 0.3f),
            Make(alpha, Shape({channels})), MakeRandom(Shape({channels}))};
  }

  /// The definition with explicit replicated signals: zero-stuffed x2 up-sampling by the filter,
  /// activation, filtered x2 down-sampling of the activated signal with replicated ends.
  Vector Reference(const Tensor& x, const Parameters& p) {
    const int64_t batch = x.dim(0);
    const int64_t length = x.dim(1);
    const int64_t channels = x.dim(2);
    const std::vector<float> values = Values(x);
    const std::vector<float> f = Values(p.up);
    const std::vector<float> g = Values(p.down);
    const std::vector<float> alpha = Values(p.alpha);
    const std::vector<float> inverse_beta = Values(p.inverse_beta);
    Vector out(values.size());
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t c = 0; c < channels; ++c) {
        const auto sample = [&](int64_t t) {
          return static_cast<double>(
              values[(b * length + std::clamp<int64_t>(t, 0, length - 1)) * channels + c]);
        };
        Vector u(2 * length);
        for (int64_t n = 0; n < 2 * length; ++n) {
          // Tap k of the filter meets stuffed position n + 5 - k, which holds x there if even.
          double sum = 0;
          for (int64_t k = 0; k < 12; ++k) {
            const int64_t position = n + 5 - k;
            if (position % 2 == 0) sum += 2.0 * f[k] * sample(position / 2);
          }
          u[n] = sum + std::pow(std::sin(alpha[c] * sum), 2) * inverse_beta[c];
        }
        for (int64_t t = 0; t < length; ++t) {
          double sum = 0;
          for (int64_t k = 0; k < 12; ++k) {
            sum += g[k] * u[std::clamp<int64_t>(2 * t + k - 5, 0, 2 * length - 1)];
          }
          out[(b * length + t) * channels + c] = sum;
        }
      }
    }
    return out;
  }
};

TEST_F(SnakeTest, LengthsAndWidthsOfAllKinds) {
  for (const int64_t length : {0, 1, 2, 3, 5, 7, 13, 127, 128, 129, 300}) {
    for (const int64_t channels : {0, 1, 7, 8, 24, 41}) {
      SCOPED_TRACE(absl::StrCat("T ", length, " C ", channels));
      const Tensor x = MakeRandom(Shape({2, length, channels}));
      const Parameters p = MakeParameters(channels, 1.0f);
      auto y = device_->AntiAliasedSnake(x, p.up, p.down, p.alpha, p.inverse_beta);
      ASSERT_TRUE(y.ok()) << y.status();
      EXPECT_EQ(y->shape(), x.shape());
      ExpectClose(Values(*y), Reference(x, p), 0.0, 2e-5);
    }
  }
}

TEST_F(SnakeTest, NarrowSignalsGiveTheBitsOfWideOnes) {
  // Lengths below, at and above what several stretches of time abreast need.
  for (const int64_t length : {15, 271, 272, 527, 528, 1039, 1040, 1300}) {
    const Tensor wide = MakeRandom(Shape({2, length, 8}));
    const Parameters p = MakeParameters(8, 1.0f);
    const std::vector<float> expected =
        Values(*device_->AntiAliasedSnake(wide, p.up, p.down, p.alpha, p.inverse_beta));
    for (const int64_t channels : {1, 2, 4, 6}) {
      SCOPED_TRACE(absl::StrCat("T ", length, " C ", channels));
      const Tensor x = *device_->Slice(wide, 2, 0, channels);
      const Tensor alpha = *device_->Slice(p.alpha, 0, 0, channels);
      const Tensor inverse_beta = *device_->Slice(p.inverse_beta, 0, 0, channels);
      auto y = device_->AntiAliasedSnake(x, p.up, p.down, alpha, inverse_beta);
      ASSERT_TRUE(y.ok()) << y.status();
      const std::vector<float> got = Values(*y);
      for (int64_t row = 0; row < 2 * length; ++row) {
        for (int64_t c = 0; c < channels; ++c) {
          ASSERT_EQ(got[row * channels + c], expected[row * 8 + c]) << row << " " << c;
        }
      }
    }
  }
}

TEST_F(SnakeTest, NarrowRestBehindWholeVectors) {
  for (const int64_t channels : {9, 10, 12, 14}) {
    SCOPED_TRACE(channels);
    const Tensor x = MakeRandom(Shape({1, 1200, channels}));
    const Parameters p = MakeParameters(channels, 1.0f);
    auto y = device_->AntiAliasedSnake(x, p.up, p.down, p.alpha, p.inverse_beta);
    ASSERT_TRUE(y.ok()) << y.status();
    ExpectClose(Values(*y), Reference(x, p), 0.0, 2e-5);
  }
}

TEST_F(SnakeTest, LargeArguments) {
  // sin of arguments of some thousands, where a float's own rounding moves it by 1e-4.
  const Tensor x = MakeRandom(Shape({1, 200, 9}), DType::kF32, 100.0f);
  const Parameters p = MakeParameters(9, 10.0f);
  auto y = device_->AntiAliasedSnake(x, p.up, p.down, p.alpha, p.inverse_beta);
  ASSERT_TRUE(y.ok());
  ExpectClose(Values(*y), Reference(x, p), 1e-5, 1e-2);
  // Beyond the vector form's range the result is still finite and bounded.
  const Tensor huge = MakeRandom(Shape({1, 50, 9}), DType::kF32, 1e6f);
  auto z = device_->AntiAliasedSnake(huge, p.up, p.down, p.alpha, p.inverse_beta);
  ASSERT_TRUE(z.ok());
  ExpectClose(Values(*z), Reference(huge, p), 1e-5, 20.0);
}

TEST_F(SnakeTest, RefusesWhatDoesNotFit) {
  const Tensor x = MakeRandom(Shape({1, 4, 8}));
  const Parameters p = MakeParameters(8, 1.0f);
  EXPECT_EQ(device_->AntiAliasedSnake(x, p.alpha, p.down, p.alpha, p.inverse_beta).status().code(),
            absl::StatusCode::kInternal);
  EXPECT_EQ(device_->AntiAliasedSnake(x, p.up, p.down, p.up, p.inverse_beta).status().code(),
            absl::StatusCode::kInternal);
  EXPECT_EQ(device_->AntiAliasedSnake(x, p.up, p.down, p.alpha, Tensor()).status().code(),
            absl::StatusCode::kInternal);
  const Tensor narrow = MakeRandom(Shape({1, 4, 8}), DType::kBF16);
  EXPECT_EQ(
      device_->AntiAliasedSnake(narrow, p.up, p.down, p.alpha, p.inverse_beta).status().code(),
      absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace ltx::cpu
