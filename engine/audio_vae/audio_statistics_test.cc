#include "engine/audio_vae/audio_statistics.h"

#include <vector>

#include "engine/audio_vae/latent_grid.h"
#include "engine/audio_vae/test_checkpoint.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/host_copy.h"

namespace ltx::audio_vae {
namespace {

TEST(AudioStatisticsTest, IndexIsChannelTimesBinsPlusBin) {
  const auto device = cpu::CpuDevice::Create({}).value();
  TestCheckpoint file;
  file.AddValues("per_channel_statistics.mean-of-means", Shape({6}), {0, 1, 2, 3, 4, 5});
  file.AddValues("per_channel_statistics.std-of-means", Shape({6}), {1, 2, 3, 4, 5, 6});
  const AudioStatistics statistics = AudioStatistics::Load(file.Loader(*device), 6).value();
  // Two channels of three bins, two frames, all ones.
  const Tensor latent =
      TensorFromFloats(*device, std::vector<float>(12, 1.0f), Shape({1, 2, 2, 3})).value();
  const Tensor tokens = PatchifyAudio(*device, latent).value();
  const Tensor raw = statistics.Denormalize(*device, tokens).value();
  const Tensor map = UnpatchifyAudio(*device, raw, 2).value();
  const std::vector<float> values = ToFloats(*device, map).value();
  for (int channel = 0; channel < 2; ++channel) {
    for (int frame = 0; frame < 2; ++frame) {
      for (int bin = 0; bin < 3; ++bin) {
        // 1 * std + mean with std = index + 1, mean = index.
        EXPECT_EQ(values[(channel * 2 + frame) * 3 + bin],
                  static_cast<float>(2 * (channel * 3 + bin) + 1));
      }
    }
  }
  const Tensor back = statistics.Normalize(*device, raw).value();
  const std::vector<float> ones = ToFloats(*device, back).value();
  for (const float value : ones) EXPECT_NEAR(value, 1.0f, 1e-6f);
}

TEST(AudioStatisticsTest, SizeIsChecked) {
  const auto device = cpu::CpuDevice::Create({}).value();
  TestCheckpoint file;
  file.Add("per_channel_statistics.mean-of-means", Shape({6}));
  file.Add("per_channel_statistics.std-of-means", Shape({6}));
  EXPECT_EQ(AudioStatistics::Load(file.Loader(*device), 8).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace ltx::audio_vae
