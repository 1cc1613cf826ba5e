#include "engine/text/greedy_generator.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::text {

std::vector<int32_t> RepeatingTokens(absl::Span<const int32_t> sequence, int64_t n) {
  std::vector<int32_t> tokens;
  const auto length = static_cast<int64_t>(sequence.size());
  if (n <= 0 || length < n) return tokens;
  const auto tail = sequence.end() - (n - 1);
  for (int64_t i = 0; i + n <= length; ++i) {
    const auto begin = sequence.begin() + i;
    if (std::equal(begin, begin + (n - 1), tail)) tokens.push_back(*(begin + (n - 1)));
  }
  return tokens;
}

absl::StatusOr<GreedyGenerator> GreedyGenerator::Create(Device* device, const TextTower* tower) {
  LTX_ASSIGN_OR_RETURN(LinearWeight head, tower->PrepareLogitHead());
  return GreedyGenerator(device, tower, std::move(head));
}

absl::StatusOr<GreedyGenerator::Result> GreedyGenerator::Generate(
    absl::Span<const int32_t> row, int64_t padding, const GenerationOptions& options) const {
  if (padding < 0 || padding >= static_cast<int64_t>(row.size())) {
    return absl::InvalidArgumentError("text generation: the prompt has no tokens");
  }
  std::vector<int32_t> sequence(row.begin(), row.end());
  std::vector<int32_t> pending(row.begin() + padding, row.end());
  TextTower::Cache cache;
  int64_t position = 0;
  Result result;
  while (static_cast<int64_t>(result.tokens.size()) < options.max_new_tokens) {
    LTX_ASSIGN_OR_RETURN(const std::vector<Tensor> states,
                         tower_->Forward(pending, position, {}, &cache));
    const auto count = static_cast<int64_t>(pending.size());
    position += count;
    LTX_ASSIGN_OR_RETURN(const Tensor last, device_->Slice(states.back(), 1, count - 1, count));
    LTX_ASSIGN_OR_RETURN(const Tensor logits, tower_->Logits(last, head_));
    LTX_ASSIGN_OR_RETURN(std::vector<float> scores, ToFloats(*device_, logits));
    if (result.tokens.empty()) result.first_scores = scores;
    constexpr float kForbidden = -std::numeric_limits<float>::infinity();
    for (const int32_t id : RepeatingTokens(sequence, options.no_repeat_ngram_size)) {
      if (static_cast<size_t>(id) < scores.size()) scores[static_cast<size_t>(id)] = kForbidden;
    }
    const auto best = std::max_element(scores.begin(), scores.end());
    if (*best == kForbidden) {
      return absl::InvalidArgumentError(
          "text generation: no_repeat_ngram_size leaves no token to choose");
    }
    const auto token = static_cast<int32_t>(best - scores.begin());
    result.tokens.push_back(token);
    sequence.push_back(token);
    pending = {token};
    if (std::find(options.stop_ids.begin(), options.stop_ids.end(), token) !=
        options.stop_ids.end()) {
      break;
    }
  }
  return result;
}

}  // namespace ltx::text
