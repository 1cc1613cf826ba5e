#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cpu/test_util.h"

namespace ltx::cpu {
namespace {

using Vector = std::vector<double>;
constexpr DType kTypes[] = {DType::kF32, DType::kBF16};
constexpr int64_t kCounts[] = {0, 1, 7, 8, 9, 31, 997};

class ElementwiseTest : public CpuDeviceTest {
 protected:
  void Expect(const absl::StatusOr<Tensor>& got, const Shape& shape, DType dtype,
              const Vector& want) {
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(got->shape(), shape);
    EXPECT_EQ(got->dtype(), dtype);
    ExpectClose(Values(*got), want, dtype == DType::kF32 ? 2e-6 : 1.0 / 256, 1e-7);
  }

  template <typename Op, typename Exact>
  void CheckUnary(const Op& op, const Exact& exact, float spread = 3.0f) {
    for (const DType dtype : kTypes) {
      for (const int64_t count : kCounts) {
        const Tensor x = MakeRandom(Shape({count}), dtype, spread);
        Vector want;
        for (const float value : Values(x)) want.push_back(exact(static_cast<double>(value)));
        Expect(op(x), x.shape(), dtype, want);
      }
      // Enough for two threads.
      const Tensor x = MakeRandom(Shape({3, 50021}), dtype, spread);
      Vector want;
      for (const float value : Values(x)) want.push_back(exact(static_cast<double>(value)));
      Expect(op(x), x.shape(), dtype, want);
    }
  }
};

double GeluTanh(double x) {
  return x / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

TEST_F(ElementwiseTest, Apply) {
  const auto apply = [&](Activation activation) {
    return [this, activation](const Tensor& x) { return device_->Apply(x, activation); };
  };
  CheckUnary(apply(Activation::kNone), [](double x) { return x; });
  CheckUnary(apply(Activation::kSilu), [](double x) { return x / (1 + std::exp(-x)); });
  CheckUnary(apply(Activation::kGeluTanh), GeluTanh, 1.5f);
  CheckUnary(apply(Activation::kTanh), [](double x) { return std::tanh(x); });
  CheckUnary(apply(Activation::kSigmoid), [](double x) { return 1 / (1 + std::exp(-x)); });
  CheckUnary(apply(Activation::kExp), [](double x) { return std::exp(x); });
}

TEST_F(ElementwiseTest, SimpleFunctions) {
  for (const float slope : {0.1f, 0.01f, -0.5f}) {
    CheckUnary([&](const Tensor& x) { return device_->LeakyRelu(x, slope); },
               [&](double x) { return x > 0 ? x : slope * x; });
  }
  CheckUnary([&](const Tensor& x) { return device_->Clamp(x, -1.0f, 2.0f); },
             [](double x) { return std::min(2.0, std::max(-1.0, x)); });
  CheckUnary([&](const Tensor& x) { return device_->SoftCap(x, 30.0f); },
             [](double x) { return 30 * std::tanh(x / 30); }, 40.0f);
  CheckUnary([&](const Tensor& x) { return device_->LogFloor(x, 1e-5f); },
             [](double x) { return std::log(std::max<double>(x, 1e-5f)); });
  CheckUnary([&](const Tensor& x) { return device_->Scale(x, -1.75f); },
             [](double x) { return -1.75 * x; });
}

TEST_F(ElementwiseTest, NanIsNotSwallowed) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const DType dtype : kTypes) {
    const Tensor x = Make(std::vector<float>(9, nan), Shape({9}), dtype);
    for (const auto& result :
         {device_->Clamp(x, -1, 1), device_->LogFloor(x, 1e-5f), device_->LeakyRelu(x, 0.1f),
          device_->SoftCap(x, 30), device_->Apply(x, Activation::kTanh)}) {
      ASSERT_TRUE(result.ok());
      for (const float value : Values(*result)) EXPECT_TRUE(std::isnan(value));
    }
  }
}

TEST_F(ElementwiseTest, Magnitude) {
  for (const DType dtype : kTypes) {
    for (const int64_t bins : {0, 1, 7, 8, 257}) {
      const Tensor x = MakeRandom(Shape({2, 3, 2 * bins}), dtype);
      const std::vector<float> values = Values(x);
      Vector want;
      for (int64_t row = 0; row < 6; ++row) {
        for (int64_t k = 0; k < bins; ++k) {
          want.push_back(std::hypot(static_cast<double>(values[row * 2 * bins + k]),
                                    static_cast<double>(values[row * 2 * bins + bins + k])));
        }
      }
      Expect(device_->Magnitude(x), Shape({2, 3, bins}), dtype, want);
    }
  }
  EXPECT_EQ(device_->Magnitude(MakeRandom(Shape({2, 3}))).status().code(),
            absl::StatusCode::kInternal);
}

TEST_F(ElementwiseTest, AddAndGeluTanhMul) {
  for (const DType dtype : kTypes) {
    for (const int64_t count : {0, 1, 7, 997, 150001}) {
      const Tensor a = MakeRandom(Shape({count}), dtype);
      const Tensor b = MakeRandom(Shape({count}), dtype);
      const std::vector<float> left = Values(a);
      const std::vector<float> right = Values(b);
      Vector sum;
      Vector product;
      for (int64_t i = 0; i < count; ++i) {
        sum.push_back(static_cast<double>(left[i]) + right[i]);
        product.push_back(GeluTanh(left[i]) * right[i]);
      }
      Expect(device_->Add(a, b), a.shape(), dtype, sum);
      auto gated = device_->GeluTanhMul(a, b);
      ASSERT_TRUE(gated.ok());
      // bf16 rounds twice.
      ExpectClose(Values(*gated), product, dtype == DType::kF32 ? 3e-6 : 2.0 / 256, 1e-7);
    }
  }
  const Tensor three = MakeRandom(Shape({3}));
  const Tensor four = MakeRandom(Shape({4}));
  EXPECT_EQ(device_->Add(three, four).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(device_->GeluTanhMul(three, MakeRandom(Shape({3}), DType::kBF16)).status().code(),
            absl::StatusCode::kInternal);
  const absl::Status status = device_->Add(three, four).status();
  EXPECT_NE(status.message().find("Add"), std::string::npos);
  EXPECT_NE(status.message().find("[4]"), std::string::npos);
}

TEST_F(ElementwiseTest, ChannelOperations) {
  for (const DType dtype : kTypes) {
    for (const int64_t channels : {0, 1, 5, 8, 23, 128}) {
      const Tensor x = MakeRandom(Shape({2, 3, 4, channels}), dtype);
      const Tensor scale = MakeRandom(Shape({channels}), dtype);
      const Tensor shift = MakeRandom(Shape({channels}), dtype);
      std::vector<float> spreads = Random(channels);
      for (float& spread : spreads) spread = std::abs(spread) + 0.1f;
      const Tensor std = Make(spreads, Shape({channels}), dtype);
      const std::vector<float> values = Values(x);
      const std::vector<float> factors = Values(scale);
      const std::vector<float> terms = Values(shift);
      spreads = Values(std);
      for (int form = 0; form < 4; ++form) {
        Vector want;
        for (size_t i = 0; i < values.size(); ++i) {
          const double factor = (form & 1) != 0 ? factors[i % channels] : 1.0;
          const double term = (form & 2) != 0 ? terms[i % channels] : 0.0;
          want.push_back(values[i] * factor + term);
        }
        Expect(device_->ScaleShiftChannels(x, (form & 1) != 0 ? scale : Tensor(),
                                           (form & 2) != 0 ? shift : Tensor()),
               x.shape(), dtype, want);
      }
      Vector normalised;
      for (size_t i = 0; i < values.size(); ++i) {
        normalised.push_back((static_cast<double>(values[i]) - terms[i % channels]) /
                             spreads[i % channels]);
      }
      Expect(device_->NormalizeChannels(x, shift, std), x.shape(), dtype, normalised);
    }
  }
  const Tensor x = MakeRandom(Shape({2, 4}));
  const Tensor three = MakeRandom(Shape({3}));
  const Tensor four = MakeRandom(Shape({4}));
  EXPECT_EQ(device_->ScaleShiftChannels(x, three, Tensor()).status().code(),
            absl::StatusCode::kInternal);
  EXPECT_EQ(device_->NormalizeChannels(x, four, Tensor()).status().code(),
            absl::StatusCode::kInternal);
}

TEST_F(ElementwiseTest, AddSpatialNoise) {
  for (const DType dtype : kTypes) {
    const Tensor x = MakeRandom(Shape({2, 3, 4, 5, 11}), dtype);
    const Tensor draw = MakeRandom(Shape({4, 5}), dtype);
    const Tensor scale = MakeRandom(Shape({11}), dtype);
    const std::vector<float> values = Values(x);
    const std::vector<float> noise = Values(draw);
    const std::vector<float> factors = Values(scale);
    Vector want;
    for (size_t i = 0; i < values.size(); ++i) {
      want.push_back(values[i] + static_cast<double>(noise[i / 11 % 20]) * factors[i % 11]);
    }
    Expect(device_->AddSpatialNoise(x, draw, scale), x.shape(), dtype, want);
    EXPECT_EQ(device_->AddSpatialNoise(x, scale, scale).status().code(),
              absl::StatusCode::kInternal);
  }
}

TEST_F(ElementwiseTest, SurvivesFailedAllocations) {
  const Tensor x = MakeRandom(Shape({3, 4}));
  ExpectSurvivesEveryFailedAllocation([&] { return device_->Add(x, x); });
}

TEST_F(ElementwiseTest, OuterSum) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const int64_t width : {0, 1, 7, 40}) {
      const Tensor a = MakeRandom(Shape({3, width}), dtype);
      const Tensor b = MakeRandom(Shape({2, width}), dtype);
      const Tensor beside = MakeRandom(Shape({3, 2}), dtype);
      const Tensor wide = *device_->Concat({beside, a, beside}, 1);
      const auto sum = device_->OuterSum(Columns(wide, 2, width), b);
      ASSERT_TRUE(sum.ok()) << sum.status();
      EXPECT_EQ(sum->shape(), Shape({3, 2, width}));
      const std::vector<float> left = Values(a);
      const std::vector<float> right = Values(b);
      std::vector<double> want;
      for (int64_t l = 0; l < 3; ++l) {
        for (int64_t u = 0; u < 2; ++u) {
          for (int64_t i = 0; i < width; ++i) {
            want.push_back(static_cast<double>(left[l * width + i]) + right[u * width + i]);
          }
        }
      }
      ExpectClose(Values(*sum), want, dtype == DType::kF32 ? 1e-6 : 1.0 / 256, 1e-6);
    }
  }
  EXPECT_EQ(device_->OuterSum(MakeRandom(Shape({3, 4})), MakeRandom(Shape({3, 5}))).status().code(),
            absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace ltx::cpu
