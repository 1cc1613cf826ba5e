#include "engine/audio_vae/vocoder.h"

#include <cmath>
#include <string>

#include "engine/audio_vae/test_checkpoint.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/host_copy.h"

namespace ltx::audio_vae {
namespace {

using checkpoint::VocoderConfig;

class VocoderTest : public ::testing::Test {
 protected:
  absl::Status LoadStatus(const VocoderConfig& config) {
    TestCheckpoint file;
    file.AddVocoder(config);
    return Vocoder::Load(file.Loader(*device_), config).status();
  }
  Tensor Mel(int64_t frames, float value) {
    const Shape shape({1, frames, 64, 2});
    return TensorFromFloats(*device_, std::vector<float>(shape.num_elements(), value), shape)
        .value();
  }
  const std::unique_ptr<cpu::CpuDevice> device_ = cpu::CpuDevice::Create({}).value();
};

TEST_F(VocoderTest, TwoStagesMake480SamplesPerFrame) {
  const VocoderConfig config = SmallVocoderConfig();
  TestCheckpoint file;
  file.AddVocoder(config);
  const Vocoder vocoder = Vocoder::Load(file.Loader(*device_), config).value();
  EXPECT_EQ(vocoder.sample_rate(), 48000);
  for (const int64_t frames : {1, 5}) {
    EXPECT_EQ(vocoder.OutputLength(frames), 480 * frames);
    const Tensor wave = vocoder.Forward(*device_, Mel(frames, 0.4f)).value();
    EXPECT_EQ(wave.shape(), Shape({1, 480 * frames, 2}));
    const std::vector<float> samples = ToFloats(*device_, wave).value();
    for (const float sample : samples) EXPECT_LE(std::abs(sample), 1.0f);
  }
}

TEST_F(VocoderTest, OneStageWidensToF32) {
  VocoderConfig config;
  config.generator = SmallGeneratorConfig(checkpoint::GeneratorConfig::ResBlock::kHifiGan);
  TestCheckpoint file;
  file.AddVocoder(config);
  const Vocoder vocoder = Vocoder::Load(file.Loader(*device_, DType::kBF16), config).value();
  EXPECT_EQ(vocoder.sample_rate(), 24000);
  const Tensor wave = vocoder.Forward(*device_, Mel(2, 0.1f)).value();
  EXPECT_EQ(wave.dtype(), DType::kF32);
  EXPECT_EQ(wave.shape(), Shape({1, 320, 2}));
}

TEST_F(VocoderTest, PartialHopsArePaddedAndCropped) {
  VocoderConfig config = SmallVocoderConfig();
  config.generator.upsample_rates = {5, 5, 2};  // 50 samples a frame, hop 80.
  config.generator.upsample_kernel_sizes = {11, 11, 4};
  TestCheckpoint file;
  file.AddVocoder(config);
  const Vocoder vocoder = Vocoder::Load(file.Loader(*device_), config).value();
  EXPECT_EQ(vocoder.OutputLength(3), 450);
  std::vector<int64_t> frames;
  const Tensor wave = vocoder
                          .Forward(*device_, Mel(3, 0.2f),
                                   [&](absl::string_view name, const Tensor& value) {
                                     if (name == "bwe_mel") frames.push_back(value.dim(1));
                                   })
                          .value();
  EXPECT_EQ(wave.shape(), Shape({1, 450, 2}));
  EXPECT_EQ(frames, std::vector<int64_t>({2}));
}

TEST_F(VocoderTest, UnknownTensorsAreNamed) {
  const VocoderConfig config = SmallVocoderConfig();
  TestCheckpoint file;
  file.AddVocoder(config);
  file.Add("vocoder.vocoder.resblocks.6.convs1.0.weight", Shape({1}));
  const absl::Status status = Vocoder::Load(file.Loader(*device_), config).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("resblocks.6.convs1.0.weight"), std::string::npos);
}

TEST_F(VocoderTest, MissingTensorsAreNamed) {
  const VocoderConfig config = SmallVocoderConfig();
  TestCheckpoint file;
  file.AddVocoder(config);
  file.Remove("vocoder.bwe_generator.act_post.act.beta");
  const absl::Status status = Vocoder::Load(file.Loader(*device_), config).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(status.message().find("vocoder.bwe_generator.act_post.act.beta"), std::string::npos);
}

TEST_F(VocoderTest, RatesMustFitTogether) {
  VocoderConfig config = SmallVocoderConfig();
  config.extension->hop_length = 40;
  absl::Status status = LoadStatus(config);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("hop_length"), std::string::npos);

  config = SmallVocoderConfig();
  config.extension->output_sampling_rate = 44100;
  status = LoadStatus(config);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("output_sampling_rate = 44100"), std::string::npos);

  config = SmallVocoderConfig();
  config.extension->num_mels = 32;
  status = LoadStatus(config);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("num_mels = 32"), std::string::npos);
}

TEST_F(VocoderTest, RefusesOtherMels) {
  const VocoderConfig config = SmallVocoderConfig();
  TestCheckpoint file;
  file.AddVocoder(config);
  const Vocoder vocoder = Vocoder::Load(file.Loader(*device_), config).value();
  for (const Shape& shape : {Shape({1, 0, 64, 2}), Shape({1, 3, 32, 2}), Shape({1, 3, 64, 1})}) {
    const Tensor mel = ZeroTensor(*device_, shape, DType::kF32).value();
    EXPECT_EQ(vocoder.Forward(*device_, mel).status().code(), absl::StatusCode::kInvalidArgument)
        << shape.ToString();
  }
}

}  // namespace
}  // namespace ltx::audio_vae
