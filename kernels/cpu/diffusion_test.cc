#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cpu/test_util.h"

namespace ltx::cpu {
namespace {

constexpr DType kTypes[] = {DType::kF32, DType::kBF16};
const Shape kShapes[] = {{1, 1, 1}, {2, 3, 7}, {2, 5, 128}, {1, 0, 4}, {3, 2, 0}, {1, 700, 131}};

/// Every operation must equal the float formula exactly. `volatile` keeps this compiler, with its
/// own idea of contraction, from fusing a product into a sum.
float Product(float a, float b) {
  volatile float product = a * b;
  return product;
}
float Sum(float a, float b) {
  volatile float sum = a + b;
  return sum;
}

float LerpOf(float a, float b, float w) {
  const float difference = Sum(b, -a);
  if (std::fabs(w) < 0.5f) return Sum(a, Product(w, difference));
  return Sum(b, -Product(difference, Sum(1.0f, -w)));
}

class DiffusionTest : public CpuDeviceTest {
 protected:
  void ExpectExactly(const absl::StatusOr<Tensor>& got, const Tensor& like,
                     const std::vector<float>& want) {
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(got->shape(), like.shape());
    EXPECT_EQ(got->dtype(), like.dtype());
    const std::vector<float> values = Values(*got);
    ASSERT_EQ(values.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      const float rounded = like.dtype() == DType::kBF16 ? RoundToBFloat16(want[i]) : want[i];
      ASSERT_EQ(values[i], rounded) << "element " << i;
    }
  }

  /// f(a, b) over all elements.
  template <typename Function>
  std::vector<float> Expected(const Tensor& a, const Tensor& b, const Function& f) {
    const std::vector<float> left = Values(a);
    const std::vector<float> right = Values(b);
    std::vector<float> out;
    for (size_t i = 0; i < left.size(); ++i) out.push_back(f(left[i], right[i], i));
    return out;
  }

