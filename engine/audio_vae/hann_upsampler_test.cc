#include "engine/audio_vae/hann_upsampler.h"

#include <algorithm>

#include "engine/audio_vae/resampling_filters.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/host_copy.h"

namespace ltx::audio_vae {
namespace {

/// The definition, sample by sample: x [T] -> [T * ratio].
std::vector<float> Direct(const std::vector<float>& x, int64_t ratio) {
  const std::vector<float> filter = HannSincFilter(ratio);
  const int64_t length = static_cast<int64_t>(x.size());
  std::vector<float> y(length * ratio);
  for (int64_t n = 0; n < length * ratio; ++n) {
    double sum = 0.0;
    for (int64_t j = -10; j < length + 10; ++j) {
      const int64_t index = n - ratio * j + 7 * ratio;
      if (index < 0 || index >= static_cast<int64_t>(filter.size())) continue;
      sum += filter[index] * x[std::clamp<int64_t>(j, 0, length - 1)];
    }
    y[n] = static_cast<float>(sum * static_cast<double>(ratio));
  }
  return y;
}

void ExpectDirect(int64_t length, int64_t ratio) {
  const auto device = cpu::CpuDevice::Create({}).value();
  const HannUpsampler upsampler =
      HannUpsampler::Create(*device, ratio, 2, MemoryOwner::kWeightsAudioVae).value();
  std::vector<float> both(2 * length);
  for (int64_t i = 0; i < 2 * length; ++i) both[i] = static_cast<float>((i * 37) % 11) - 5.0f;
  const Tensor x = TensorFromFloats(*device, both, Shape({1, length, 2})).value();
  const Tensor y = upsampler.Forward(*device, x).value();
  ASSERT_EQ(y.shape(), Shape({1, length * ratio, 2}));
  const std::vector<float> got = ToFloats(*device, y).value();
  for (int side = 0; side < 2; ++side) {
    std::vector<float> one(length);
    for (int64_t i = 0; i < length; ++i) one[i] = both[2 * i + side];
    const std::vector<float> want = Direct(one, ratio);
    for (int64_t n = 0; n < length * ratio; ++n) EXPECT_NEAR(got[2 * n + side], want[n], 2e-5f);
  }
}

TEST(HannUpsamplerTest, MatchesTheDefinition) {
  for (const int64_t ratio : {1, 2, 3, 4}) {
    for (const int64_t length : {1, 2, 9, 40}) ExpectDirect(length, ratio);
  }
}

TEST(HannUpsamplerTest, RefusesNoRatio) {
  const auto device = cpu::CpuDevice::Create({}).value();
  EXPECT_EQ(HannUpsampler::Create(*device, 0, 2, MemoryOwner::kCache).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace ltx::audio_vae
