#include "engine/audio_vae/anti_aliased_activation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "engine/audio_vae/test_checkpoint.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/host_copy.h"

namespace ltx::audio_vae {
namespace {

using Kind = AntiAliasedActivation::Kind;

constexpr int64_t kChannels = 3;

struct Parameters {
  std::vector<float> up, down, alpha, beta;
};

/// Zero-stuffing and a full convolution, then the activation, then every second sample of a full
/// convolution: one channel.
std::vector<double> Definition(const std::vector<float>& x, const Parameters& parameters,
                               int64_t channel) {
  const int64_t length = static_cast<int64_t>(x.size());
  std::vector<double> up(2 * length);
  for (int64_t n = 0; n < 2 * length; ++n) {
    for (int64_t j = -8; j < length + 8; ++j) {
      // Tap 5 of the filter meets the sample itself.
      const int64_t tap = n - 2 * j + 5;
      if (tap < 0 || tap > 11) continue;
      up[n] += 2.0 * parameters.up[tap] * x[std::clamp<int64_t>(j, 0, length - 1)];
    }
    const double sine = std::sin(std::exp(static_cast<double>(parameters.alpha[channel])) * up[n]);
    up[n] += sine * sine / (std::exp(static_cast<double>(parameters.beta[channel])) + 1e-9);
  }
  std::vector<double> y(length);
  for (int64_t i = 0; i < length; ++i) {
    for (int64_t k = 0; k < 12; ++k) {
      y[i] += parameters.down[k] * up[std::clamp<int64_t>(2 * i + k - 5, 0, 2 * length - 1)];
    }
  }
  return y;
}

void ExpectDefinition(Kind kind, int64_t length) {
  const auto device = cpu::CpuDevice::Create({}).value();
  TestCheckpoint file;
  file.Add("a.act.alpha", Shape({kChannels}), 1.0f);
  if (kind == Kind::kSnakeBeta) file.Add("a.act.beta", Shape({kChannels}), 1.0f);
  // Lopsided filters, so that a reversed or shifted one shows.
  file.Add("a.upsample.filter", Shape({1, 1, 12}));
  file.Add("a.downsample.lowpass.filter", Shape({1, 1, 12}));
  file.Add("x", Shape({1, length, kChannels}), 2.0f);
  checkpoint::WeightLoader loader = file.Loader(*device);
  const AntiAliasedActivation activation =
      AntiAliasedActivation::Load(loader.Sub("a."), kChannels, kind).value();
  Parameters parameters;
  parameters.up = loader.GetHost("a.upsample.filter", Shape({1, 1, 12})).value();
  parameters.down = loader.GetHost("a.downsample.lowpass.filter", Shape({1, 1, 12})).value();
  parameters.alpha = loader.GetHost("a.act.alpha", Shape({kChannels})).value();
  parameters.beta = kind == Kind::kSnake ? parameters.alpha
                                         : loader.GetHost("a.act.beta", Shape({kChannels})).value();
  const Tensor x = loader.Get("x", Shape({1, length, kChannels})).value();
  const std::vector<float> input = ToFloats(*device, x).value();
  const Tensor result = activation.Forward(*device, x).value();
  const std::vector<float> y = ToFloats(*device, result).value();
  for (int64_t c = 0; c < kChannels; ++c) {
    std::vector<float> one(length);
    for (int64_t t = 0; t < length; ++t) one[t] = input[t * kChannels + c];
    const std::vector<double> want = Definition(one, parameters, c);
    for (int64_t t = 0; t < length; ++t) EXPECT_NEAR(y[t * kChannels + c], want[t], 2e-5);
  }
}

TEST(AntiAliasedActivationTest, SnakeBetaMatchesTheDefinition) {
  for (const int64_t length : {1, 2, 3, 7, 40}) ExpectDefinition(Kind::kSnakeBeta, length);
}

TEST(AntiAliasedActivationTest, SnakeUsesAlphaForBeta) {
  for (const int64_t length : {1, 40}) ExpectDefinition(Kind::kSnake, length);
}

TEST(AntiAliasedActivationTest, FiltersComeFromTheCheckpoint) {
  const auto device = cpu::CpuDevice::Create({}).value();
  TestCheckpoint file;
  file.AddSnake("a", kChannels);
  file.Remove("a.upsample.filter");
  const auto activation = AntiAliasedActivation::Load(file.Loader(*device).Sub("a."), kChannels);
  EXPECT_EQ(activation.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(activation.status().message().find("a.upsample.filter"), std::string::npos);
}

}  // namespace
}  // namespace ltx::audio_vae
