#ifndef LTX_ENGINE_TEXT_GREEDY_GENERATOR_H_
#define LTX_ENGINE_TEXT_GREEDY_GENERATOR_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/text/text_tower.h"
#include "kernels/device.h"

namespace ltx::text {

struct GenerationOptions {
  int64_t max_new_tokens = 600;
  /// No run of this many tokens may occur twice in the whole sequence, padding and prompt included;
  /// 0: no such rule.
  int64_t no_repeat_ngram_size = 0;
  /// Any of them ends the text (and is part of it).
  std::vector<int32_t> stop_ids;
};

/// Tokens that `no_repeat_ngram_size` n forbids next: those that followed an earlier occurrence of
/// the last n - 1 tokens. Empty for n 0.
std::vector<int32_t> RepeatingTokens(absl::Span<const int32_t> sequence, int64_t n);

/// Continues a text with the most likely token at each step (the decoding of the reference's
/// prompt enhancement with a Gemma 4 model). The tower must outlive it.
class GreedyGenerator {
 public:
  static absl::StatusOr<GreedyGenerator> Create(Device* device, const TextTower* tower);

  struct Result {
    std::vector<int32_t> tokens;
    /// Scores of the first new token, before tokens were forbidden.
    std::vector<float> first_scores;
  };
  /// `row` is the prompt padded on the left, `padding` how many of its ids are padding.
  /// INVALID_ARGUMENT if nothing but padding is there, or the rule leaves no token to choose.
  absl::StatusOr<Result> Generate(absl::Span<const int32_t> row, int64_t padding,
                                  const GenerationOptions& options) const;

 private:
  GreedyGenerator(Device* device, const TextTower* tower, LinearWeight head)
      : device_(device), tower_(tower), head_(std::move(head)) {}

  Device* device_;
  const TextTower* tower_;
  LinearWeight head_;
};

}  // namespace ltx::text

#endif  // LTX_ENGINE_TEXT_GREEDY_GENERATOR_H_
