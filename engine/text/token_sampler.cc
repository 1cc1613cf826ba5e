#include "engine/text/token_sampler.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace ltx::text {
namespace {

/// The k-th best score; that of the worst if there are fewer.
float Threshold(absl::Span<const float> scores, int64_t k) {
  std::vector<float> best(scores.begin(), scores.end());
  const auto rank = std::clamp<int64_t>(k, 1, static_cast<int64_t>(best.size())) - 1;
  std::nth_element(best.begin(), best.begin() + rank, best.end(), std::greater<>());
  return best[static_cast<size_t>(rank)];
}

}  // namespace

std::vector<Candidate> CandidatesFor(absl::Span<const float> scores,
                                     const SamplingOptions& options) {
  std::vector<Candidate> candidates;
  if (scores.empty()) return candidates;
  const float threshold = Threshold(scores, options.top_k);
  const float highest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (!(scores[i] >= threshold) || !std::isfinite(scores[i])) continue;
    const double weight =
        std::exp((static_cast<double>(scores[i]) - highest) / options.temperature);
    candidates.push_back({static_cast<int32_t>(i), weight});
    sum += weight;
  }
  for (Candidate& candidate : candidates) candidate.probability /= sum;
  return candidates;
}

int32_t TokenSampler::Draw(absl::Span<const float> scores) {
  const std::vector<Candidate> candidates = CandidatesFor(scores, options_);
  // 53 bits: as many as a double in [0, 1) resolves.
  double left = static_cast<double>(generator_() >> 11) * 0x1p-53;
  for (const Candidate& candidate : candidates) {
    left -= candidate.probability;
    if (left < 0) return candidate.id;
  }
  // Rounding may leave a remainder.
  return candidates.empty() ? -1 : candidates.back().id;
}

}  // namespace ltx::text
