#include "engine/sampling/torch_cuda_generator.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "engine/sampling/philox.h"
#include "kernels/cpu/cpu_device.h"

namespace ltx::sampling {
namespace {

using Words = std::array<uint32_t, 4>;

TEST(PhiloxTest, KnownAnswers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffffu;
  EXPECT_EQ(Philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

// Expected values: torch 2.11.0 on an H200, generator seeded with 7.

TEST(TorchCudaGeneratorTest, WordsOfThreads) {
  const TorchCudaGenerator generator(7);
  EXPECT_EQ(generator.Words(0, 0, 0), (Words{0xf4607a2d, 0xc009f9dc, 0x1d3aba42, 0x15edac82}));
  EXPECT_EQ(generator.Words(0, 1, 0), (Words{0x7ebaed90, 0x2bf6d9af, 0x4fac3b2b, 0x39acec6c}));
  EXPECT_EQ(generator.Words(0, 255, 0), (Words{0x6f1fe007, 0xe74805bb, 0x826fe228, 0x2b24be1c}));
  EXPECT_EQ(generator.Words(4, 0, 0), (Words{0x682e8e9b, 0xcb97bc13, 0x2bfaff6b, 0xf535eea6}));
  EXPECT_EQ(generator.Words(4, 1, 0), (Words{0xe32925ef, 0xd98f06c0, 0xc49554e4, 0x58d4326c}));
}

TEST(TorchCudaGeneratorTest, NormalsOfThreads) {
  // A single block of 256 threads, so that 1024 elements take one round: element t + 256 i is value
  // i of thread t.
  TorchCudaGenerator generator(7, CudaLaunchShape{1, 256});
  struct Row {
    int64_t thread;
    std::array<float, 4> normals;
  };
  const auto expect = [](const std::vector<float>& values, const Row& row) {
    for (int i = 0; i < 4; ++i) {
      EXPECT_NEAR(values[row.thread + 256 * i], row.normals[i], 1e-5f) << row.thread << " " << i;
    }
  };
  const std::vector<float> first = *generator.Draw(1024, DType::kF32);
  EXPECT_EQ(generator.offset(), 4u);
  expect(first, {0, {-0.304847f, 0.000292f, 1.067873f, 1.788757f}});
  expect(first, {1, {1.045333f, 0.559922f, 1.509536f, 0.236221f}});
  expect(first, {255, {-0.736585f, 1.061364f, 1.012426f, 0.568830f}});
  const std::vector<float> second = *generator.Draw(1024, DType::kF32);
  EXPECT_EQ(generator.offset(), 8u);
  expect(second, {0, {-1.287012f, 0.376404f, -0.491240f, 1.811504f}});
  expect(second, {1, {-0.395833f, 0.286977f, 0.595941f, -0.415976f}});
}

TEST(TorchCudaGeneratorTest, SmallDrawsUseOneValueOfEachThread) {
  TorchCudaGenerator generator(7);
  const std::vector<float> values = *generator.Draw(300, DType::kF32);
  EXPECT_NEAR(values[0], -0.304847f, 1e-5f);
  EXPECT_NEAR(values[1], 1.045333f, 1e-5f);
  EXPECT_NEAR(values[255], -0.736585f, 1e-5f);
  EXPECT_EQ(generator.offset(), 4u);
}

TEST(TorchCudaGeneratorTest, LargeDrawsWrapAndAdvanceFurther) {
  TorchCudaGenerator generator(7);
  const std::vector<float> one_round = *generator.Draw(786432, DType::kF32);
  EXPECT_EQ(generator.offset(), 4u);
  constexpr int64_t kThreads = 132 * 2048;
  EXPECT_NEAR(one_round[kThreads], 0.000292f, 1e-5f);
  EXPECT_NEAR(one_round[kThreads + 1], 0.559922f, 1e-5f);
  EXPECT_NEAR(one_round[2 * kThreads + 255], 1.012426f, 1e-5f);

  TorchCudaGenerator fresh(7);
  EXPECT_EQ(fresh.Draw(3145728, DType::kF32)->size(), 3145728u);
  EXPECT_EQ(fresh.offset(), 12u);
  EXPECT_NEAR(fresh.Draw(1, DType::kF32)->at(0), 1.3719312f, 1e-5f);
}

TEST(TorchCudaGeneratorTest, BFloat16IsRoundedFloat32) {
  std::vector<float> expected = *TorchCudaGenerator(7).Draw(1000, DType::kF32);
  for (float& value : expected) value = RoundToBFloat16(value);
  EXPECT_EQ(*TorchCudaGenerator(7).Draw(1000, DType::kBF16), expected);
}

TEST(TorchCudaGeneratorTest, AllSeedBitsCount) {
  EXPECT_NE(*TorchCudaGenerator(7).Draw(16, DType::kF32),
            *TorchCudaGenerator((uint64_t{1} << 32) + 7).Draw(16, DType::kF32));
}

TEST(TorchCudaGeneratorTest, DoubleDraw) {
  const std::vector<double> values = *TorchCudaGenerator(7).DrawDoubles(256);
  EXPECT_NEAR(values[0], 0.3886799689909573, 1e-14);
  EXPECT_NEAR(values[1], 1.8545560517966402, 1e-14);
}

TEST(TorchCudaGeneratorTest, ADeviceThatCannotDrawLeavesItToTheHost) {
  const auto device = *cpu::CpuDevice::Create({});
  ASSERT_FALSE(device->can_draw_philox());
  EXPECT_TRUE(absl::IsUnimplemented(device->PhiloxNormals({}, DType::kF32).status()));
  TorchCudaGenerator with(7, {}, device.get());
  TorchCudaGenerator without(7);
  EXPECT_EQ(*with.Draw(300, DType::kF32), *without.Draw(300, DType::kF32));
  EXPECT_EQ(*with.DrawDoubles(300), *without.DrawDoubles(300));
  EXPECT_EQ(with.offset(), without.offset());
}

}  // namespace
}  // namespace ltx::sampling
