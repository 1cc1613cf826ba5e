#include "engine/sampling/steppers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "kernels/cpu/cpu_device.h"
#include "kernels/host_copy.h"

namespace ltx::sampling {
namespace {

class SteppersTest : public testing::Test {
 protected:
  SteppersTest() : device_(*cpu::CpuDevice::Create({1, nullptr})) {}
  Tensor One(float value) { return *TensorFromFloats(*device_, {&value, 1}, {1, 1, 1}); }
  float Value(const absl::StatusOr<Tensor>& tensor) { return (*ToFloats(*device_, *tensor))[0]; }

  std::unique_ptr<cpu::CpuDevice> device_;
};

TEST_F(SteppersTest, AncestralKeepsTheVarianceOfPureNoise) {
  // With x0 = 0 the latent is noise of level sigma; the step leaves noise of level sigma_next.
  Sampler sampler;
  for (const float eta : {0.3f, 1.0f}) {
    sampler.eta = eta;
    const AncestralStep step = AncestralStep::Between(sampler, 0.8f, 0.5f);
    const float kept = Value(step.Apply(*device_, One(0.8f), One(0.0f), One(0.0f)));
    const float injected = Value(step.Apply(*device_, One(0.0f), One(0.0f), One(1.0f)));
    EXPECT_GT(injected, 0.1f);
    EXPECT_NEAR(kept * kept + injected * injected, 0.25f, 1e-6f) << eta;
  }
}

TEST_F(SteppersTest, AncestralWithoutEtaIsEuler) {
  Sampler sampler;
  sampler.eta = 0.0f;
  const AncestralStep step = AncestralStep::Between(sampler, 0.8f, 0.5f);
  EXPECT_NEAR(Value(step.Apply(*device_, One(2.0f), One(1.0f), Tensor())),
              Value(device_->EulerStep(One(2.0f), One(1.0f), 0.8f, 0.5f)), 1e-6f);
}

TEST_F(SteppersTest, CfgPpStaysOnTheLineOfItsEstimates) {
  // x = alpha u + sigma d: without noise the step gives alpha' x0 + sigma' d.
  Sampler sampler;
  sampler.eta = 0.0f;
  const float u = 0.5f, d = -1.5f, x0 = 0.25f;
  const CfgPpStep step = CfgPpStep::Between(sampler, 0.75f, 0.5f);
  EXPECT_NEAR(Value(step.Apply(*device_, One(0.25f * u + 0.75f * d), One(x0), One(u), Tensor())),
              0.5f * x0 + 0.5f * d, 1e-6f);
  // At the pure noise of sigma = 1 the prediction counts for nothing yet.
  EXPECT_NEAR(Value(CfgPpStep::Between(sampler, 1.0f, 0.5f)
                        .Apply(*device_, One(d), One(x0), One(u), Tensor())),
              0.5f * x0 + 0.5f * d, 1e-6f);
}

TEST_F(SteppersTest, CfgPpNoiseIsPartOfTheNextLevel) {
  Sampler sampler;
  for (const float eta : {0.4f, 1.0f}) {
    sampler.eta = eta;
    const CfgPpStep step = CfgPpStep::Between(sampler, 0.75f, 0.5f);
    EXPECT_GT(step.inject, 0.05f);
    EXPECT_NEAR(step.down * step.down + step.inject * step.inject, 0.25f, 1e-6f);
  }
}

TEST(Res2sWeightsTest, IntegratesConstantAndLinearPredictionsExactly) {
  // In tau = -ln sigma the flow is x' = x0 - x. For x0 = c + k t at time t into the step of size h:
  // x(h) = e^-h x(0) + (1 - e^-h) c + (h - 1 + e^-h) k; the method sees x0 at 0 and at h / 2.
  for (const double h : {1e-6, 0.009, 0.011, 0.1, 0.7, 3.0}) {
    const Res2sWeights w = Res2sWeights::Of(h);
    const double x = 0.8, c = -0.3, k = 0.6;
    const double e1 = c - x;
    const double e2 = c + k * h / 2 - x;
    EXPECT_NEAR(x + h * (w.b1 * e1 + w.b2 * e2),
                std::exp(-h) * x - std::expm1(-h) * c + (h + std::expm1(-h)) * k, 1e-14)
        << h;
    EXPECT_NEAR(h * w.a21, -std::expm1(-h / 2), 1e-15);
  }
  EXPECT_EQ(Res2sWeights::Of(0.0).b1, 0.0);
  EXPECT_EQ(Res2sWeights::Of(0.0).b2, 1.0);
}

TEST(SdeMixTest, KeepsSignalAndVarianceOfAnEulerStep) {
  // x = alpha x0 + sigma z: after an exact advance and the mix, signal and noise have the next
  // level's weights.
  const double sigma = 0.8, next = 0.5;
  for (const double eta : {0.25, 0.5, 1.0}) {
    const SdeMix mix = SdeMix::Between(sigma, next, eta);
    const double signal = mix.sample * (1 - sigma) + mix.advanced * (1 - next);
    const double noise = mix.sample * sigma + mix.advanced * next;
    EXPECT_NEAR(signal, 1 - next, 1e-12);
    EXPECT_NEAR(noise * noise + mix.noise * mix.noise, next * next, 1e-12);
    EXPECT_NEAR(mix.noise, next * std::min(eta, 0.9999), 1e-12);
  }
}

TEST(SdeMixTest, MixesNothingInAtTheEndOrWithoutEta) {
  for (const SdeMix& mix : {SdeMix::Between(0.5, 0.0, 0.5), SdeMix::Between(0.5, 0.3, 0.0)}) {
    EXPECT_EQ(mix.sample, 0.0);
    EXPECT_EQ(mix.advanced, 1.0);
    EXPECT_EQ(mix.noise, 0.0);
  }
}

}  // namespace
}  // namespace ltx::sampling
