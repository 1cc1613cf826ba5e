#include "engine/sampling/denoising_loop.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/sampling/noise_source.h"
#include "engine/sampling/torch_cpu_generator.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/host_copy.h"

namespace ltx::sampling {
namespace {

class DenoisingLoopTest : public testing::Test {
 protected:
  DenoisingLoopTest() : device_(*cpu::CpuDevice::Create({1, nullptr})) {}

  Tensor Filled(float value, const Shape& shape) {
    return *TensorFromFloats(*device_, std::vector<float>(shape.num_elements(), value), shape);
  }
  // A state of which the last token is kept at `clean`.
  LatentState State(float latent, float clean, const Shape& shape) {
    LatentState state = *GeneratedState(*device_, Filled(latent, shape));
    state.clean = Filled(clean, shape);
    state.mask.back() = 0.0f;
    state.device_mask = *TensorFromFloats(*device_, state.mask, {shape.dim(0), shape.dim(1)});
    return state;
  }
  // Predicts zeros.
  Denoiser Zeros() {
    return [this](const PerModality<Tensor>& latents, int step,
                  float sigma) -> absl::StatusOr<PerModality<Tensor>> {
      ++evaluations_;
      PerModality<Tensor> denoised;
      for (const Modality m : kModalities) {
        if (latents[m].defined()) denoised[m] = Filled(0.0f, latents[m].shape());
      }
      return denoised;
    };
  }

