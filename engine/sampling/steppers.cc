#include "engine/sampling/steppers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/status_macros.h"

namespace ltx::sampling {
namespace {

/// phi_1(z) = (e^z - 1) / z and phi_2(z) = (e^z - 1 - z) / z^2.
double Phi1(double z) { return std::fabs(z) < 1e-10 ? 1.0 : std::expm1(z) / z; }
double Phi2(double z) {
  // e^z - 1 - z cancels for small z: the series, whose sixth term is below 1e-17 there.
  if (std::fabs(z) < 1e-2) {
    double term = 0.5;
    double sum = term;
    for (int k = 3; k <= 8; ++k) sum += term *= z / k;
    return sum;
  }
  return (std::expm1(z) - z) / (z * z);
}

}  // namespace

AncestralStep AncestralStep::Between(const Sampler& sampler, float sigma, float sigma_next) {
  const float sigma_down = sigma_next * (1.0f + (sigma_next / sigma - 1.0f) * sampler.eta);
  AncestralStep step;
  step.down = sigma_down / sigma;
  if (sampler.eta <= 0.0f) return step;
  const float alpha_next = 1.0f - sigma_next;
  const float alpha_down = 1.0f - sigma_down;
  const float variance = sigma_next * sigma_next - sigma_down * sigma_down *
                                                       (alpha_next * alpha_next) /
                                                       (alpha_down * alpha_down);
  step.keep = alpha_next / alpha_down;
  step.inject = sampler.s_noise * std::sqrt(std::max(variance, 0.0f));
  return step;
}

absl::StatusOr<Tensor> AncestralStep::Apply(Device& device, const Tensor& x, const Tensor& x0,
                                            const Tensor& noise) const {
  LTX_ASSIGN_OR_RETURN(const Tensor lowered,
                       device.LinearCombination(down, x, 1.0f - down, x0, 0.0f, Tensor()));
  if (!noise.defined()) return lowered;
  return device.LinearCombination(keep, lowered, inject, noise, 0.0f, Tensor());
}

CfgPpStep CfgPpStep::Between(const Sampler& sampler, float sigma, float sigma_next) {
  // Keeps the ratio finite at sigma = 1.
  constexpr float kSmallestAlpha = std::numeric_limits<float>::epsilon();
  CfgPpStep step;
  step.sigma = sigma;
  step.alpha = std::max(1.0f - sigma, kSmallestAlpha);
  step.alpha_next = std::max(1.0f - sigma_next, kSmallestAlpha);
  const float ratio = sigma / step.alpha;
  const float ratio_next = sigma_next / step.alpha_next;
  float up = 0.0f;
  float down = ratio_next;
  if (sampler.eta != 0.0f) {
    const float squared = ratio * ratio;
    const float squared_next = ratio_next * ratio_next;
    const float variance = squared_next * std::max(squared - squared_next, 0.0f) / squared;
    up = std::min(sampler.eta * std::sqrt(variance), ratio_next);
    down = std::sqrt(std::max(squared_next - up * up, 0.0f));
  }
  step.down = step.alpha_next * down;
  step.inject = step.alpha_next * sampler.s_noise * up;
  return step;
}

absl::StatusOr<Tensor> CfgPpStep::Apply(Device& device, const Tensor& x, const Tensor& x0,
                                        const Tensor& unconditioned, const Tensor& noise) const {
  const double along = static_cast<double>(down) / sigma;
  std::vector<WeightedTerm> terms = {
      {x0, {alpha_next}}, {x, {along}}, {unconditioned, {-along * alpha}}};
  if (noise.defined()) terms.push_back({noise, {inject}});
  return device.WeightedSum(terms, x.dtype());
}

Res2sWeights Res2sWeights::Of(double h) {
  // The half step lies in the middle of the step's logarithm.
  constexpr double kHalf = 0.5;
  Res2sWeights weights;
  weights.a21 = kHalf * Phi1(-h * kHalf);
  weights.b2 = Phi2(-h) / kHalf;
  weights.b1 = Phi1(-h) - weights.b2;
  return weights;
}

SdeMix SdeMix::Between(double sigma, double sigma_next, double eta) {
  // Leaves a remainder of the next level to the deterministic part.
  constexpr double kMostNoise = 0.9999;
  const double up = std::min(sigma_next * eta, sigma_next * kMostNoise);
  if (sigma_next == 0.0 || up == 0.0) return {};
  const double residual = std::sqrt(std::max(sigma_next * sigma_next - up * up, 0.0));
  const double ratio = (1.0 - sigma_next) + residual;
  const double down = residual / ratio;
  // e = (x - x') / (sigma - sigma_next); ratio ((x - sigma e) + down e) + up z.
  const double along = ratio * (down - sigma) / (sigma - sigma_next);
  return {ratio + along, -along, up};
}

}  // namespace ltx::sampling
