#include "engine/audio_vae/decode_audio.h"

#include <cmath>
#include <limits>

#include "engine/audio_vae/test_checkpoint.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/host_copy.h"

namespace ltx::audio_vae {
namespace {

class DecodeAudioTest : public ::testing::TestWithParam<DType> {
 protected:
  DecodeAudioTest() {
    file_.AddDecoder(SmallVaeConfig());
    file_.AddVocoder(SmallVocoderConfig());
    const checkpoint::WeightLoader loader = file_.Loader(*device_, GetParam());
    decoder_ = AudioDecoder::Load(loader, SmallVaeConfig()).value();
    vocoder_ = Vocoder::Load(loader, SmallVocoderConfig()).value();
  }
  Tensor Latent(const Shape& shape, float last) {
    std::vector<float> values(shape.num_elements(), 0.25f);
    if (!values.empty()) values.back() = last;
    return TensorFromFloats(*device_, values, shape).value();
  }
  const std::unique_ptr<cpu::CpuDevice> device_ = cpu::CpuDevice::Create({}).value();
  TestCheckpoint file_;
  AudioDecoder decoder_;
  Vocoder vocoder_;
};

TEST_P(DecodeAudioTest, LengthIs480TimesFourLMinusThree) {
  for (const int64_t frames : {1, 2, 5}) {
    const Waveform waveform =
        DecodeAudio(*device_, decoder_, vocoder_, Latent(Shape({1, frames, 8}), 1.0f)).value();
    EXPECT_EQ(waveform.sample_rate, 48000);
    EXPECT_EQ(waveform.samples.dtype(), DType::kF32);
    EXPECT_EQ(waveform.samples.shape(), Shape({2, 480 * (4 * frames - 3)}));
  }
}

TEST_P(DecodeAudioTest, SidesComeOneAfterTheOther) {
  const Tensor latent = Latent(Shape({1, 2, 8}), 1.0f);
  const Waveform waveform = DecodeAudio(*device_, decoder_, vocoder_, latent).value();
  Tensor x = latent;
  if (GetParam() != DType::kF32) x = device_->Cast(x, GetParam()).value();
  const Tensor mel = decoder_.Forward(*device_, x).value();
  const std::vector<float> interleaved =
      ToFloats(*device_, vocoder_.Forward(*device_, mel).value()).value();
  const std::vector<float> planar = ToFloats(*device_, waveform.samples).value();
  const size_t length = planar.size() / 2;
  for (size_t i = 0; i < length; ++i) {
    EXPECT_EQ(planar[i], interleaved[2 * i]);
    EXPECT_EQ(planar[length + i], interleaved[2 * i + 1]);
  }
}

TEST_P(DecodeAudioTest, RefusesNoFramesAndBatches) {
  for (const Shape& shape : {Shape({1, 0, 8}), Shape({2, 3, 8}), Shape({1, 3, 9})}) {
    EXPECT_EQ(DecodeAudio(*device_, decoder_, vocoder_, Latent(shape, 1.0f)).status().code(),
              absl::StatusCode::kInvalidArgument)
        << shape.ToString();
  }
}

TEST_P(DecodeAudioTest, ReportsWhatIsNotFinite) {
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    const auto waveform = DecodeAudio(*device_, decoder_, vocoder_, Latent(Shape({1, 2, 8}), bad));
    EXPECT_EQ(waveform.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_NE(waveform.status().message().find("audio latent"), std::string::npos);
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, DecodeAudioTest, ::testing::Values(DType::kF32, DType::kBF16));

}  // namespace
}  // namespace ltx::audio_vae
