#include "engine/audio_vae/resnet_block.h"

#include <string>
#include <vector>

#include "engine/audio_vae/test_checkpoint.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/host_copy.h"

namespace ltx::audio_vae {
namespace {

constexpr auto kPixel = checkpoint::AudioNorm::kPixel;
constexpr auto kHeight = checkpoint::CausalityAxis::kHeight;

/// With a second convolution of zeros only the shortcut is left.
Tensor ShortcutOnly(Device& device, TestCheckpoint& file, int64_t in, int64_t out) {
  file.AddConv("conv1.conv", out, in, {3, 3});
  file.Add("conv2.conv.weight", Shape({out, out, 3, 3}), 0.0f);
  file.Add("conv2.conv.bias", Shape({out}), 0.0f);
  file.Add("x", Shape({1, 2, 3, in}), 1.0f);
  checkpoint::WeightLoader loader = file.Loader(device);
  const ResnetBlock block = ResnetBlock::Load(loader, in, out, kPixel, kHeight).value();
  return block.Forward(device, loader.Get("x", Shape({1, 2, 3, in})).value()).value();
}

TEST(ResnetBlockTest, IdentityShortcut) {
  const auto device = cpu::CpuDevice::Create({}).value();
  TestCheckpoint file;
  const Tensor y = ShortcutOnly(*device, file, 4, 4);
  const Tensor x = file.Loader(*device).Get("x", Shape({1, 2, 3, 4})).value();
  EXPECT_EQ(ToFloats(*device, y).value(), ToFloats(*device, x).value());
}

TEST(ResnetBlockTest, PointwiseShortcutWhereChannelsChange) {
  const auto device = cpu::CpuDevice::Create({}).value();
  TestCheckpoint file;
  file.AddValues("nin_shortcut.conv.weight", Shape({1, 2, 1, 1}), {2.0f, -1.0f});
  file.AddValues("nin_shortcut.conv.bias", Shape({1}), {0.5f});
  const Tensor y = ShortcutOnly(*device, file, 2, 1);
  const Tensor x = file.Loader(*device).Get("x", Shape({1, 2, 3, 2})).value();
  const std::vector<float> in = ToFloats(*device, x).value();
  const std::vector<float> out = ToFloats(*device, y).value();
  ASSERT_EQ(out.size(), 6u);
  for (size_t i = 0; i < out.size(); ++i) {
    EXPECT_NEAR(out[i], 2.0f * in[2 * i] - in[2 * i + 1] + 0.5f, 1e-6f);
  }
}

TEST(ResnetBlockTest, MissingShortcutIsNamed) {
  const auto device = cpu::CpuDevice::Create({}).value();
  TestCheckpoint file;
  file.AddConv("conv1.conv", 1, 2, {3, 3});
  file.AddConv("conv2.conv", 1, 1, {3, 3});
  const auto block = ResnetBlock::Load(file.Loader(*device), 2, 1, kPixel, kHeight);
  EXPECT_EQ(block.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(block.status().message().find("nin_shortcut"), std::string::npos);
}

}  // namespace
}  // namespace ltx::audio_vae
