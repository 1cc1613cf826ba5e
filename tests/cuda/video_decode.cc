#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/video_vae/conv_decoder.h"
#include "engine/video_vae/test_weights.h"
#include "gtest/gtest.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/host_copy.h"
#include "kernels/shape_device.h"

namespace ltx::cuda {
namespace {

using checkpoint::VideoBlock;
using checkpoint::VideoBlockKind;
using video_vae::ConvDecoder;
using video_vae::DecodeParts;

VideoBlock Entry(VideoBlockKind kind, int64_t layers, int64_t multiplier) {
  VideoBlock block;
  block.kind = kind;
  block.num_layers = layers;
  block.multiplier = multiplier;
  return block;
}

/// The last two levels of the published decoders: 256 channels, then 128.
checkpoint::VideoDecoderConfig Config() {
  checkpoint::VideoDecoderConfig config;
  config.latent_channels = 128;
  config.base_channels = 128;
  config.timestep_conditioning = false;
  config.spatial_padding = checkpoint::SpatialPadding::kZeros;
  config.blocks = {Entry(VideoBlockKind::kResX, 2, 1), Entry(VideoBlockKind::kCompressSpace, 1, 2),
                   Entry(VideoBlockKind::kResX, 2, 1), Entry(VideoBlockKind::kCompressTime, 1, 1)};
  return config;
}

std::unique_ptr<ConvDecoder> Load(Device& device, DType dtype, const DecodeParts& parts) {
  video_vae::TestWeights weights;
  // Spread so that activations keep their size.
  const auto add = [&weights](const std::string& module, int64_t out, int64_t in) {
    weights.Add(module + ".weight", {out, in, 3, 3, 3}, [in](int64_t i) {
      return static_cast<float>((i * 7919) % 1009 - 504) / (300.0f * std::sqrt(27.0f * in));
    });
    weights.AddConstant(module + ".bias", {out}, 0.1f);
  };
  weights.AddConstant("per_channel_statistics.mean-of-means", {128}, 0.0f);
  weights.AddConstant("per_channel_statistics.std-of-means", {128}, 1.0f);
  add("decoder.conv_in.conv", 256, 128);
  add("decoder.up_blocks.0.conv.conv", 512, 256);
  add("decoder.up_blocks.2.conv.conv", 512, 256);
  for (int block = 0; block < 2; ++block) {
    for (const char* conv : {"conv1", "conv2"}) {
      add(absl::StrCat("decoder.up_blocks.1.res_blocks.", block, ".", conv, ".conv"), 256, 256);
      add(absl::StrCat("decoder.up_blocks.3.res_blocks.", block, ".", conv, ".conv"), 128, 128);
    }
  }
  add("decoder.conv_out.conv", 48, 128);
  return ConvDecoder::Load(Config(), weights.Loader(device, dtype), parts).value();
}

/// What a decode leaves behind.
struct Decoded {
  std::vector<float> frames;
  int64_t peak_bytes = 0;
  int64_t units = 0;
};

Decoded Decode(Device& device, DType dtype, const DecodeParts& parts, const Shape& shape) {
  const std::unique_ptr<ConvDecoder> decoder = Load(device, dtype, parts);
  std::vector<float> values(shape.num_elements());
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>((i * 104729) % 2003) / 1001.0f - 1.0f;
  }
  const Tensor latent = TensorFromFloats(device, values, shape).value();
  EXPECT_TRUE(device.Synchronize().ok());
  device.ledger().ResetPeaks();
  const int64_t resident = device.ledger().Read().total.live_bytes;
  Decoded run;
  const auto session = decoder->StartDecode(latent, {}).value();
  while (!session->done()) {
    const auto made = session->Advance();
    EXPECT_TRUE(made.ok()) << made.status();
    if (!made.ok()) return run;
    if (!made->has_value() || !device.holds_data()) continue;
    const std::vector<float> frames = ToFloats(device, (*made)->frames).value();
    run.frames.insert(run.frames.end(), frames.begin(), frames.end());
  }
  run.units = session->unit_count();
  run.peak_bytes = device.ledger().Read().total.peak_bytes - resident;
  return run;
}

TEST(VideoDecode, PartsHaveTheBitsOfTheWholeAndTheMemoryThatIsProjected) {
  const auto device = CudaDevice::Create({}).value();
  // 17 frames at 56 x 40 before the last level, 112 x 80 in it.
  const Shape latent = {1, 9, 56, 40, 128};
  constexpr int64_t kFrame = 112 * 80;
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const Decoded whole = Decode(*device, dtype, {0}, latent);
    EXPECT_EQ(whole.units, 1);
    for (const int64_t part : {4, 6, 8}) {
      const Decoded parts = Decode(*device, dtype, {part * kFrame}, latent);
      EXPECT_GT(parts.units, 17 / part);
      EXPECT_EQ(parts.frames, whole.frames) << DTypeName(dtype) << " by " << part;
      ShapeDevice shapes(device.get());
      const Decoded projected = Decode(shapes, dtype, {part * kFrame}, latent);
      EXPECT_EQ(projected.peak_bytes, parts.peak_bytes);
      std::printf("%s by %lld: %.1f MB, projected %.1f, whole %.1f\n",
                  std::string(DTypeName(dtype)).c_str(), static_cast<long long>(part),
                  static_cast<double>(parts.peak_bytes) * 1e-6,
                  static_cast<double>(projected.peak_bytes) * 1e-6,
                  static_cast<double>(whole.peak_bytes) * 1e-6);
    }
  }
}

}  // namespace
}  // namespace ltx::cuda
