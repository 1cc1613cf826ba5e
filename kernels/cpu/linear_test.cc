#include <cmath>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/test_util.h"

namespace ltx::cpu {
namespace {

double Activated(Activation activation, double x) {
  switch (activation) {
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kGeluTanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::kExp:
      return std::exp(x);
    case Activation::kNone:
      break;
  }
  return x;
}

struct Case {
  int64_t rows;
  int64_t in;
  int64_t out;
  bool bias = true;
  Activation activation = Activation::kNone;
};

class LinearTest : public CpuDeviceTest {
 protected:
  void Check(const Case& c, DType dtype) {
    SCOPED_TRACE(testing::Message()
                 << c.rows << " x " << c.in << " -> " << c.out << " bias " << c.bias
                 << " activation " << static_cast<int>(c.activation) << " " << DTypeName(dtype));
    const Tensor x = MakeRandom({c.rows, c.in}, dtype);
    const Tensor w = MakeRandom({c.out, c.in}, dtype);
    const Tensor b = c.bias ? MakeRandom({c.out}, dtype) : Tensor();
    auto weight = device_->PrepareLinear(w, b, MemoryOwner::kWeightsDit);
    ASSERT_TRUE(weight.ok()) << weight.status();
    LinearOptions options;
    options.activation = c.activation;
    auto y = device_->Linear(x, *weight, options);
    ASSERT_TRUE(y.ok()) << y.status();
    ASSERT_EQ(y->shape(), Shape({c.rows, c.out}));
    ASSERT_EQ(y->dtype(), dtype);
    const std::vector<float> xs = Values(x);
    const std::vector<float> ws = Values(w);
    const std::vector<float> bs = c.bias ? Values(b) : std::vector<float>(c.out, 0.0f);
    std::vector<double> want(c.rows * c.out);
    for (int64_t i = 0; i < c.rows; ++i) {
      for (int64_t j = 0; j < c.out; ++j) {
        double sum = bs[j];
        for (int64_t k = 0; k < c.in; ++k) {
          sum += static_cast<double>(xs[i * c.in + k]) * ws[j * c.in + k];
        }
        want[i * c.out + j] = Activated(c.activation, sum);
      }
    }
    // Operands have variance 1, so the terms of a sum add up to about K in magnitude, and a sum of
    // K rounded terms errs by eps * K at worst; the activations have slopes near 1 at most, except
    // exp, whose slope is its value.
    const double sum_error = std::ldexp(2.0 * (c.in + 1), -24) * (c.in > 0 ? 1 : 0) + 1e-7;
    const double half_ulp = dtype == DType::kBF16 ? std::ldexp(1.0, -8) : std::ldexp(1.0, -21);
    const double slope = c.activation == Activation::kExp ? 4 * sum_error : 0.0;
    ExpectClose(Values(*y), want, half_ulp + slope, 4 * sum_error);
  }
};

TEST_F(LinearTest, ManyShapes) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const int64_t rows : {0, 1, 2, 7, 64, 129}) {
      for (const auto& [in, out] : std::vector<std::pair<int64_t, int64_t>>{
               {1, 1}, {3, 5}, {17, 1}, {1, 33}, {64, 64}, {131, 67}, {256, 96}, {5, 0}, {0, 5}}) {
        Check({rows, in, out, true}, dtype);
        Check({rows, in, out, false}, dtype);
      }
    }
  }
}

TEST_F(LinearTest, Activations) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const Activation activation : {Activation::kSilu, Activation::kGeluTanh, Activation::kTanh,
                                        Activation::kSigmoid, Activation::kExp}) {
      Check({37, 19, 23, true, activation}, dtype);
      Check({3, 0, 11, true, activation}, dtype);
      Check({3, 0, 11, false, activation}, dtype);
    }
  }
}

TEST_F(LinearTest, ManyRowsInGroupsOfScratch) {
  // 8 MiB of f32 scratch hold 1048 rows of 2001 columns.
  Check({1103, 2, 2001, true, Activation::kSilu}, DType::kBF16);
}

TEST_F(LinearTest, LeadingAxesAreRows) {
  const Tensor x = MakeRandom({2, 3, 5, 7});
  auto weight = device_->PrepareLinear(MakeRandom({4, 7}), Tensor(), MemoryOwner::kWeightsDit);
  ASSERT_TRUE(weight.ok());
  auto y = device_->Linear(x, *weight);
  ASSERT_TRUE(y.ok());
  EXPECT_EQ(y->shape(), Shape({2, 3, 5, 4}));
  auto flat = device_->Linear(*x.Reshape({30, 7}), *weight);
  ASSERT_TRUE(flat.ok());
  EXPECT_EQ(Bytes(*y), Bytes(*flat));
}

TEST_F(LinearTest, WeightsAreOnTheLedgerOfTheirOwner) {
  const auto live = [&] {
    return device_->ledger()
        .Read()
        .by_owner[static_cast<int>(MemoryOwner::kWeightsText)]
        .live_bytes;
  };
  Tensor w = MakeRandom({64, 128});
  {
    auto weight = device_->PrepareLinear(w, MakeRandom({64}), MemoryOwner::kWeightsText);
    ASSERT_TRUE(weight.ok());
    EXPECT_GE(live(), 64 * 129 * 4);
  }
  EXPECT_EQ(live(), 0);
}

TEST_F(LinearTest, RepeatsToTheBit) {
  const Tensor x = MakeRandom({67, 96});
  auto weight = device_->PrepareLinear(MakeRandom({80, 96}), Tensor(), MemoryOwner::kWeightsDit);
  ASSERT_TRUE(weight.ok());
  auto y = device_->Linear(x, *weight);
  auto again = device_->Linear(x, *weight);
  ASSERT_TRUE(y.ok() && again.ok());
  EXPECT_EQ(Bytes(*y), Bytes(*again));
}

TEST_F(LinearTest, MisfitsAreRefused) {
  auto weight = device_->PrepareLinear(MakeRandom({4, 7}), Tensor(), MemoryOwner::kWeightsDit);
  ASSERT_TRUE(weight.ok());
  EXPECT_EQ(device_->Linear(MakeRandom({2, 6}), *weight).status().code(),
            absl::StatusCode::kInternal);
  EXPECT_EQ(device_->Linear(MakeRandom({2, 7}, DType::kBF16), *weight).status().code(),
            absl::StatusCode::kInternal);
  EXPECT_EQ(device_->Linear(MakeRandom({2, 7}), LinearWeight()).status().code(),
            absl::StatusCode::kInternal);
  EXPECT_EQ(device_
                ->PrepareLinear(MakeRandom({4, 7}), MakeRandom({4}, DType::kBF16),
                                MemoryOwner::kWeightsDit)
                .status()
                .code(),
            absl::StatusCode::kInternal);
  EXPECT_EQ(
      device_->PrepareLinear(MakeRandom({4}), Tensor(), MemoryOwner::kWeightsDit).status().code(),
      absl::StatusCode::kInternal);
}

TEST_F(LinearTest, FailedAllocations) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const Tensor x = MakeRandom({33, 47}, dtype);
    const Tensor w = MakeRandom({29, 47}, dtype);
    const Tensor b = MakeRandom({29}, dtype);
    LinearOptions options;
    options.activation = Activation::kGeluTanh;
    ExpectSurvivesEveryFailedAllocation([&]() -> absl::StatusOr<Tensor> {
      auto weight = device_->PrepareLinear(w, b, MemoryOwner::kWeightsDit);
      if (!weight.ok()) return weight.status();
      return device_->Linear(x, *weight, options);
    });
  }
}

}  // namespace
}  // namespace ltx::cpu
