#include "engine/dit/x0.h"

#include "engine/dit/test_model.h"
#include "gtest/gtest.h"

namespace ltx::dit {
namespace {

TEST(PredictDenoisedTest, SubtractsVelocityTimesTimestepPerToken) {
  const auto device = TestDevice();
  const auto model = LoadModel(*device, SmallConfig(), RandomFile(ShapesOf(SmallConfig())));
  ASSERT_TRUE(model.ok()) << model.status();
  TestInputs inputs;
  inputs.video.timesteps[1] = 0.0f;
  inputs.audio.timesteps = inputs.audio.sigma;
  ASSERT_TRUE(inputs.Upload(**model).ok());
  const auto prediction = PredictDenoised(**model, &inputs.video, &inputs.audio);
  ASSERT_TRUE(prediction.ok()) << prediction.status();
  const std::vector<float> velocity = Values(*device, prediction->velocity.video);
  const std::vector<float> denoised = Values(*device, prediction->denoised.video);
  ASSERT_EQ(denoised.size(), inputs.video_latent.size());
  for (size_t i = 0; i < denoised.size(); ++i) {
    const float timestep = inputs.video.timesteps[i / 5];
    EXPECT_FLOAT_EQ(denoised[i], inputs.video_latent[i] - velocity[i] * timestep) << i;
    if (timestep == 0.0f) {
      EXPECT_EQ(denoised[i], inputs.video_latent[i]) << i;
    }
  }
  const std::vector<float> audio_velocity = Values(*device, prediction->velocity.audio);
  const std::vector<float> audio_denoised = Values(*device, prediction->denoised.audio);
  for (size_t i = 0; i < audio_denoised.size(); ++i) {
    const float timestep = inputs.audio.sigma[i / (4 * 3)];
    EXPECT_FLOAT_EQ(audio_denoised[i], inputs.audio_latent[i] - audio_velocity[i] * timestep) << i;
  }
}

TEST(PredictDenoisedTest, AnAbsentStreamStaysAbsent) {
  const auto device = TestDevice();
  const auto model = LoadModel(*device, SmallConfig(), RandomFile(ShapesOf(SmallConfig())));
  ASSERT_TRUE(model.ok()) << model.status();
  TestInputs inputs;
  ASSERT_TRUE(inputs.Upload(**model).ok());
  const auto prediction = PredictDenoised(**model, &inputs.video, nullptr);
  ASSERT_TRUE(prediction.ok()) << prediction.status();
  EXPECT_TRUE(prediction->denoised.video.defined());
  EXPECT_FALSE(prediction->denoised.audio.defined());
}

}  // namespace
}  // namespace ltx::dit
