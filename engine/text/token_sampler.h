#ifndef LTX_ENGINE_TEXT_TOKEN_SAMPLER_H_
#define LTX_ENGINE_TEXT_TOKEN_SAMPLER_H_

#include <cstdint>
#include <random>
#include <vector>

#include "absl/types/span.h"

namespace ltx::text {

/// How the next token is drawn: softmax(scores / temperature) over the top_k best ones. What equals
/// the last of them counts, too, as in the public libraries.
struct SamplingOptions {
  double temperature = 0.7;
  int64_t top_k = 50;
  uint64_t seed = 0;
};

/// A token that may be drawn.
struct Candidate {
  int32_t id = 0;
  double probability = 0;
};

/// The tokens that may be drawn, by id. Empty if no score is finite.
std::vector<Candidate> CandidatesFor(absl::Span<const float> scores,
                                     const SamplingOptions& options);

/// Draws tokens. The same seed and scores give the same tokens everywhere (std::mt19937_64, whose
/// output the standard fixes), but not those of a PyTorch run: the distribution is the same, the
/// random stream is not.
class TokenSampler {
 public:
  explicit TokenSampler(const SamplingOptions& options)
      : options_(options), generator_(options.seed) {}

  /// -1 if no score is finite.
  int32_t Draw(absl::Span<const float> scores);

 private:
  const SamplingOptions options_;
  std::mt19937_64 generator_;
};

}  // namespace ltx::text

#endif  // LTX_ENGINE_TEXT_TOKEN_SAMPLER_H_
