#include "engine/sampling/torch_cpu_generator.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
#include <string>
#include <vector>

namespace ltx::sampling {
namespace {

std::vector<uint32_t> Bits(const std::vector<float>& values) {
  std::vector<uint32_t> bits(values.size());
  std::memcpy(bits.data(), values.data(), values.size() * sizeof(float));
  return bits;
}

std::vector<float> DrawF32(uint64_t seed, int64_t count) {
  return *TorchCpuGenerator(seed).Draw(count, DType::kF32);
}

template <typename T>
uint32_t Crc(const std::vector<T>& values) {
  return static_cast<uint32_t>(crc32(crc32(0, nullptr, 0),
                                     reinterpret_cast<const Bytef*>(values.data()),
                                     static_cast<uInt>(values.size() * sizeof(T))));
}

std::vector<uint16_t> BFloat16Bits(const std::vector<float>& values) {
  std::vector<uint16_t> bits;
  for (const float value : values) {
    EXPECT_EQ(RoundToBFloat16(value), value);
    bits.push_back(BFloat16(value).bits);
  }
  return bits;
}

// Expected values: torch 2.11.0, generator seeded with 7.

TEST(TorchCpuGeneratorTest, SmallFloat32Draw) {
  EXPECT_EQ(Bits(DrawF32(7, 7)),
            (std::vector<uint32_t>{0xbe165174, 0x3f49408e, 0x3f7262e7, 0xbf8ea2d3, 0x3fd86bd0,
                                   0xbf651371, 0xbeb6147c}));
}

TEST(TorchCpuGeneratorTest, OneBlockFloat32) {
  EXPECT_EQ(
      Bits(DrawF32(7, 16)),
      (std::vector<uint32_t>{0xbf51f456, 0x3eca902b, 0x3f661ede, 0xbfb1b738, 0xbe2b0101, 0x3e91ff2d,
                             0xbf241e93, 0xbf64c69a, 0x3f6d31ec, 0xbf091754, 0xbf9471b7, 0xbeeb99b8,
                             0x3f3562d1, 0x3f81a1f8, 0x3e6bed28, 0x3f8b8a88}));
}

TEST(TorchCpuGeneratorTest, TailIsDrawnAfreshFloat32) {
  EXPECT_EQ(
      Bits(DrawF32(7, 17)),
      (std::vector<uint32_t>{0xbf51f456, 0xbea62d99, 0x3ff6933b, 0xbea8f74c, 0x3e4b352e, 0x3f4835ea,
                             0x3f85017b, 0xbf397989, 0xbf595213, 0xbe5c827d, 0xbfe869cc, 0xbeb0c38e,
                             0xc003ef41, 0x3f2c91dd, 0xbfa96365, 0xbfae0ce9, 0xbf5de028}));
}

TEST(TorchCpuGeneratorTest, BFloat16UsesOtherBits) {
  EXPECT_EQ(*TorchCpuGenerator(7).Draw(16, DType::kBF16),
            (std::vector<float>{-0.97265625f, -0.306640625f, -0.42578125f, 2.15625f, -0.150390625f,
                                -1.078125f, -1.2109375f, 0.5234375f, 1.1640625f, -1.6796875f,
                                -0.15234375f, 1.359375f, 0.76171875f, 1.5234375f, 0.56640625f,
                                0.87109375f}));
  EXPECT_EQ(*TorchCpuGenerator(7).Draw(17, DType::kBF16),
            (std::vector<float>{-0.97265625f, 1.234375f, -0.392578125f, 0.466796875f, 0.77734375f,
                                1.5078125f, 1.046875f, -0.107421875f, 0.70703125f, 0.0f, 1.3984375f,
                                2.09375f, -0.12353515625f, 0.2236328125f, 0.52734375f, -1.21875f,
                                1.3203125f}));
}

TEST(TorchCpuGeneratorTest, SmallBFloat16DrawIsRoundedOnce) {
  EXPECT_EQ(*TorchCpuGenerator(7).Draw(5, DType::kBF16),
            (std::vector<float>{-0.146484375f, 0.78515625f, 0.9453125f, -1.1171875f, 1.6875f}));
}

TEST(TorchCpuGeneratorTest, Float64) {
  EXPECT_EQ(*TorchCpuGenerator(7).DrawDoubles(3),
            (std::vector<double>{-0.1467950974849952, 0.7861412987235358, 0.9468216090039564}));
  const std::vector<double> block = *TorchCpuGenerator(7).DrawDoubles(16);
  EXPECT_EQ(block[0], 0.06626753966449943);
  EXPECT_EQ(block[1], 0.04699155524392409);
  EXPECT_EQ(block[2], 1.8365386300294015);
  EXPECT_EQ(block[8], -0.8067815436367963);
}

TEST(TorchCpuGeneratorTest, ChecksumsOfLongerDraws) {
  struct Row {
    uint64_t seed;
    int64_t count;
    uint32_t f32, bf16, f64;
  };
  for (const Row& row : {Row{7, 100, 0x8411b592, 0x603e5c80, 0x4171591f},
                         Row{7, 1000, 0x28adb5bb, 0xf3f5a284, 0x7c88ec36},
                         Row{7, 4096, 0x40d72e39, 0xe6718c09, 0xd3c97dfc},
                         Row{0, 15, 0xe6f537f6, 0x26018711, 0x3933543f},
                         Row{0, 33, 0xa4039047, 0x61af00fe, 0xa5c9eb95},
                         Row{0, 100003, 0x2a468184, 0xeb399fd1, 0xcc0351a8},
                         Row{123456789, 31, 0x3ae1c7f6, 0x9a1bcd76, 0x382020b7},
                         Row{123456789, 100003, 0xca442626, 0xe76a1a14, 0xa2d12988}}) {
    SCOPED_TRACE(testing::Message() << "seed " << row.seed << " count " << row.count);
    EXPECT_EQ(Crc(DrawF32(row.seed, row.count)), row.f32);
    EXPECT_EQ(Crc(BFloat16Bits(*TorchCpuGenerator(row.seed).Draw(row.count, DType::kBF16))),
              row.bf16);
    EXPECT_EQ(Crc(*TorchCpuGenerator(row.seed).DrawDoubles(row.count)), row.f64);
  }
}

TEST(TorchCpuGeneratorTest, SeedsCountModulo32Bits) {
  EXPECT_EQ(DrawF32(7, 20), DrawF32((uint64_t{1} << 32) + 7, 20));
  EXPECT_EQ(DrawF32(~uint64_t{0}, 20), DrawF32(0xffffffffu, 20));
  EXPECT_NE(DrawF32(7, 20), DrawF32(8, 20));
}

TEST(TorchCpuGeneratorTest, SecondOfAPairWaitsForTheNextSmallDraw) {
  TorchCpuGenerator generator(7);
  const std::vector<float> together = DrawF32(7, 2);
  EXPECT_EQ(generator.Draw(1, DType::kF32)->at(0), together[0]);
  // A large draw neither uses nor clears it.
  EXPECT_EQ(generator.Draw(16, DType::kF32)->size(), 16u);
  EXPECT_EQ(generator.Draw(1, DType::kF32)->at(0), together[1]);
}

TEST(TorchCpuGeneratorTest, MixedSequence) {
  TorchCpuGenerator generator(7);
  EXPECT_EQ(generator.Draw(3, DType::kF32)->size(), 3u);
  const std::vector<uint32_t> large = Bits(*generator.Draw(20, DType::kF32));
  EXPECT_EQ(large[0], 0xbe34ac25u);
  EXPECT_EQ(large[1], 0x3fe005a6u);
  EXPECT_EQ(Bits(*generator.Draw(2, DType::kF32)), (std::vector<uint32_t>{0xbf8ea2d3, 0xbeea673d}));
}

TEST(TorchCpuGeneratorTest, RefusesWhatItCannotDraw) {
  TorchCpuGenerator generator(7);
  EXPECT_TRUE(generator.Draw(0, DType::kF32)->empty());
  EXPECT_FALSE(generator.Draw(-1, DType::kF32).ok());
  EXPECT_FALSE(generator.Draw(16, DType::kF16).ok());
  EXPECT_FALSE(generator.Draw(int64_t{1} << 29, DType::kF32).ok());
}

}  // namespace
}  // namespace ltx::sampling
