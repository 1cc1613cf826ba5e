#include <cmath>
#include <vector>

#include "kernels/cpu/test_util.h"

namespace ltx::cpu {
namespace {

constexpr DType kTypes[] = {DType::kF32, DType::kBF16};
const Shape kShapes[] = {{1, 1, 5}, {2, 3, 7}, {1, 700, 131}, {3, 5, 128}};

class GuidanceTest : public CpuDeviceTest {
 protected:
  static double Deviation(const double* values, int64_t count) {
    double sum = 0.0, squares = 0.0;
    for (int64_t i = 0; i < count; ++i) sum += values[i];
    for (int64_t i = 0; i < count; ++i) {
      squares += (values[i] - sum / count) * (values[i] - sum / count);
    }
    return std::sqrt(squares / (count - 1));
  }

  /// The formula in double; undefined passes are skipped.
  std::vector<double> Expected(const Tensor& cond, const Tensor& uncond, const Tensor& perturbed,
                               const Tensor& isolated, const GuidanceScales& scales) {
    const std::vector<float> base = Values(cond);
    std::vector<double> c(base.begin(), base.end());
    std::vector<double> y = c;
    const auto add = [&](const Tensor& pass, double factor) {
      if (!pass.defined()) return;
      const std::vector<float> values = Values(pass);
      for (size_t i = 0; i < y.size(); ++i) y[i] += factor * (c[i] - values[i]);
    };
    add(uncond, scales.cfg - 1.0);
    add(perturbed, scales.stg);
    add(isolated, scales.modality - 1.0);
    if (scales.rescale == 0.0f) return y;
    const int64_t count = cond.num_elements() / cond.dim(0);
    for (int64_t row = 0; row < cond.dim(0); ++row) {
      const double ratio = Deviation(&c[row * count], count) / Deviation(&y[row * count], count);
      for (int64_t i = 0; i < count; ++i) {
        y[row * count + i] *= scales.rescale * ratio + (1.0 - scales.rescale);
      }
    }
    return y;
  }
};

TEST_F(GuidanceTest, EveryCombinationOfPasses) {
  for (const DType dtype : kTypes) {
    for (const Shape& shape : kShapes) {
      const Tensor cond = MakeRandom(shape, dtype);
      const Tensor others[] = {MakeRandom(shape, dtype), MakeRandom(shape, dtype),
                               MakeRandom(shape, dtype)};
      for (int present = 0; present < 8; ++present) {
        const auto pass = [&](int i) { return (present >> i) % 2 == 1 ? others[i] : Tensor(); };
        for (const float rescale : {0.0f, 0.7f, 1.0f}) {
          const GuidanceScales scales = {3.0f, 1.25f, 2.5f, rescale};
          const auto got = device_->Guide(cond, pass(0), pass(1), pass(2), scales);
          ASSERT_TRUE(got.ok()) << got.status();
          EXPECT_EQ(got->dtype(), dtype);
          ExpectClose(Values(*got), Expected(cond, pass(0), pass(1), pass(2), scales),
                      dtype == DType::kBF16 ? 0x1p-8 : 1e-5, 1e-5);
        }
      }
    }
  }
}

TEST_F(GuidanceTest, EachRowIsRescaledByItself) {
  // The second row's contrast is a hundred times the first's.
  std::vector<float> cond = Random(2 * 40), uncond = Random(2 * 40);
  for (int i = 40; i < 80; ++i) cond[i] *= 100.0f;
  const GuidanceScales scales = {4.0f, 0.0f, 1.0f, 1.0f};
  const auto both =
      device_->Guide(Make(cond, {2, 8, 5}), Make(uncond, {2, 8, 5}), Tensor(), Tensor(), scales);
  for (int row = 0; row < 2; ++row) {
    const auto slice = [&](const std::vector<float>& v) {
      return Make({v.begin() + row * 40, v.begin() + (row + 1) * 40}, {1, 8, 5});
    };
    const auto alone = device_->Guide(slice(cond), slice(uncond), Tensor(), Tensor(), scales);
    EXPECT_EQ(Values(*alone), Values(*both->Rows(row, row + 1)));
  }
}

TEST_F(GuidanceTest, LargeOffsetsDoNotSpoilTheDeviation) {
  std::vector<float> cond = Random(5000), uncond = Random(5000);
  for (float& value : cond) value += 1000.0f;
  for (float& value : uncond) value += 1000.0f;
  const Tensor c = Make(cond, {1, 50, 100});
  const Tensor u = Make(uncond, {1, 50, 100});
  const GuidanceScales scales = {3.0f, 0.0f, 1.0f, 1.0f};
  ExpectClose(Values(*device_->Guide(c, u, Tensor(), Tensor(), scales)),
              Expected(c, u, Tensor(), Tensor(), scales), 1e-6, 0.0);
}

TEST_F(GuidanceTest, TheSameBitsOnAnyNumberOfThreads) {
  const Tensor c = MakeRandom({1, 700, 131});
  const Tensor u = MakeRandom({1, 700, 131});
  const auto single = *CpuDevice::Create({1, nullptr});
  const auto copy = [&](const Tensor& x) {
    return *TensorFromFloats(*single, Values(x), x.shape());
  };
  const GuidanceScales scales = {3.0f, 0.0f, 1.0f, 0.7f};
  EXPECT_EQ(Values(*device_->Guide(c, u, Tensor(), Tensor(), scales)),
            *ToFloats(*single, *single->Guide(copy(c), copy(u), Tensor(), Tensor(), scales)));
  EXPECT_EQ(*device_->BatchDot(c, u), *single->BatchDot(copy(c), copy(u)));
}

TEST_F(GuidanceTest, BatchDot) {
  for (const DType dtype : kTypes) {
    for (const Shape& shape : kShapes) {
      const Tensor a = MakeRandom(shape, dtype);
      const Tensor b = MakeRandom(shape, dtype);
      const std::vector<float> left = Values(a), right = Values(b);
      const std::vector<double> got = *device_->BatchDot(a, b);
      const int64_t count = shape.num_elements() / shape.dim(0);
      ASSERT_EQ(static_cast<int64_t>(got.size()), shape.dim(0));
      for (int64_t row = 0; row < shape.dim(0); ++row) {
        double sum = 0.0, size = 0.0;
        for (int64_t i = row * count; i < (row + 1) * count; ++i) {
          sum += static_cast<double>(left[i]) * right[i];
          size += std::fabs(static_cast<double>(left[i]) * right[i]);
        }
        EXPECT_NEAR(got[row], sum, 1e-13 * size);
      }
    }
  }
}

TEST_F(GuidanceTest, EmptyOperands) {
  const Tensor empty = MakeRandom({2, 0, 4});
  EXPECT_EQ(device_->Guide(empty, empty, Tensor(), Tensor(), {3, 0, 1, 0.7f})->shape(),
            empty.shape());
  EXPECT_EQ(*device_->BatchDot(empty, empty), (std::vector<double>{0.0, 0.0}));
}

TEST_F(GuidanceTest, RefusesWhatDoesNotFit) {
  const Tensor x = MakeRandom({1, 3, 4});
  const Tensor other = MakeRandom({1, 4, 3});
  const auto internal = absl::StatusCode::kInternal;
  EXPECT_EQ(device_->Guide(Tensor(), x, x, x, {}).status().code(), internal);
  EXPECT_EQ(device_->Guide(x, other, Tensor(), Tensor(), {}).status().code(), internal);
  EXPECT_EQ(device_->Guide(x, Tensor(), Tensor(), MakeRandom({1, 3, 4}, DType::kBF16), {})
                .status()
                .code(),
            internal);
  EXPECT_EQ(device_->BatchDot(x, other).status().code(), internal);
}

TEST_F(GuidanceTest, SurvivesFailedAllocations) {
  const Tensor x = MakeRandom({1, 3, 4});
  const Tensor y = MakeRandom({1, 3, 4});
  ExpectSurvivesEveryFailedAllocation([&] {
    return device_->Guide(x, y, Tensor(), Tensor(), {3, 0, 1, 0.7f});
  });
}

}  // namespace
}  // namespace ltx::cpu
