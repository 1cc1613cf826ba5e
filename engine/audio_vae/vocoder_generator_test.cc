#include "engine/audio_vae/vocoder_generator.h"

#include <cmath>
#include <string>

#include "engine/audio_vae/test_checkpoint.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/host_copy.h"

namespace ltx::audio_vae {
namespace {

using checkpoint::GeneratorConfig;
using ResBlock = checkpoint::GeneratorConfig::ResBlock;

std::string LoadError(const GeneratorConfig& config) {
  const auto device = cpu::CpuDevice::Create({}).value();
  TestCheckpoint file;
  const auto generator = VocoderGenerator::Load(file.Loader(*device), config);
  EXPECT_EQ(generator.status().code(), absl::StatusCode::kFailedPrecondition);
  return std::string(generator.status().message());
}

TEST(VocoderGeneratorTest, ConfigErrorsNameTheKey) {
  GeneratorConfig config = SmallGeneratorConfig(ResBlock::kAmp1);
  config.upsample_kernel_sizes.pop_back();
  EXPECT_NE(LoadError(config).find("upsample_kernel_sizes"), std::string::npos);

  config = SmallGeneratorConfig(ResBlock::kAmp1);
  config.resblock_dilation_sizes.pop_back();
  EXPECT_NE(LoadError(config).find("resblock_dilation_sizes"), std::string::npos);

  config = SmallGeneratorConfig(ResBlock::kAmp1);
  config.upsample_initial_channel = 7;
  EXPECT_NE(LoadError(config).find("upsample_initial_channel = 7"), std::string::npos);
}

TEST(VocoderGeneratorTest, BlockErrorsNameTheKey) {
  const auto device = cpu::CpuDevice::Create({}).value();
  for (const bool even_kernel : {true, false}) {
    GeneratorConfig config = SmallGeneratorConfig(ResBlock::kAmp1);
    if (even_kernel) {
      config.resblock_kernel_sizes[0] = 4;
    } else {
      config.resblock_dilation_sizes[0].pop_back();
    }
    TestCheckpoint file;
    file.AddGenerator("", config.resblock_dilation_sizes[0].size() == 3
                              ? config
                              : SmallGeneratorConfig(ResBlock::kAmp1));
    const auto generator = VocoderGenerator::Load(file.Loader(*device), config);
    EXPECT_EQ(generator.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_NE(generator.status().message().find(even_kernel ? "resblock_kernel_sizes"
                                                            : "resblock_dilation_sizes"),
              std::string::npos);
  }
}

TEST(VocoderGeneratorTest, KernelBelowTheRateIsRefused) {
  const auto device = cpu::CpuDevice::Create({}).value();
  GeneratorConfig config = SmallGeneratorConfig(ResBlock::kHifiGan);
  config.upsample_kernel_sizes[0] = 9;
  TestCheckpoint file;
  file.AddGenerator("", config);
  const auto generator = VocoderGenerator::Load(file.Loader(*device), config);
  EXPECT_EQ(generator.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(generator.status().message().find("ups.0"), std::string::npos);
}

/// Blocks whose last convolutions are zero pass their input through, so their mean does as well,
/// however many there are; a sum would not.
std::vector<float> WithPassingBlocks(ResBlock form, size_t blocks) {
  const auto device = cpu::CpuDevice::Create({}).value();
  GeneratorConfig config = SmallGeneratorConfig(form);
  config.resblock_kernel_sizes.assign(blocks, 3);
  config.resblock_dilation_sizes.assign(blocks, {1, 3, 5});
  TestCheckpoint file;
  // Named first, so that the random stream gives every block count the same outer weights.
  file.AddGenerator("", SmallGeneratorConfig(form));
  TestCheckpoint all;
  all.AddGenerator("", config);
  checkpoint::WeightLoader outer = file.Loader(*device);
  for (const std::string module : {"conv_pre", "conv_post", "ups.0", "ups.1", "ups.2"}) {
    for (const std::string part : {".weight", ".bias"}) {
      const Shape shape = *outer.ShapeOf(module + part);
      all.AddValues(module + part, shape, outer.GetHost(module + part, shape).value());
    }
  }
  if (form == ResBlock::kAmp1) {
    for (const std::string part : {"act_post.act.alpha", "act_post.act.beta"}) {
      const Shape shape = *outer.ShapeOf(part);
      all.AddValues(part, shape, outer.GetHost(part, shape).value());
    }
  }
  for (size_t m = 0; m < 3 * blocks; ++m) {
    const int64_t channels = 16 >> (m / blocks + 1);
    for (int step = 0; step < 3; ++step) {
      const std::string conv = "resblocks." + std::to_string(m) + ".convs2." + std::to_string(step);
      all.Add(conv + ".weight", Shape({channels, channels, 3}), 0.0f);
      all.Add(conv + ".bias", Shape({channels}), 0.0f);
    }
  }
  const VocoderGenerator generator = VocoderGenerator::Load(all.Loader(*device), config).value();
  std::vector<float> mel(2 * 128);
  for (size_t i = 0; i < mel.size(); ++i) mel[i] = 0.1f * static_cast<float>(i % 13) - 0.6f;
  const Tensor x = TensorFromFloats(*device, mel, Shape({1, 2, 128})).value();
  const Tensor y = generator.Forward(*device, x).value();
  EXPECT_EQ(y.shape(), Shape({1, 320, 2}));
  return ToFloats(*device, y).value();
}

TEST(VocoderGeneratorTest, BlocksAreAveraged) {
  for (const ResBlock form : {ResBlock::kHifiGan, ResBlock::kAmp1}) {
    const std::vector<float> one = WithPassingBlocks(form, 1);
    float largest = 0.0f;
    for (const float value : one) largest = std::max(largest, std::abs(value));
    EXPECT_GT(largest, 1e-3f);
    for (const size_t blocks : {2, 3, 4, 5}) {
      const std::vector<float> many = WithPassingBlocks(form, blocks);
      ASSERT_EQ(many.size(), one.size());
      for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(many[i], one[i], 1e-5f) << blocks;
    }
  }
}

TEST(VocoderGeneratorTest, LengthOfOddKernelPairs) {
  const auto device = cpu::CpuDevice::Create({}).value();
  GeneratorConfig config = SmallGeneratorConfig(ResBlock::kHifiGan);
  config.upsample_rates = {5, 2};
  config.upsample_kernel_sizes = {10, 4};  // 10 - 5 is odd: one sample more.
  TestCheckpoint file;
  file.AddGenerator("", config);
  const VocoderGenerator generator = VocoderGenerator::Load(file.Loader(*device), config).value();
  EXPECT_EQ(generator.OutputLength(3), (3 * 5 + 1) * 2);
  const Tensor mel = ZeroTensor(*device, Shape({1, 3, 128}), DType::kF32).value();
  EXPECT_EQ(generator.Forward(*device, mel).value().shape(),
            Shape({1, generator.OutputLength(3), 2}));
}

TEST(VocoderGeneratorTest, AmpRunsInF32WhateverTheComputeDType) {
  const auto device = cpu::CpuDevice::Create({}).value();
  for (const ResBlock form : {ResBlock::kHifiGan, ResBlock::kAmp1}) {
    const GeneratorConfig config = SmallGeneratorConfig(form);
    TestCheckpoint file;
    file.AddGenerator("", config);
    const VocoderGenerator generator =
        VocoderGenerator::Load(file.Loader(*device, DType::kBF16), config).value();
    EXPECT_EQ(generator.dtype(), form == ResBlock::kAmp1 ? DType::kF32 : DType::kBF16);
    const Tensor mel = ZeroTensor(*device, Shape({1, 1, 128}), generator.dtype()).value();
    EXPECT_EQ(generator.Forward(*device, mel).value().dtype(), generator.dtype());
  }
}

TEST(VocoderGeneratorTest, RefusesOtherInputWidths) {
  const auto device = cpu::CpuDevice::Create({}).value();
  const GeneratorConfig config = SmallGeneratorConfig(ResBlock::kHifiGan);
  TestCheckpoint file;
  file.AddGenerator("", config);
  const VocoderGenerator generator = VocoderGenerator::Load(file.Loader(*device), config).value();
  const Tensor mel = ZeroTensor(*device, Shape({1, 1, 64}), DType::kF32).value();
  EXPECT_EQ(generator.Forward(*device, mel).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace ltx::audio_vae
