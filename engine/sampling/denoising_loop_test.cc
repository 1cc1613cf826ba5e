#include "engine/sampling/denoising_loop.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cpu/cpu_device.h"
#include "kernels/host_copy.h"

namespace ltx::sampling {
namespace {

class DenoisingLoopTest : public testing::Test {
 protected:
  DenoisingLoopTest() : device_(*cpu::CpuDevice::Create({1, nullptr})) {}

  Tensor Filled(float value, const Shape& shape, DType dtype = DType::kF32) {
    return *TensorFromFloats(*device_, std::vector<float>(shape.num_elements(), value), shape,
                             dtype);
  }
  // A state of which the last token is kept at `clean`.
  LatentState State(float latent, float clean, const Shape& shape, DType dtype = DType::kF32) {
    LatentState state = *GeneratedState(*device_, Filled(latent, shape, dtype));
    state.clean = Filled(clean, shape, dtype);
    state.mask.back() = 0.0f;
    state.device_mask = *TensorFromFloats(*device_, state.mask, {shape.dim(0), shape.dim(1)});
    return state;
  }
  // Predicts `value` everywhere, `unconditioned` for the negative prompt.
  Estimates Constant(const Evaluation& evaluation, float value, float unconditioned = 0.0f) {
    Estimates estimates;
    for (const Modality m : kModalities) {
      const Tensor& latent = evaluation.latents[m];
      if (!latent.defined()) continue;
      estimates.denoised[m] = Filled(value, latent.shape(), latent.dtype());
      estimates.unconditioned[m] = Filled(unconditioned, latent.shape(), latent.dtype());
    }
    return estimates;
  }
  absl::Status Step(DenoisingLoop& loop, float value = 0.0f) {
    return loop.Accept(Constant(*loop.Next(), value));
  }
  std::vector<float> Latent(const DenoisingLoop& loop, Modality m = Modality::kVideo) {
    return *ToFloats(*device_, loop.latent(m));
  }
  // Noise of one value, in whatever dtype; `draws` gets "video0", "audio1 half", ...
  LoopNoise Noise(float value, std::vector<std::string>* draws = nullptr) {
    return [=](const LoopDraw& draw, const Shape& shape, DType dtype) -> absl::StatusOr<Tensor> {
      if (draws != nullptr) {
        draws->push_back(std::string(ModalityName(draw.modality)) + std::to_string(draw.index) +
                         (draw.half_step ? " half" : ""));
      }
      if (dtype != DType::kF64) return Filled(value, shape, dtype);
      return TensorFromDoubles(*device_, std::vector<double>(shape.num_elements(), value), shape);
    };
  }

