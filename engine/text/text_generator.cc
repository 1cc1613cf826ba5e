#include "engine/text/text_generator.h"

#include <algorithm>
#include <cmath>
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

TextGeneration::TextGeneration(Device* device, const TextTower* tower, const LinearWeight* head,
                               GenerationOptions options, std::vector<int32_t> row,
                               std::vector<int32_t> pending)
    : device_(device),
      tower_(tower),
      head_(head),
      options_(std::move(options)),
      // The last token is never read.
      cache_(tower->MakeCache(static_cast<int64_t>(pending.size()) + options_.max_new_tokens - 1)),
      sequence_(std::move(row)),
      pending_(std::move(pending)),
      done_(options_.max_new_tokens < 1) {
  if (options_.sampling.has_value()) sampler_.emplace(*options_.sampling);
}

absl::StatusOr<int32_t> TextGeneration::Choose(const Tensor& logits) {
  if (!device_->holds_data()) return static_cast<int32_t>(tower_->config().pad_token_id);
  LTX_ASSIGN_OR_RETURN(last_scores_, ToFloats(*device_, logits));
  if (!std::all_of(last_scores_.begin(), last_scores_.end(),
                   [](float score) { return std::isfinite(score); })) {
    return absl::DataLossError("text generation: NaN or infinity in the scores");
  }
  std::vector<float> scores = last_scores_;
  constexpr float kForbidden = -std::numeric_limits<float>::infinity();
  for (const int32_t id : RepeatingTokens(sequence_, options_.no_repeat_ngram_size)) {
    if (static_cast<size_t>(id) < scores.size()) scores[static_cast<size_t>(id)] = kForbidden;
  }
  const auto best = std::max_element(scores.begin(), scores.end());
  if (*best == kForbidden) {
    return absl::InvalidArgumentError(
        "text generation: no_repeat_ngram_size leaves no token to choose");
  }
  return sampler_.has_value() ? sampler_->Draw(scores)
                              : static_cast<int32_t>(best - scores.begin());
}

absl::Status TextGeneration::Advance() {
  if (done_) return absl::FailedPreconditionError("text generation: the text is finished");
  LTX_ASSIGN_OR_RETURN(const Tensor last, tower_->ReadOn(pending_, &cache_));
  LTX_ASSIGN_OR_RETURN(const Tensor logits, tower_->Logits(last, *head_));
  LTX_ASSIGN_OR_RETURN(const int32_t token, Choose(logits));
  tokens_.push_back(token);
  sequence_.push_back(token);
  pending_ = {token};
  stopped_ = device_->holds_data() && std::find(options_.stop_ids.begin(), options_.stop_ids.end(),
                                                token) != options_.stop_ids.end();
  done_ = stopped_ || static_cast<int64_t>(tokens_.size()) >= options_.max_new_tokens;
  return absl::OkStatus();
}

absl::StatusOr<TextGenerator> TextGenerator::Create(Device* device, const TextTower* tower) {
  LTX_ASSIGN_OR_RETURN(LinearWeight head, tower->PrepareLogitHead());
  return TextGenerator(device, tower, std::move(head));
}

absl::StatusOr<std::unique_ptr<TextGeneration>> TextGenerator::Start(
    absl::Span<const int32_t> row, int64_t padding, const GenerationOptions& options) const {
  if (padding < 0 || padding >= static_cast<int64_t>(row.size())) {
    return absl::InvalidArgumentError("text generation: the prompt has no tokens");
  }
  return std::unique_ptr<TextGeneration>(new TextGeneration(device_, tower_, head_.get(), options,
                                                            {row.begin(), row.end()},
                                                            {row.begin() + padding, row.end()}));
}

}  // namespace ltx::text