  /// Values in [0, 1] with both ends and the threshold of the two-sided interpolation among them.
  std::vector<float> Weights(int64_t count) {
    std::uniform_real_distribution<float> uniform;
    std::vector<float> weights;
    for (int64_t i = 0; i < count; ++i) {
      const float choices[] = {0.0f, 1.0f, 0.5f, uniform(generator_), uniform(generator_)};
      weights.push_back(choices[i % 5]);
    }
    return weights;
  }
};

TEST_F(DiffusionTest, Lerp) {
  for (const DType dtype : kTypes) {
    for (const Shape& shape : kShapes) {
      const Tensor a = MakeRandom(shape, dtype);
      const Tensor b = MakeRandom(shape, dtype);
      for (const float w : {0.0f, 0.3f, 0.49999997f, 0.5f, 0.909375f, 1.0f, -0.2f, 1.5f}) {
        ExpectExactly(device_->Lerp(a, b, w), a,
                      Expected(a, b, [&](float x, float y, size_t) { return LerpOf(x, y, w); }));
      }
    }
  }
}

TEST_F(DiffusionTest, LerpHitsBothEnds) {
  const Tensor a = MakeRandom(Shape({1, 50, 40}));
  const Tensor b = MakeRandom(Shape({1, 50, 40}));
  ExpectExactly(device_->Lerp(a, b, 0.0f), a, Values(a));
  ExpectExactly(device_->Lerp(a, b, 1.0f), a, Values(b));
}

TEST_F(DiffusionTest, PerTokenOperations) {
  for (const DType dtype : kTypes) {
    for (const Shape& shape : kShapes) {
      const Tensor a = MakeRandom(shape, dtype);
      const Tensor b = MakeRandom(shape, dtype);
      const std::vector<float> weights = Weights(shape.dim(0) * shape.dim(1));
      const Tensor tokens = Make(weights, Shape({shape.dim(0), shape.dim(1)}));
      const int64_t channels = std::max<int64_t>(1, shape.dim(2));
      ExpectExactly(device_->LerpTokens(a, b, tokens), a,
                    Expected(a, b, [&](float x, float y, size_t i) {
                      return LerpOf(x, y, weights[i / channels]);
                    }));
      ExpectExactly(device_->VelocityToDenoised(a, b, tokens), a,
                    Expected(a, b, [&](float x, float v, size_t i) {
                      return Sum(x, -Product(v, weights[i / channels]));
                    }));
      ExpectExactly(device_->BlendClean(a, b, tokens), a,
                    Expected(a, b, [&](float x, float clean, size_t i) {
                      const float m = weights[i / channels];
                      return Sum(Product(x, m), Product(clean, Sum(1.0f, -m)));
                    }));
    }
  }
}

TEST_F(DiffusionTest, EulerStep) {
  for (const DType dtype : kTypes) {
    for (const Shape& shape : kShapes) {
      const Tensor x = MakeRandom(shape, dtype);
      const Tensor denoised = MakeRandom(shape, dtype);
      for (const auto& [sigma, next] :
           {std::pair<float, float>{1.0f, 0.99375f}, {0.909375f, 0.725f}, {0.421875f, 0.0f}}) {
        ExpectExactly(device_->EulerStep(x, denoised, sigma, next), x,
                      Expected(x, denoised, [&, s = sigma, n = next](float a, float b, size_t) {
                        float velocity = Sum(a, -b) / s;
                        if (dtype == DType::kBF16) velocity = RoundToBFloat16(velocity);
                        return Sum(a, Product(velocity, Sum(n, -s)));
                      }));
      }
    }
  }
  const Tensor x = MakeRandom(Shape({1, 2, 3}));
  EXPECT_EQ(device_->EulerStep(x, x, 0.0f, 0.0f).status().code(), absl::StatusCode::kInternal);
}

TEST_F(DiffusionTest, LinearCombination) {
  for (const DType dtype : kTypes) {
    for (const Shape& shape : kShapes) {
      const Tensor x = MakeRandom(shape, dtype);
      const Tensor y = MakeRandom(shape, dtype);
      const Tensor z = MakeRandom(shape, dtype);
      const std::vector<float> third = Values(z);
      const float a = 0.3f;
      const float b = -1.7f;
      const float c = 0.123456f;
      ExpectExactly(device_->LinearCombination(a, x, b, y, c, z), x,
                    Expected(x, y, [&](float u, float v, size_t i) {
                      return Sum(Sum(Product(a, u), Product(b, v)), Product(c, third[i]));
                    }));
      ExpectExactly(device_->LinearCombination(a, x, b, y, c, Tensor()), x,
                    Expected(x, y, [&](float u, float v, size_t) {
                      return Sum(Product(a, u), Product(b, v));
                    }));
    }
  }
}

TEST_F(DiffusionTest, WeightedSum) {
  for (const Shape& shape : kShapes) {
    const int64_t tokens = shape.dim(0) * shape.dim(1);
    std::vector<double> wide(shape.num_elements());
    std::normal_distribution<double> normal;
    for (double& value : wide) value = normal(generator_);
    const Tensor a = *TensorFromDoubles(*device_, wide, shape);
    const Tensor b = MakeRandom(shape);
    const Tensor c = MakeRandom(shape, DType::kBF16);
    std::vector<double> per_token(tokens);
    for (double& weight : per_token) weight = normal(generator_);
    const double third = 1.0 / 3.0;
    const std::vector<float> left = Values(b), right = Values(c);
    std::vector<double> want;
    for (int64_t i = 0; i < shape.num_elements(); ++i) {
      volatile double first = third * wide[i];
      volatile double second = per_token[i / shape.dim(2)] * static_cast<double>(left[i]);
      volatile double last = -2.0 * static_cast<double>(right[i]);
      volatile double sum = first + second;
      want.push_back(sum + last);
    }
    const std::vector<WeightedTerm> terms = {{a, {third}}, {b, per_token}, {c, {-2.0}}};
    const auto sum = device_->WeightedSum(terms, DType::kF64);
    ASSERT_TRUE(sum.ok()) << sum.status();
    ASSERT_EQ(sum->shape(), shape);
    EXPECT_TRUE(std::equal(want.begin(), want.end(), sum->data<double>()));
    const std::vector<float> narrow(want.begin(), want.end());
    ExpectExactly(device_->WeightedSum(terms, DType::kF32), b, narrow);
    ExpectExactly(device_->WeightedSum(terms, DType::kBF16), c, narrow);
  }
}

TEST_F(DiffusionTest, WeightedSumKeepsWhatF32Loses) {
  const Tensor x = Make({1.0f}, Shape({1, 1, 1}));
  const auto sum = device_->WeightedSum({{x, {1.0}}, {x, {1e-12}}, {x, {-1.0}}}, DType::kF32);
  ASSERT_TRUE(sum.ok()) << sum.status();
  EXPECT_NEAR(Values(*sum)[0], 1e-12, 1e-15);
}

TEST_F(DiffusionTest, WeightedSumRefusesWhatDoesNotFit) {
  const Tensor x = MakeRandom(Shape({2, 3, 4}));
  const auto internal = absl::StatusCode::kInternal;
  EXPECT_EQ(device_->WeightedSum({}, DType::kF32).status().code(), internal);
  EXPECT_EQ(
      device_->WeightedSum(std::vector<WeightedTerm>(6, {x, {1.0}}), DType::kF32).status().code(),
      internal);
  const WeightedTerm term = {x, {1.0}};
  for (const WeightedTerm& bad : {WeightedTerm{MakeRandom(Shape({2, 4, 3})), {1.0}},
                                  {Tensor(), {1.0}},
                                  {x, {}},
                                  {x, {1.0, 2.0}}}) {
    EXPECT_EQ(device_->WeightedSum({term, bad}, DType::kF32).status().code(), internal);
  }
  EXPECT_EQ(device_->WeightedSum({term}, DType::kF16).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST_F(DiffusionTest, AllFinite) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const DType dtype : kTypes) {
    for (const int64_t count : {0, 1, 8, 13, 4001}) {
      std::vector<float> values = Random(count);
      // The largest bfloat16.
      if (count > 1) values[1] = -3.3895314e38f;
      EXPECT_TRUE(*device_->AllFinite(Make(values, Shape({count}), dtype)));
      for (const float bad : {inf, -inf, nan}) {
        for (const int64_t at : {int64_t{0}, count / 2, count - 1}) {
          if (at < 0 || at >= count) continue;
          std::vector<float> spoiled = values;
          spoiled[at] = bad;
          EXPECT_FALSE(*device_->AllFinite(Make(spoiled, Shape({count}), dtype)));
        }
      }
    }
  }
}

TEST_F(DiffusionTest, RefusesWhatDoesNotFit) {
  const Tensor x = MakeRandom(Shape({2, 3, 4}));
  const Tensor other = MakeRandom(Shape({2, 4, 3}));
  const Tensor flat = MakeRandom(Shape({6, 4}));
  const Tensor tokens = MakeRandom(Shape({2, 3}));
  const Tensor narrow = MakeRandom(Shape({2, 3}), DType::kBF16);
  const auto internal = absl::StatusCode::kInternal;
  EXPECT_EQ(device_->Lerp(x, other, 0.5f).status().code(), internal);
  EXPECT_EQ(device_->LerpTokens(x, x, MakeRandom(Shape({3, 2}))).status().code(), internal);
  EXPECT_EQ(device_->LerpTokens(x, x, narrow).status().code(), internal);
  EXPECT_EQ(device_->VelocityToDenoised(flat, flat, tokens).status().code(), internal);
  EXPECT_EQ(device_->BlendClean(x, other, tokens).status().code(), internal);
  EXPECT_EQ(device_->EulerStep(x, other, 1.0f, 0.5f).status().code(), internal);
  EXPECT_EQ(device_->LinearCombination(1, x, 1, x, 1, other).status().code(), internal);
  EXPECT_EQ(device_->AllFinite(Tensor()).status().code(), internal);
}

TEST_F(DiffusionTest, SurvivesFailedAllocations) {
  const Tensor x = MakeRandom(Shape({1, 3, 4}));
  ExpectSurvivesEveryFailedAllocation([&] { return device_->EulerStep(x, x, 1.0f, 0.5f); });
}

}  // namespace
}  // namespace ltx::cpu
