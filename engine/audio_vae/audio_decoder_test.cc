#include "engine/audio_vae/audio_decoder.h"

#include <string>

#include "engine/audio_vae/test_checkpoint.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/host_copy.h"

namespace ltx::audio_vae {
namespace {

using checkpoint::AudioVaeConfig;
using checkpoint::CausalityAxis;

class AudioDecoderTest : public ::testing::Test {
 protected:
  absl::StatusOr<AudioDecoder> Load(const AudioVaeConfig& config) {
    file_.AddDecoder(config);
    return AudioDecoder::Load(file_.Loader(*device_), config);
  }
  Tensor Latent(int64_t frames, int64_t values) {
    std::vector<float> data(frames * values);
    for (size_t i = 0; i < data.size(); ++i) data[i] = 0.1f * static_cast<float>(i % 17) - 0.8f;
    return TensorFromFloats(*device_, data, Shape({1, frames, values})).value();
  }
  const std::unique_ptr<cpu::CpuDevice> device_ = cpu::CpuDevice::Create({}).value();
  TestCheckpoint file_;
};

TEST_F(AudioDecoderTest, CausalLengthsAreFourLMinusThree) {
  const AudioVaeConfig config = SmallVaeConfig();
  const AudioDecoder decoder = Load(config).value();
  for (const int64_t frames : {1, 2, 7}) {
    const Tensor mel = decoder.Forward(*device_, Latent(frames, 8)).value();
    EXPECT_EQ(mel.shape(), Shape({1, 4 * frames - 3, 64, 2}));
    EXPECT_EQ(decoder.OutputFrames(frames), 4 * frames - 3);
  }
}

TEST_F(AudioDecoderTest, NarrowResultIsPaddedWithZeros) {
  const AudioDecoder decoder = Load(SmallVaeConfig()).value();
  const Tensor mel = decoder.Forward(*device_, Latent(2, 8)).value();
  const std::vector<float> values = ToFloats(*device_, mel).value();
  // Four latent bins make sixteen; the rest of the configured 64 is padding.
  for (int64_t t = 0; t < 5; ++t) {
    for (int64_t bin = 16; bin < 64; ++bin) EXPECT_EQ(values[(t * 64 + bin) * 2], 0.0f);
  }
  EXPECT_NE(values[(4 * 64 + 15) * 2], 0.0f);
}

TEST_F(AudioDecoderTest, WithoutMelBinsTheResultIsCroppedToTheLatentBins) {
  AudioVaeConfig config = SmallVaeConfig();
  config.mel_bins.reset();
  const AudioDecoder decoder = Load(config).value();
  EXPECT_EQ(decoder.Forward(*device_, Latent(3, 8)).value().shape(), Shape({1, 9, 4, 2}));
}

TEST_F(AudioDecoderTest, NonCausalLengthsAreFourL) {
  AudioVaeConfig config = SmallVaeConfig();
  config.causality_axis = CausalityAxis::kNone;
  const AudioDecoder decoder = Load(config).value();
  EXPECT_EQ(decoder.Forward(*device_, Latent(3, 8)).value().shape(), Shape({1, 12, 64, 2}));
}

TEST_F(AudioDecoderTest, HeightCausalFramesDoNotSeeTheFuture) {
  const AudioDecoder decoder = Load(SmallVaeConfig()).value();
  const Tensor latent = Latent(4, 8);
  const Tensor shorter = device_->Slice(latent, 1, 0, 3).value();
  const std::vector<float> full =
      ToFloats(*device_, decoder.Forward(*device_, latent).value()).value();
  const std::vector<float> part =
      ToFloats(*device_, decoder.Forward(*device_, shorter).value()).value();
  for (size_t i = 0; i < part.size(); ++i) EXPECT_NEAR(full[i], part[i], 1e-4f);
}

TEST_F(AudioDecoderTest, RefusesOtherLatents) {
  const AudioDecoder decoder = Load(SmallVaeConfig()).value();
  for (const Shape& shape : {Shape({1, 0, 8}), Shape({1, 3, 16}), Shape({3, 8})}) {
    const Tensor latent = ZeroTensor(*device_, shape, DType::kF32).value();
    EXPECT_EQ(decoder.Forward(*device_, latent).status().code(), absl::StatusCode::kInvalidArgument)
        << shape.ToString();
  }
}

TEST_F(AudioDecoderTest, EncoderTensorsAreLeftAloneUnknownOnesAreNamed) {
  const AudioVaeConfig config = SmallVaeConfig();
  file_.Add("audio_vae.encoder.conv_in.conv.weight", Shape({8, 2, 3, 3}));
  EXPECT_TRUE(Load(config).ok());
  file_.Add("audio_vae.decoder.up.7.block.0.conv1.conv.weight", Shape({1}));
  const absl::Status status = Load(config).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("up.7.block.0.conv1.conv.weight"), std::string::npos);
}

TEST_F(AudioDecoderTest, ConfigErrorsNameTheKey) {
  AudioVaeConfig config = SmallVaeConfig();
  config.norm_type = checkpoint::AudioNorm::kGroup;
  absl::Status status = Load(config).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("causality_axis"), std::string::npos);

  config = SmallVaeConfig();
  config.z_channels = 3;
  status = Load(config).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("z_channels = 3"), std::string::npos);

  config = SmallVaeConfig();
  config.norm_type = checkpoint::AudioNorm::kGroup;
  config.causality_axis = CausalityAxis::kNone;
  status = Load(config).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("multiple of 32"), std::string::npos);
}

TEST_F(AudioDecoderTest, LongAttentionIsRefused) {
  AudioVaeConfig config = SmallVaeConfig();
  config.mid_block_add_attention = true;
  const AudioDecoder decoder = Load(config).value();
  EXPECT_TRUE(decoder.Forward(*device_, Latent(2, 8)).ok());
  const auto mel = decoder.Forward(*device_, Latent(AttentionBlock::kMaxPositions / 4 + 1, 8));
  EXPECT_EQ(mel.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(mel.status().message().find("positions"), std::string::npos);
}

}  // namespace
}  // namespace ltx::audio_vae
