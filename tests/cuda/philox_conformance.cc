#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "engine/sampling/torch_cuda_generator.h"
#include "tests/cuda/conformance.h"

namespace ltx::cuda {
namespace {

using sampling::TorchCudaGenerator;

/// What a CPU's logarithm, sine and cosine differ from the GPU's fast ones by; f64 has no fast
/// ones.
constexpr double kF32Bound = 1e-5;
constexpr double kF64Bound = 1e-12;

using Philox = ConformanceTest;

template <typename Value>
void ExpectNear(const std::vector<Value>& got, const std::vector<Value>& want, double bound) {
  ASSERT_EQ(got.size(), want.size());
  double largest = 0.0;
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_TRUE(std::isfinite(got[i])) << i;
    largest = std::max(largest, std::abs(static_cast<double>(got[i]) - want[i]));
  }
  EXPECT_LE(largest, bound);
}

// Below and above one full wave of threads (270336 on an H200), one stream continued.
TEST_F(Philox, FollowsTheHostsForm) {
  TorchCudaGenerator on_gpu(7, {}, &gpu());
  TorchCudaGenerator on_host(7);
  for (const int64_t count : {1, 255, 270336, 270337, 1100000, 0, 3}) {
    const auto got = on_gpu.Draw(count, DType::kF32);
    ASSERT_TRUE(got.ok()) << got.status();
    ExpectNear(*got, *on_host.Draw(count, DType::kF32), kF32Bound);
    EXPECT_EQ(on_gpu.offset(), on_host.offset());
  }
  for (const int64_t count : {2, 600000}) {
    const auto got = on_gpu.DrawDoubles(count);
    ASSERT_TRUE(got.ok()) << got.status();
    ExpectNear(*got, *on_host.DrawDoubles(count), kF64Bound);
    EXPECT_EQ(on_gpu.offset(), on_host.offset());
  }
}

TEST_F(Philox, Bfloat16IsTheRoundedFloat) {
  TorchCudaGenerator floats(123456789, {}, &gpu());
  TorchCudaGenerator rounded(123456789, {}, &gpu());
  std::vector<float> want = *floats.Draw(5000, DType::kF32);
  for (float& value : want) value = RoundToBFloat16(value);
  EXPECT_EQ(*rounded.Draw(5000, DType::kBF16), want);
}

TEST_F(Philox, RefusesWhatIsNoDraw) {
  const PhiloxDraw draw = {7, 0, 16, 132, 2048};
  EXPECT_TRUE(absl::IsUnimplemented(gpu().PhiloxNormals(draw, DType::kBF16).status()));
  PhiloxDraw odd = draw;
  odd.offset = 2;
  EXPECT_TRUE(absl::IsInternal(gpu().PhiloxNormals(odd, DType::kF32).status()));
}

}  // namespace
}  // namespace ltx::cuda
