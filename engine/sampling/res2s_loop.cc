#include "engine/sampling/res2s_loop.h"

#include <algorithm>
#include <cmath>

#include "kernels/status_macros.h"

namespace ltx::sampling {
namespace {

/// The level that a schedule ending at 0 ends at, for its logarithm is needed.
constexpr float kLastLevel = 0.0011f;
/// Where the refinement of the anchor converges and pays: small steps, away from the end.
constexpr double kRefinedStepSize = 0.5;
constexpr double kRefinedLevel = 0.03;
constexpr double kHalfStepEta = 0.5;

}  // namespace

double Res2sLoop::NextLevel() const {
  const float next = sigmas()[step() + 1];
  return next == 0.0f ? kLastLevel : next;
}

double Res2sLoop::StepSize() const { return -std::log(NextLevel() / Level()); }

Evaluation Res2sLoop::Position() const {
  Evaluation position;
  position.step = step();
  position.half_step = completed() % 2 == 1;
  if (step() + 1 == static_cast<int>(sigmas().size())) {
    position.sigma = kLastLevel;
  } else {
    position.sigma = position.half_step ? std::sqrt(Level() * NextLevel()) : Level();
  }
  return position;
}

absl::StatusOr<Tensor> Res2sLoop::Advance(Modality modality, const Estimates& estimates) {
  LTX_ASSIGN_OR_RETURN(const Tensor x0, Pinned(modality, estimates.denoised[modality]));
  if (step() + 1 == static_cast<int>(sigmas().size())) return x0;
  LTX_ASSIGN_OR_RETURN(const Tensor next, completed() % 2 == 0 ? AdvanceHalf(modality, x0)
                                                               : AdvanceWhole(modality, x0));
  return device().WeightedSum({{next, {1.0}}}, state(modality).latent.dtype());
}

absl::StatusOr<Tensor> Res2sLoop::AdvanceHalf(Modality modality, const Tensor& x0) {
  const Tensor& anchor = state(modality).latent;
  const double h = StepSize();
  const double weight = h * Res2sWeights::Of(h).a21;
  LTX_ASSIGN_OR_RETURN(const Tensor middle,
                       Mixed(modality, anchor, {{x0, weight}}, Level(),
                             std::sqrt(Level() * NextLevel()), kHalfStepEta, /*half_step=*/true));
  first_[modality] = x0;
  anchor_[modality] = anchor;
  if (sampler().refine_anchor && h < kRefinedStepSize && Level() > kRefinedLevel) {
    // The reference iterates anchor = middle - weight (x0 - anchor) a hundred times from the anchor
    // at hand. The weight is below 1/4, so that is the fixed point far below f64 precision.
    const double scale = 1.0 / (1.0 - weight);
    LTX_ASSIGN_OR_RETURN(
        anchor_[modality],
        device().WeightedSum({{middle, {scale}}, {x0, {-weight * scale}}}, DType::kF64));
  }
  return middle;
}

absl::StatusOr<Tensor> Res2sLoop::AdvanceWhole(Modality modality, const Tensor& x0) {
  const double h = StepSize();
  const Res2sWeights weights = Res2sWeights::Of(h);
  const Tensor anchor = std::exchange(anchor_[modality], Tensor());
  const Tensor first = std::exchange(first_[modality], Tensor());
  return Mixed(modality, anchor, {{first, h * weights.b1}, {x0, h * weights.b2}}, Level(),
               NextLevel(), sampler().eta, /*half_step=*/false);
}

std::vector<SdeMix> Res2sLoop::MixesOf(Modality modality, double sigma, double sigma_next,
                                       double eta) const {
  if (sampler().uniform_noise) return {SdeMix::Between(sigma, sigma_next, eta)};
  std::vector<SdeMix> mixes;
  for (const float mask : state(modality).mask) {
    mixes.push_back(SdeMix::Between(mask * sigma, mask * sigma_next, eta));
    // The reference leaves the whole state as it is if a single token takes no noise.
    if (mixes.back().noise == 0.0) return {SdeMix()};
  }
  return mixes;
}

absl::StatusOr<Tensor> Res2sLoop::Mixed(Modality modality, const Tensor& anchor,
                                        absl::Span<const Part> parts, double sigma,
                                        double sigma_next, double eta, bool half_step) {
  // Drawn whether it is used or not: the stream goes on.
  LTX_ASSIGN_OR_RETURN(const Tensor noise, DrawNoise(modality, DType::kF64, half_step));
  const std::vector<SdeMix> mixes = MixesOf(modality, sigma, sigma_next, eta);
  const std::vector<float>& mask = state(modality).mask;
  const bool pins = sampler().uniform_noise &&
                    std::any_of(mask.begin(), mask.end(), [](float m) { return m != 1.0f; });

  double rest = 1.0;
  for (const Part& part : parts) rest -= part.weight;
  const size_t count = pins ? mask.size() : mixes.size();
  // Everything is linear in the tensors, so mixing and pinning are one sum.
  const auto weights = [&](const auto& of_mix) {
    std::vector<double> values(count);
    for (size_t i = 0; i < count; ++i) {
      values[i] = (pins ? mask[i] : 1.0) * of_mix(mixes[mixes.size() == 1 ? 0 : i]);
    }
    return values;
  };
  std::vector<WeightedTerm> terms;
  terms.push_back(
      {anchor, weights([&](const SdeMix& mix) { return mix.sample + mix.advanced * rest; })});
  for (const Part& part : parts) {
    terms.push_back(
        {part.x, weights([&](const SdeMix& mix) { return mix.advanced * part.weight; })});
  }
  terms.push_back({noise, weights([](const SdeMix& mix) { return mix.noise; })});
  if (pins) {
    std::vector<double> pull(mask.size());
    std::transform(mask.begin(), mask.end(), pull.begin(), [](float m) { return 1.0f - m; });
    terms.push_back({state(modality).clean, pull});
  }
  return device().WeightedSum(terms, DType::kF64);
}

}  // namespace ltx::sampling
