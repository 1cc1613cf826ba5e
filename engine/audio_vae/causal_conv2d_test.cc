#include "engine/audio_vae/causal_conv2d.h"

#include "engine/audio_vae/test_checkpoint.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/host_copy.h"

namespace ltx::audio_vae {
namespace {

using checkpoint::CausalityAxis;

void ExpectPadding(CausalityAxis axis, int64_t kernel, std::array<int64_t, 4> expected) {
  const auto axes = CausalPadding(axis, kernel);
  EXPECT_EQ(axes[0].pad_before, expected[0]);
  EXPECT_EQ(axes[0].pad_after, expected[1]);
  EXPECT_EQ(axes[1].pad_before, expected[2]);
  EXPECT_EQ(axes[1].pad_after, expected[3]);
}

TEST(CausalConv2dTest, PaddingFollowsTheCausalAxis) {
  ExpectPadding(CausalityAxis::kHeight, 3, {2, 0, 1, 1});
  ExpectPadding(CausalityAxis::kWidth, 3, {1, 1, 2, 0});
  ExpectPadding(CausalityAxis::kWidthCompatibility, 3, {1, 1, 2, 0});
  ExpectPadding(CausalityAxis::kNone, 3, {1, 1, 1, 1});
  ExpectPadding(CausalityAxis::kNone, 4, {1, 2, 1, 2});
  ExpectPadding(CausalityAxis::kHeight, 1, {0, 0, 0, 0});
}

/// Forward() with its first row of `dropped_axis` sliced off.
void ExpectDropsFirst(CausalityAxis axis, int dropped_axis) {
  const auto device = cpu::CpuDevice::Create({}).value();
  TestCheckpoint file;
  file.AddConv("c.conv", 3, 2, {3, 3});
  file.Add("x", Shape({2, 4, 5, 2}), 1.0f);
  checkpoint::WeightLoader loader = file.Loader(*device);
  const CausalConv2d conv = CausalConv2d::Load(loader, "c", 2, 3, 3, axis).value();
  const Tensor x = loader.Get("x", Shape({2, 4, 5, 2})).value();
  Tensor expected = conv.Forward(*device, x).value();
  EXPECT_EQ(expected.shape(), Shape({2, 4, 5, 3}));
  if (dropped_axis > 0) {
    expected = device->Slice(expected, dropped_axis, 1, expected.dim(dropped_axis)).value();
  }
  const Tensor dropped = conv.ForwardDroppingFirst(*device, x).value();
  ASSERT_EQ(dropped.shape(), expected.shape());
  const std::vector<float> want = ToFloats(*device, expected).value();
  const std::vector<float> got = ToFloats(*device, dropped).value();
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5f);
}

TEST(CausalConv2dTest, DropsFirstTimeRow) { ExpectDropsFirst(CausalityAxis::kHeight, 1); }
TEST(CausalConv2dTest, DropsFirstBinColumn) { ExpectDropsFirst(CausalityAxis::kWidth, 2); }
TEST(CausalConv2dTest, DropsNothingForCompatibility) {
  ExpectDropsFirst(CausalityAxis::kWidthCompatibility, 0);
}
TEST(CausalConv2dTest, DropsNothingWithoutCausality) { ExpectDropsFirst(CausalityAxis::kNone, 0); }

TEST(CausalConv2dTest, HeightSeesNoFuture) {
  const auto device = cpu::CpuDevice::Create({}).value();
  TestCheckpoint file;
  file.AddConv("c.conv", 1, 1, {3, 3});
  checkpoint::WeightLoader loader = file.Loader(*device);
  const CausalConv2d conv =
      CausalConv2d::Load(loader, "c", 1, 1, 3, CausalityAxis::kHeight).value();
  const Shape shape({1, 3, 2, 1});
  const Tensor a = TensorFromFloats(*device, {1, 2, 3, 4, 5, 6}, shape).value();
  const Tensor b = TensorFromFloats(*device, {1, 2, 3, 4, -7, 9}, shape).value();
  const std::vector<float> from_a = ToFloats(*device, conv.Forward(*device, a).value()).value();
  const std::vector<float> from_b = ToFloats(*device, conv.Forward(*device, b).value()).value();
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(from_a[i], from_b[i], 1e-6f) << i;
  EXPECT_GT(std::abs(from_a[4] - from_b[4]), 1e-3f);
}

}  // namespace
}  // namespace ltx::audio_vae
