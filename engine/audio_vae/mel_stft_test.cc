#include "engine/audio_vae/mel_stft.h"

#include <algorithm>
#include <cmath>

#include "engine/audio_vae/test_checkpoint.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/host_copy.h"

namespace ltx::audio_vae {
namespace {

constexpr int64_t kMels = 5;

struct Sizes {
  int64_t n_fft;
  int64_t hop;
  int64_t frames;
};

/// Holds MelStft against the definition: n_fft - hop zeros in front, a dot product with every
/// basis row each hop, magnitude, filter bank, floored logarithm.
void ExpectDefinition(const Sizes& sizes) {
  const auto device = cpu::CpuDevice::Create({}).value();
  const int64_t bins = sizes.n_fft / 2 + 1;
  const int64_t samples = sizes.frames * sizes.hop;
  TestCheckpoint file;
  std::vector<float> bank(kMels * bins);
  for (size_t i = 0; i < bank.size(); ++i) bank[i] = 0.1f * static_cast<float>((i * 5) % 7);
  file.AddValues("mel_basis", Shape({kMels, bins}), bank);
  file.Add("stft_fn.forward_basis", Shape({2 * bins, 1, sizes.n_fft}));
  file.Add("stft_fn.inverse_basis", Shape({2 * bins, 1, sizes.n_fft}));
  file.Add("x", Shape({1, samples, 2}), 1.0f);
  checkpoint::WeightLoader loader = file.Loader(*device);
  const MelStft stft = MelStft::Load(loader, sizes.n_fft, sizes.hop, kMels).value();
  const Tensor x = loader.Get("x", Shape({1, samples, 2})).value();
  EXPECT_TRUE(loader.CheckAllConsumed().ok());
  const Tensor mel = stft.Forward(*device, x).value();
  ASSERT_EQ(mel.shape(), Shape({1, sizes.frames, 2 * kMels}));
  const std::vector<float> got = ToFloats(*device, mel).value();
  const std::vector<float> wave = ToFloats(*device, x).value();
  const std::vector<float> basis =
      loader.GetHost("stft_fn.forward_basis", Shape({2 * bins, 1, sizes.n_fft})).value();

  const int64_t lead = std::max<int64_t>(0, sizes.n_fft - sizes.hop);
  for (int64_t side = 0; side < 2; ++side) {
    for (int64_t t = 0; t < sizes.frames; ++t) {
      std::vector<double> spectrum(2 * bins, 0.0);
      for (int64_t row = 0; row < 2 * bins; ++row) {
        for (int64_t i = 0; i < sizes.n_fft; ++i) {
          const int64_t at = t * sizes.hop + i - lead;
          if (at >= 0) spectrum[row] += basis[row * sizes.n_fft + i] * wave[at * 2 + side];
        }
      }
      for (int64_t m = 0; m < kMels; ++m) {
        double sum = 0.0;
        for (int64_t k = 0; k < bins; ++k) {
          sum += bank[m * bins + k] * std::hypot(spectrum[k], spectrum[bins + k]);
        }
        EXPECT_NEAR(got[t * 2 * kMels + side * kMels + m], std::log(std::max(sum, 1e-5)), 1e-4);
      }
    }
  }
}

TEST(MelStftTest, WindowOfSeveralHops) { ExpectDefinition({32, 8, 5}); }
TEST(MelStftTest, WindowNotAMultipleOfTheHop) { ExpectDefinition({30, 8, 5}); }
TEST(MelStftTest, WindowOfOneHop) { ExpectDefinition({8, 8, 3}); }
TEST(MelStftTest, WindowShorterThanTheHop) { ExpectDefinition({6, 10, 4}); }

TEST(MelStftTest, SilenceIsTheFloor) {
  const auto device = cpu::CpuDevice::Create({}).value();
  TestCheckpoint file;
  file.Add("mel_basis", Shape({kMels, 9}));
  file.Add("stft_fn.forward_basis", Shape({18, 1, 16}));
  const MelStft stft = MelStft::Load(file.Loader(*device), 16, 4, kMels).value();
  const Tensor silence = ZeroTensor(*device, Shape({1, 8, 2}), DType::kF32).value();
  const Tensor mel = stft.Forward(*device, silence).value();
  const std::vector<float> values = ToFloats(*device, mel).value();
  for (const float value : values) {
    EXPECT_NEAR(value, std::log(1e-5), 1e-5);
  }
}

TEST(MelStftTest, RefusesBadSizes) {
  const auto device = cpu::CpuDevice::Create({}).value();
  TestCheckpoint file;
  const auto stft = MelStft::Load(file.Loader(*device), 16, 0, kMels);
  EXPECT_EQ(stft.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(stft.status().message().find("hop_length = 0"), std::string::npos);
}

}  // namespace
}  // namespace ltx::audio_vae