  std::unique_ptr<cpu::CpuDevice> device_;
  int evaluations_ = 0;
};

TEST_F(DenoisingLoopTest, EulerReachesThePredictionAndKeepsKeptTokens) {
  DenoisingLoop::Options options;
  options.sigmas = {1.0f, 0.5f, 0.0f};
  options.denoiser = Zeros();
  std::vector<std::string> stages;
  options.observer = [&](absl::string_view name, const Tensor&) { stages.emplace_back(name); };
  PerModality<LatentState> states;
  states.video = State(2.0f, 2.0f, {1, 3, 2});
  auto loop = *DenoisingLoop::Create(device_.get(), options, states);
  EXPECT_EQ(loop->steps(), 2);
  ASSERT_TRUE(loop->Step().ok());
  EXPECT_EQ(*ToFloats(*device_, loop->latent(Modality::kVideo)),
            (std::vector<float>{1, 1, 1, 1, 2, 2}));
  ASSERT_TRUE(loop->Step().ok());
  EXPECT_EQ(*ToFloats(*device_, loop->latent(Modality::kVideo)),
            (std::vector<float>{0, 0, 0, 0, 2, 2}));
  EXPECT_FALSE(loop->latent(Modality::kAudio).defined());
  EXPECT_EQ(evaluations_, 2);
  EXPECT_EQ(loop->Step().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(stages, (std::vector<std::string>{"call0.video.in", "call0.video.x0", "call1.video.in",
                                              "call1.video.x0"}));
}

TEST_F(DenoisingLoopTest, AncestralDrawsVideoThenAudioAndNothingLast) {
  DenoisingLoop::Options options;
  options.sampler.kind = Sampler::Kind::kEulerAncestral;
  options.sigmas = {1.0f, 0.75f, 0.5f, 0.0f};
  options.denoiser = Zeros();
  std::vector<std::string> draws;
  options.noise = [&](Modality m, int draw, const Shape& shape, DType) -> absl::StatusOr<Tensor> {
    draws.push_back(std::string(ModalityName(m)) + std::to_string(draw));
    return Filled(1.0f, shape);
  };
  PerModality<LatentState> states;
  states.video = State(1.0f, 3.0f, {1, 2, 1});
  states.audio = State(1.0f, 4.0f, {1, 3, 1});
  auto loop = *DenoisingLoop::Create(device_.get(), options, states);
  while (!loop->done()) {
    ASSERT_TRUE(loop->Step().ok());
    // A kept token is pinned at every step, noise or not.
    EXPECT_EQ(ToFloats(*device_, loop->latent(Modality::kVideo))->back(), 3.0f);
    EXPECT_EQ(ToFloats(*device_, loop->latent(Modality::kAudio))->back(), 4.0f);
  }
  EXPECT_EQ(draws, (std::vector<std::string>{"video0", "audio1", "video2", "audio3"}));
  EXPECT_EQ(ToFloats(*device_, loop->latent(Modality::kVideo))->front(), 0.0f);
}

TEST_F(DenoisingLoopTest, FullyAncestralStepKeepsUnitVarianceOfPureNoise) {
  // With x0 = 0 the latent is pure noise of level sigma; after the step its level is sigma_next:
  // keep^2 down^2 sigma^2 + inject^2 = sigma_next^2.
  DenoisingLoop::Options options;
  options.sampler.kind = Sampler::Kind::kEulerAncestral;
  options.sigmas = {0.8f, 0.5f, 0.0f};
  options.denoiser = Zeros();
  float noise = 0.0f;
  options.noise = [&](Modality, int, const Shape& shape, DType) -> absl::StatusOr<Tensor> {
    return Filled(noise, shape);
  };
  const auto step = [&](float latent, float drawn) {
    noise = drawn;
    PerModality<LatentState> states;
    states.video = *GeneratedState(*device_, Filled(latent, {1, 1, 1}));
    auto loop = *DenoisingLoop::Create(device_.get(), options, states);
    EXPECT_TRUE(loop->Step().ok());
    return ToFloats(*device_, loop->latent(Modality::kVideo))->front();
  };
  const float kept = step(0.8f, 0.0f);
  const float injected = step(0.0f, 1.0f);
  EXPECT_GT(injected, 0.1f);
  EXPECT_NEAR(kept * kept + injected * injected, 0.25f, 1e-6f);
}

TEST_F(DenoisingLoopTest, RefusesWhatIsNoSchedule) {
  PerModality<LatentState> states;
  states.video = State(1.0f, 1.0f, {1, 2, 1});
  for (const std::vector<float>& sigmas :
       {std::vector<float>{}, {1.0f}, {0.5f, 1.0f}, {1.0f, 0.0f, 0.0f}, {-1.0f, -2.0f}}) {
    DenoisingLoop::Options options;
    options.sigmas = sigmas;
    EXPECT_FALSE(DenoisingLoop::Create(device_.get(), options, states).ok());
  }
  DenoisingLoop::Options options;
  options.sigmas = {1.0f, 0.0f};
  EXPECT_FALSE(DenoisingLoop::Create(device_.get(), options, {}).ok());
}

TEST_F(DenoisingLoopTest, LoopNoiseHasItsOwnStream) {
  const auto make = [](uint64_t seed) { return std::make_unique<TorchCpuGenerator>(seed); };
  GeneratedNoise noise(make, 7, 10007, DType::kF32);
  const auto draw = [&](NoiseDraw::Use use, int stage) {
    return *ToFloats(
        *device_, *noise.Draw(*device_, {use, stage, Modality::kVideo, 0}, {1, 4, 4}, DType::kF32));
  };
  TorchCpuGenerator main(7), loop(10007);
  EXPECT_EQ(draw(NoiseDraw::Use::kInitial, 1), *main.Draw(16, DType::kF32));
  const std::vector<float> first_of_loop = *loop.Draw(16, DType::kF32);
  EXPECT_EQ(draw(NoiseDraw::Use::kLoop, 1), first_of_loop);
  EXPECT_EQ(draw(NoiseDraw::Use::kInitial, 1), *main.Draw(16, DType::kF32));
  EXPECT_EQ(draw(NoiseDraw::Use::kLoop, 1), *loop.Draw(16, DType::kF32));
  // The loop of another stage starts its stream anew.
  EXPECT_EQ(draw(NoiseDraw::Use::kLoop, 2), first_of_loop);
  EXPECT_EQ(draw(NoiseDraw::Use::kDecode, 2), *main.Draw(16, DType::kF32));
}

}  // namespace
}  // namespace ltx::sampling