  std::unique_ptr<cpu::CpuDevice> device_;
};

TEST_F(DenoisingLoopTest, EulerReachesThePredictionAndKeepsKeptTokens) {
  DenoisingLoop::Options options;
  options.sigmas = {1.0f, 0.5f, 0.0f};
  std::vector<std::string> stages;
  options.observer = [&](absl::string_view name, const Tensor&) { stages.emplace_back(name); };
  PerModality<LatentState> states;
  states.video = State(2.0f, 2.0f, {1, 3, 2});
  auto loop = *DenoisingLoop::Create(device_.get(), options, states);
  EXPECT_EQ(loop->evaluations(), 2);
  ASSERT_TRUE(Step(*loop).ok());
  EXPECT_EQ(Latent(*loop), (std::vector<float>{1, 1, 1, 1, 2, 2}));
  EXPECT_EQ(loop->Next()->step, 1);
  EXPECT_EQ(loop->Next()->sigma, 0.5);
  ASSERT_TRUE(Step(*loop).ok());
  EXPECT_EQ(Latent(*loop), (std::vector<float>{0, 0, 0, 0, 2, 2}));
  EXPECT_FALSE(loop->latent(Modality::kAudio).defined());
  EXPECT_TRUE(loop->done());
  EXPECT_EQ(loop->Next().status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(loop->Accept({}).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(stages, (std::vector<std::string>{"call0.video.in", "call0.video.x0", "call1.video.in",
                                              "call1.video.x0"}));
}

TEST_F(DenoisingLoopTest, AncestralDrawsVideoThenAudioAndNothingLast) {
  for (const Sampler::Kind kind : {Sampler::Kind::kEulerAncestral, Sampler::Kind::kEulerCfgPp}) {
    DenoisingLoop::Options options;
    options.sampler.kind = kind;
    options.sigmas = {1.0f, 0.75f, 0.5f, 0.0f};
    std::vector<std::string> draws;
    options.noise = Noise(1.0f, &draws);
    PerModality<LatentState> states;
    states.video = State(1.0f, 3.0f, {1, 2, 1});
    states.audio = State(1.0f, 4.0f, {1, 3, 1});
    auto loop = *DenoisingLoop::Create(device_.get(), options, states);
    while (!loop->done()) {
      ASSERT_TRUE(Step(*loop).ok());
      // A kept token is pinned at every step, noise or not.
      EXPECT_EQ(Latent(*loop).back(), 3.0f);
      EXPECT_EQ(Latent(*loop, Modality::kAudio).back(), 4.0f);
    }
    EXPECT_EQ(draws, (std::vector<std::string>{"video0", "audio1", "video2", "audio3"}));
    EXPECT_EQ(Latent(*loop).front(), 0.0f);
  }
}

TEST_F(DenoisingLoopTest, CfgPpFollowsTheNegativePrompt) {
  DenoisingLoop::Options options;
  options.sampler.kind = Sampler::Kind::kEulerCfgPp;
  options.sampler.eta = 0.0f;
  options.sigmas = {0.5f, 0.25f, 0.0f};
  PerModality<LatentState> states;
  states.video = *GeneratedState(*device_, Filled(1.0f, {1, 1, 1}));
  auto loop = *DenoisingLoop::Create(device_.get(), options, states);
  // d = (1 - 0.5 * 0.4) / 0.5 = 1.6; 0.75 * 2 + 0.25 * 1.6.
  ASSERT_TRUE(loop->Accept(Constant(*loop->Next(), 2.0f, 0.4f)).ok());
  EXPECT_NEAR(Latent(*loop)[0], 1.9f, 1e-6f);
  Estimates without = Constant(*loop->Next(), 2.0f);
  without.unconditioned = {};
  EXPECT_EQ(loop->Accept(without).code(), absl::StatusCode::kInternal);
}

TEST_F(DenoisingLoopTest, GradientEstimationExtrapolatesTheVelocity) {
  DenoisingLoop::Options options;
  options.sampler.kind = Sampler::Kind::kGradientEstimating;
  options.sigmas = {1.0f, 0.5f, 0.25f, 0.0f};
  PerModality<LatentState> states;
  states.video = *GeneratedState(*device_, Filled(1.0f, {1, 1, 1}));
  auto loop = *DenoisingLoop::Create(device_.get(), options, states);
  ASSERT_TRUE(Step(*loop, 0.0f).ok());  // v = 1: 1 - 0.5
  EXPECT_FLOAT_EQ(Latent(*loop)[0], 0.5f);
  ASSERT_TRUE(Step(*loop, 0.25f).ok());  // v = 0.5, extrapolated 2 (0.5 - 1) + 1 = 0
  EXPECT_FLOAT_EQ(Latent(*loop)[0], 0.5f);
  ASSERT_TRUE(Step(*loop, 0.125f).ok());  // The last step takes the prediction.
  EXPECT_FLOAT_EQ(Latent(*loop)[0], 0.125f);
}

class Res2sLoopTest : public DenoisingLoopTest {
 protected:
  // The loop's latents after each evaluation of a model that predicts 0.2 x + 1.
  std::vector<float> Run(const Sampler& sampler, std::vector<float> sigmas, float noise,
                         DType dtype = DType::kF32) {
    DenoisingLoop::Options options;
    options.sampler = sampler;
    options.sigmas = std::move(sigmas);
    options.noise = Noise(noise);
    PerModality<LatentState> states;
    states.video = *GeneratedState(*device_, Filled(1.0f, {1, 1, 1}, dtype));
    auto loop = *DenoisingLoop::Create(device_.get(), options, states);
    std::vector<float> latents;
    while (!loop->done()) {
      const Evaluation evaluation = *loop->Next();
      const float x = (*ToFloats(*device_, evaluation.latents.video))[0];
      EXPECT_TRUE(loop->Accept(Constant(evaluation, 0.2f * x + 1.0f)).ok());
      latents.push_back(Latent(*loop)[0]);
    }
    return latents;
  }
};

TEST_F(Res2sLoopTest, TwoEvaluationsAStepAndOneMoreAtTheEnd) {
  DenoisingLoop::Options options;
  options.sampler = Sampler::Res2s();
  options.sigmas = {0.8f, 0.2f, 0.0f};
  std::vector<std::string> draws;
  options.noise = Noise(1.0f, &draws);
  PerModality<LatentState> states;
  states.video = State(1.0f, 3.0f, {1, 2, 1});
  states.audio = State(1.0f, 4.0f, {1, 2, 1});
  auto loop = *DenoisingLoop::Create(device_.get(), options, states);
  ASSERT_EQ(loop->evaluations(), 5);
  std::vector<double> levels;
  std::vector<int> steps;
  std::vector<bool> halves;
  while (!loop->done()) {
    const Evaluation evaluation = *loop->Next();
    levels.push_back(evaluation.sigma);
    steps.push_back(evaluation.step);
    halves.push_back(evaluation.half_step);
    ASSERT_TRUE(Step(*loop, 0.5f).ok());
    EXPECT_EQ(Latent(*loop).back(), 3.0f);
    EXPECT_EQ(Latent(*loop, Modality::kAudio).back(), 4.0f);
  }
  EXPECT_EQ(levels[0], 0.8f);
  EXPECT_EQ(levels[1], std::sqrt(0.8f * static_cast<double>(0.2f)));
  EXPECT_EQ(levels[2], 0.2f);
  EXPECT_EQ(levels[3], std::sqrt(0.2f * static_cast<double>(0.0011f)));
  EXPECT_EQ(levels[4], 0.0011f);
  EXPECT_EQ(steps, (std::vector<int>{0, 0, 1, 1, 2}));
  EXPECT_EQ(halves, (std::vector<bool>{false, true, false, true, false}));
  EXPECT_EQ(draws, (std::vector<std::string>{"video0 half", "audio1 half", "video2", "audio3",
                                             "video4 half", "audio5 half", "video6", "audio7"}));
  EXPECT_EQ(Latent(*loop)[0], 0.5f);
}

TEST_F(Res2sLoopTest, OneStepByHand) {
  Sampler sampler = Sampler::Res2s();
  sampler.eta = 0.0f;
  // Too large a step to refine: h = ln 2.
  const std::vector<float> latents = Run(sampler, {0.8f, 0.4f}, 0.0f);
  const double h = std::log(2.0);
  const double sigma = 0.8f, next = 0.4f, sub = std::sqrt(sigma * next);
  const double e1 = 0.2f + 1.0f - 1.0;
  double middle = 1.0 - std::expm1(-h / 2) * e1;
  // Half steps always mix: without noise they lose half of the next level's variance.
  const double residual = std::sqrt(0.75) * sub;
  const double ratio = 1 - sub + residual;
  const double e = (1.0 - middle) / (sigma - sub);
  middle = ratio * ((1.0 - sigma * e) + residual / ratio * e);
  EXPECT_NEAR(latents[0], middle, 1e-6);
  const double e2 = 0.2 * middle + 1.0 - 1.0;
  const double phi1 = -std::expm1(-h) / h;
  const double b2 = 2 * (std::expm1(-h) + h) / (h * h);
  EXPECT_NEAR(latents[1], 1.0 + h * ((phi1 - b2) * e1 + b2 * e2), 1e-6);
}

TEST_F(Res2sLoopTest, RefinementIsTheFixedPointOfTheIteration) {
  Sampler sampler = Sampler::Res2s();
  const std::vector<float> sigmas = {0.9f, 0.8f};
  const std::vector<float> refined = Run(sampler, sigmas, 0.7f);
  sampler.refine_anchor = false;
  const std::vector<float> plain = Run(sampler, sigmas, 0.7f);
  EXPECT_EQ(refined[0], plain[0]);
  EXPECT_GT(std::fabs(refined[1] - plain[1]), 1e-3);

  // The reference's iteration, from the state that the loop gave the model at the half step.
  const double h = std::log(static_cast<double>(0.9f) / 0.8f);
  const double weight = -std::expm1(-h / 2);
  const double x0 = 0.2f + 1.0f, middle = refined[0];
  double anchor = 1.0;
  for (int i = 0; i < 100; ++i) anchor = middle - weight * (x0 - anchor);
  const double second = 0.2 * middle + 1.0;
  const double phi1 = -std::expm1(-h) / h;
  const double b2 = 2 * (std::expm1(-h) + h) / (h * h);
  const double advanced = anchor + h * ((phi1 - b2) * (x0 - anchor) + b2 * (second - anchor));
  const double sigma = 0.9f, next = 0.8f;
  const double residual = std::sqrt(0.75) * next;
  const double ratio = 1 - next + residual;
  const double e = (anchor - advanced) / (sigma - next);
  EXPECT_NEAR(refined[1], ratio * ((anchor - sigma * e) + residual / ratio * e) + 0.5 * next * 0.7,
              1e-5);
}

TEST_F(Res2sLoopTest, NoRefinementAtLargeStepsOrLowLevels) {
  Sampler plain = Sampler::Res2s();
  plain.refine_anchor = false;
  for (const std::vector<float>& sigmas : {std::vector<float>{0.9f, 0.5f}, {0.03f, 0.025f}}) {
    EXPECT_EQ(Run(Sampler::Res2s(), sigmas, 0.7f), Run(plain, sigmas, 0.7f));
  }
}

TEST_F(Res2sLoopTest, PerTokenNoiseStopsForAKeptToken) {
  const auto run = [&](bool uniform, bool keep, float noise) {
    DenoisingLoop::Options options;
    options.sampler = Sampler::Res2s();
    options.sampler.uniform_noise = uniform;
    options.sigmas = {0.9f, 0.5f};
    options.noise = Noise(noise);
    PerModality<LatentState> states;
    states.video =
        keep ? State(1.0f, 3.0f, {1, 2, 1}) : *GeneratedState(*device_, Filled(1.0f, {1, 2, 1}));
    auto loop = *DenoisingLoop::Create(device_.get(), options, states);
    while (!loop->done()) EXPECT_TRUE(Step(*loop, 0.5f).ok());
    return Latent(*loop)[0];
  };
  EXPECT_NE(run(true, true, 1.0f), run(true, true, 0.0f));
  EXPECT_NE(run(false, false, 1.0f), run(false, false, 0.0f));
  EXPECT_EQ(run(false, true, 1.0f), run(false, true, 0.0f));
  EXPECT_FLOAT_EQ(run(false, false, 1.0f), run(true, false, 1.0f));
}

TEST_F(Res2sLoopTest, StatesAreRoundedOnlyForTheModel) {
  // In bfloat16 the anchor of a refined step keeps what rounding the half step loses.
  const std::vector<float> wide = Run(Sampler::Res2s(), {0.9f, 0.89f}, 0.7f);
  const std::vector<float> narrow = Run(Sampler::Res2s(), {0.9f, 0.89f}, 0.7f, DType::kBF16);
  for (size_t i = 0; i < wide.size(); ++i) EXPECT_NEAR(narrow[i], wide[i], 0.01f) << i;
  EXPECT_EQ(narrow[0], RoundToBFloat16(wide[0]));
}

TEST_F(DenoisingLoopTest, RefusesWhatIsNoSchedule) {
  PerModality<LatentState> states;
  states.video = State(1.0f, 1.0f, {1, 2, 1});
  DenoisingLoop::Options options;
  for (const std::vector<float>& sigmas :
       {std::vector<float>{}, {1.0f}, {0.5f, 1.0f}, {1.0f, 0.0f, 0.0f}, {-1.0f, -2.0f}}) {
    options.sigmas = sigmas;
    EXPECT_EQ(DenoisingLoop::Create(device_.get(), options, states).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  options.sigmas = {1.0f, 0.0f};
  EXPECT_FALSE(DenoisingLoop::Create(device_.get(), options, {}).ok());
  options.sigmas = {1.0f, 1.0f, 0.0f};
  EXPECT_TRUE(DenoisingLoop::Create(device_.get(), options, states).ok());
  // The size of a step of res_2s is a logarithm.
  options.sampler = Sampler::Res2s();
  options.noise = Noise(0.0f);
  EXPECT_EQ(DenoisingLoop::Create(device_.get(), options, states).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(DenoisingLoopTest, RefusesOptionsOutOfRangeAndMissingNoise) {
  PerModality<LatentState> states;
  states.video = State(1.0f, 1.0f, {1, 2, 1});
  DenoisingLoop::Options options;
  options.sigmas = {1.0f, 0.0f};
  options.sampler.eta = 1.5f;
  EXPECT_EQ(DenoisingLoop::Create(device_.get(), options, states).status().message(),
            "sampler eta is 1.5; 0 to 1 would be legal");
  options.sampler = {};
  options.sampler.gamma = std::nanf("");
  EXPECT_FALSE(DenoisingLoop::Create(device_.get(), options, states).ok());
  for (const Sampler::Kind kind :
       {Sampler::Kind::kEulerAncestral, Sampler::Kind::kEulerCfgPp, Sampler::Kind::kRes2s}) {
    options.sampler = {};
    options.sampler.kind = kind;
    EXPECT_EQ(DenoisingLoop::Create(device_.get(), options, states).status().code(),
              absl::StatusCode::kFailedPrecondition);
  }
}

TEST_F(DenoisingLoopTest, RefusesEstimatesThatDoNotFit) {
  PerModality<LatentState> states;
  states.video = State(1.0f, 1.0f, {1, 2, 1});
  DenoisingLoop::Options options;
  options.sigmas = {1.0f, 0.0f};
  auto loop = *DenoisingLoop::Create(device_.get(), options, states);
  Estimates estimates;
  EXPECT_EQ(loop->Accept(estimates).code(), absl::StatusCode::kInternal);
  estimates.denoised.video = Filled(0.0f, {1, 3, 1});
  EXPECT_EQ(loop->Accept(estimates).code(), absl::StatusCode::kInternal);
  estimates.denoised.video = Filled(0.0f, {1, 2, 1}, DType::kBF16);
  EXPECT_EQ(loop->Accept(estimates).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(loop->completed(), 0);
}

}  // namespace
}  // namespace ltx::sampling
