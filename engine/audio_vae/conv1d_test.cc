#include "engine/audio_vae/conv1d.h"

#include <string>
#include <vector>

#include "engine/audio_vae/test_checkpoint.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/host_copy.h"

namespace ltx::audio_vae {
namespace {

TEST(Conv1dTest, KeepsTheLength) {
  const auto device = cpu::CpuDevice::Create({}).value();
  for (const int64_t kernel : {1, 3, 4, 7}) {
    for (const int64_t dilation : {1, 3, 5}) {
      TestCheckpoint file;
      file.AddConv("c", 5, 3, {kernel});
      checkpoint::WeightLoader loader = file.Loader(*device);
      Conv1d::Options options;
      options.kernel = kernel;
      options.dilation = dilation;
      const Conv1d conv = Conv1d::Load(loader, "c", 3, 5, options).value();
      const Tensor x = ZeroTensor(*device, Shape({2, 4, 3}), DType::kF32).value();
      EXPECT_EQ(conv.Forward(*device, x).value().shape(), Shape({2, 4, 5}));
    }
  }
}

TEST(Conv1dTest, F32WeightsOfABf16RunAreNotRounded) {
  const auto device = cpu::CpuDevice::Create({}).value();
  TestCheckpoint file;
  // 1 + 2^-12 has no bf16.
  file.AddValues("c.weight", Shape({1, 1, 1}), {1.000244140625f});
  file.AddValues("c.bias", Shape({1}), {0.0f});
  checkpoint::WeightLoader loader = file.Loader(*device, DType::kBF16);
  const Conv1d conv = Conv1d::Load(loader, "c", 1, 1, {}).value();
  const Tensor x = TensorFromFloats(*device, {1.0f}, Shape({1, 1, 1})).value();
  const Tensor y = conv.Forward(*device, x).value();
  EXPECT_EQ(ToFloats(*device, y).value(), std::vector<float>({1.000244140625f}));
}

TEST(ConvTranspose1dTest, MatchesTheDefinition) {
  const auto device = cpu::CpuDevice::Create({}).value();
  struct Sizes {
    int64_t kernel, stride;
  };
  for (const Sizes& sizes : {Sizes{4, 2}, Sizes{11, 5}, Sizes{10, 5}, Sizes{3, 3}}) {
    const int64_t padding = (sizes.kernel - sizes.stride) / 2;
    const int64_t length = 4;
    const Shape stored({2, 3, sizes.kernel});
    TestCheckpoint file;
    file.Add("up.weight", stored);
    file.Add("up.bias", Shape({3}));
    file.Add("x", Shape({1, length, 2}), 1.0f);
    checkpoint::WeightLoader loader = file.Loader(*device);
    const ConvTranspose1d conv =
        ConvTranspose1d::Load(loader, "up", 2, 3, sizes.kernel, sizes.stride, DType::kF32).value();
    const Tensor x = loader.Get("x", Shape({1, length, 2})).value();
    const Tensor y = conv.Forward(*device, x).value();
    const int64_t out = ConvTranspose1d::OutputLength(length, sizes.kernel, sizes.stride);
    EXPECT_EQ(out, length * sizes.stride + (sizes.kernel - sizes.stride) % 2);
    ASSERT_EQ(y.shape(), Shape({1, out, 3}));
    const std::vector<float> got = ToFloats(*device, y).value();
    const std::vector<float> in = ToFloats(*device, x).value();
    const std::vector<float> weight = loader.GetHost("up.weight", stored).value();
    const std::vector<float> bias = loader.GetHost("up.bias", Shape({3})).value();
    for (int64_t n = 0; n < out; ++n) {
      for (int64_t o = 0; o < 3; ++o) {
        double sum = bias[o];
        for (int64_t t = 0; t < length; ++t) {
          const int64_t tap = n - t * sizes.stride + padding;
          if (tap < 0 || tap >= sizes.kernel) continue;
          for (int64_t c = 0; c < 2; ++c) {
            sum += weight[(c * 3 + o) * sizes.kernel + tap] * in[t * 2 + c];
          }
        }
        EXPECT_NEAR(got[n * 3 + o], sum, 1e-5);
      }
    }
  }
}

TEST(ConvTranspose1dTest, KernelBelowTheRateIsRefused) {
  const auto device = cpu::CpuDevice::Create({}).value();
  TestCheckpoint file;
  checkpoint::WeightLoader loader = file.Loader(*device);
  const auto conv = ConvTranspose1d::Load(loader, "ups.0", 2, 1, 3, 4, DType::kF32);
  EXPECT_EQ(conv.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(conv.status().message().find("ups.0"), std::string::npos);
}

}  // namespace
}  // namespace ltx::audio_vae
