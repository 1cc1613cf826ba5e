#include "engine/sampling/noise_source.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "engine/sampling/torch_cpu_generator.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/host_copy.h"

namespace ltx::sampling {
namespace {

class NoiseSourceTest : public testing::Test {
 protected:
  NoiseSourceTest()
      : device_(*cpu::CpuDevice::Create({1, nullptr})),
        noise_([](uint64_t seed) { return std::make_unique<TorchCpuGenerator>(seed); }, 7, 10007,
               DType::kF32) {}

  std::vector<float> Draw(NoiseDraw::Use use, int stage) {
    return *ToFloats(*device_, *noise_.Draw(*device_, {use, stage, Modality::kVideo, 0}, {1, 4, 4},
                                            DType::kF32));
  }
  std::vector<double> DrawDoubles(NoiseDraw::Use use, int stage) {
    const Tensor drawn =
        *noise_.Draw(*device_, {use, stage, Modality::kVideo, 0}, {1, 4, 4}, DType::kF64);
    return {drawn.data<double>(), drawn.data<double>() + drawn.num_elements()};
  }

  std::unique_ptr<cpu::CpuDevice> device_;
  GeneratedNoise noise_;
};

TEST_F(NoiseSourceTest, LoopNoiseHasItsOwnStream) {
  TorchCpuGenerator main(7), loop(10007);
  EXPECT_EQ(Draw(NoiseDraw::Use::kInitial, 1), *main.Draw(16, DType::kF32));
  const std::vector<float> first_of_loop = *loop.Draw(16, DType::kF32);
  EXPECT_EQ(Draw(NoiseDraw::Use::kLoop, 1), first_of_loop);
  EXPECT_EQ(Draw(NoiseDraw::Use::kInitial, 1), *main.Draw(16, DType::kF32));
  EXPECT_EQ(Draw(NoiseDraw::Use::kLoop, 1), *loop.Draw(16, DType::kF32));
  // The loop of another stage starts its stream anew.
  EXPECT_EQ(Draw(NoiseDraw::Use::kLoop, 2), first_of_loop);
  EXPECT_EQ(Draw(NoiseDraw::Use::kDecode, 2), *main.Draw(16, DType::kF32));
}

TEST_F(NoiseSourceTest, HalfStepsDrawStandardisedDoublesFromASeedOfTheirOwn) {
  TorchCpuGenerator whole(10007), half(20007);
  std::vector<double> of_whole = *whole.DrawDoubles(16);
  std::vector<double> of_half = *half.DrawDoubles(16);
  ASSERT_TRUE(StandardizeNoise(1, &of_whole).ok());
  ASSERT_TRUE(StandardizeNoise(1, &of_half).ok());
  EXPECT_EQ(DrawDoubles(NoiseDraw::Use::kHalfStep, 1), of_half);
  EXPECT_EQ(DrawDoubles(NoiseDraw::Use::kLoop, 1), of_whole);
  EXPECT_NE(DrawDoubles(NoiseDraw::Use::kHalfStep, 1), of_half);
  EXPECT_EQ(DrawDoubles(NoiseDraw::Use::kHalfStep, 2), of_half);
  EXPECT_NE(of_half, of_whole);
}

TEST(GeneratedNoiseTest, SeedsWrapAround) {
  // The HQ recipe's seed is -1, which puts its half steps at 9999.
  const auto device = *cpu::CpuDevice::Create({1, nullptr});
  std::vector<uint64_t> seeds;
  GeneratedNoise noise(
      [&seeds](uint64_t seed) {
        seeds.push_back(seed);
        return std::make_unique<TorchCpuGenerator>(seed);
      },
      7, ~uint64_t{0}, DType::kF32);
  const NoiseDraw half = {NoiseDraw::Use::kHalfStep, 1, Modality::kVideo, 0};
  EXPECT_TRUE(noise.Draw(*device, half, {1, 4, 4}, DType::kF64).ok());
  EXPECT_EQ(seeds, (std::vector<uint64_t>{7, 9999}));
}

TEST(StandardizeNoiseTest, ZeroMeanAndUnitVarianceOverAllAndOverEachRow) {
  std::vector<double> values = *TorchCpuGenerator(3).DrawDoubles(60);
  values[7] += 100.0;
  ASSERT_TRUE(StandardizeNoise(2, &values).ok());
  for (int row = 0; row < 2; ++row) {
    double sum = 0.0, squares = 0.0;
    for (int i = 0; i < 30; ++i) {
      sum += values[row * 30 + i];
      squares += values[row * 30 + i] * values[row * 30 + i];
    }
    EXPECT_NEAR(sum, 0.0, 1e-12);
    EXPECT_NEAR(squares, 29.0, 1e-12);
  }
  std::vector<double> equal(16, 2.0);
  EXPECT_EQ(StandardizeNoise(1, &equal).code(), absl::StatusCode::kInvalidArgument);
  std::vector<double> one(1, 2.0);
  EXPECT_EQ(StandardizeNoise(1, &one).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace ltx::sampling
