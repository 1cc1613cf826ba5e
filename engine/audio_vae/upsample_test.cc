#include "engine/audio_vae/upsample.h"

#include "engine/audio_vae/test_checkpoint.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/host_copy.h"

namespace ltx::audio_vae {
namespace {

using checkpoint::CausalityAxis;

TEST(UpsampleTest, ShapesFollowTheCausalAxis) {
  const auto device = cpu::CpuDevice::Create({}).value();
  TestCheckpoint file;
  file.AddConv("conv.conv", 2, 2, {3, 3});
  const checkpoint::WeightLoader loader = file.Loader(*device);
  struct Case {
    CausalityAxis axis;
    int64_t time, bins;
  };
  for (const Case& c :
       {Case{CausalityAxis::kHeight, 5, 8}, Case{CausalityAxis::kWidth, 6, 7},
        Case{CausalityAxis::kWidthCompatibility, 6, 8}, Case{CausalityAxis::kNone, 6, 8}}) {
    const Upsample upsample = Upsample::Load(loader, 2, c.axis).value();
    const Tensor x = ZeroTensor(*device, Shape({1, 3, 4, 2}), DType::kF32).value();
    EXPECT_EQ(upsample.Forward(*device, x).value().shape(), Shape({1, c.time, c.bins, 2}));
  }
}

TEST(UpsampleTest, OneFrameStaysOne) {
  const auto device = cpu::CpuDevice::Create({}).value();
  TestCheckpoint file;
  file.AddConv("conv.conv", 2, 2, {3, 3});
  const Upsample upsample = Upsample::Load(file.Loader(*device), 2, CausalityAxis::kHeight).value();
  const Tensor x = ZeroTensor(*device, Shape({1, 1, 4, 2}), DType::kF32).value();
  EXPECT_EQ(upsample.Forward(*device, x).value().shape(), Shape({1, 1, 8, 2}));
}

}  // namespace
}  // namespace ltx::audio_vae
