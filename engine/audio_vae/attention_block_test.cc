#include "engine/audio_vae/attention_block.h"

#include <cmath>
#include <vector>

#include "engine/audio_vae/test_checkpoint.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/host_copy.h"

namespace ltx::audio_vae {
namespace {

constexpr int64_t kChannels = 4;
constexpr int64_t kPositions = 6;

using Map = std::vector<std::vector<double>>;  // [position][channel]

Map Pointwise(const Map& x, const std::vector<float>& weight, const std::vector<float>& bias) {
  Map y(x.size(), std::vector<double>(kChannels));
  for (size_t p = 0; p < x.size(); ++p) {
    for (int64_t o = 0; o < kChannels; ++o) {
      y[p][o] = bias[o];
      for (int64_t c = 0; c < kChannels; ++c) y[p][o] += weight[o * kChannels + c] * x[p][c];
    }
  }
  return y;
}

TEST(AttentionBlockTest, MatchesTheDefinition) {
  const auto device = cpu::CpuDevice::Create({}).value();
  TestCheckpoint file;
  for (const char* module : {"q", "k", "v", "proj_out"}) {
    file.AddConv(module, kChannels, kChannels, {1, 1});
  }
  file.Add("x", Shape({1, 2, 3, kChannels}), 2.0f);
  checkpoint::WeightLoader loader = file.Loader(*device);
  const AttentionBlock block =
      AttentionBlock::Load(loader, kChannels, checkpoint::AudioNorm::kPixel).value();
  const Tensor x = loader.Get("x", Shape({1, 2, 3, kChannels})).value();
  const Tensor result = block.Forward(*device, x).value();
  const std::vector<float> got = ToFloats(*device, result).value();
  const std::vector<float> flat = ToFloats(*device, x).value();

  Map input(kPositions, std::vector<double>(kChannels));
  Map normed = input;
  for (int64_t p = 0; p < kPositions; ++p) {
    double squares = 0.0;
    for (int64_t c = 0; c < kChannels; ++c) {
      input[p][c] = flat[p * kChannels + c];
      squares += input[p][c] * input[p][c];
    }
    for (int64_t c = 0; c < kChannels; ++c) {
      normed[p][c] = input[p][c] / std::sqrt(squares / kChannels + 1e-6);
    }
  }
  const auto apply = [&](const std::string& module, const Map& map) {
    return Pointwise(
        map, loader.GetHost(module + ".weight", Shape({kChannels, kChannels, 1, 1})).value(),
        loader.GetHost(module + ".bias", Shape({kChannels})).value());
  };
  const Map q = apply("q", normed);
  const Map k = apply("k", normed);
  const Map v = apply("v", normed);
  Map attended(kPositions, std::vector<double>(kChannels, 0.0));
  for (int64_t i = 0; i < kPositions; ++i) {
    std::vector<double> weights(kPositions);
    double total = 0.0;
    for (int64_t j = 0; j < kPositions; ++j) {
      double score = 0.0;
      for (int64_t c = 0; c < kChannels; ++c) score += q[i][c] * k[j][c];
      weights[j] = std::exp(score / 2.0);  // sqrt of four channels
      total += weights[j];
    }
    for (int64_t j = 0; j < kPositions; ++j) {
      for (int64_t c = 0; c < kChannels; ++c) attended[i][c] += weights[j] / total * v[j][c];
    }
  }
  const Map projected = apply("proj_out", attended);
  for (int64_t p = 0; p < kPositions; ++p) {
    for (int64_t c = 0; c < kChannels; ++c) {
      EXPECT_NEAR(got[p * kChannels + c], input[p][c] + projected[p][c], 1e-5);
    }
  }
}

}  // namespace
}  // namespace ltx::audio_vae
