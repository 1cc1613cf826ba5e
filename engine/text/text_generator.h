#ifndef LTX_ENGINE_TEXT_TEXT_GENERATOR_H_
#define LTX_ENGINE_TEXT_TEXT_GENERATOR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/text/key_value_cache.h"
#include "engine/text/text_tower.h"
#include "engine/text/token_sampler.h"
#include "kernels/device.h"

namespace ltx::text {

struct GenerationOptions {
  int64_t max_new_tokens = 600;
  /// No run of this many tokens may occur twice in the whole sequence, padding and prompt included;
  /// 0: no such rule.
  int64_t no_repeat_ngram_size = 0;
  /// Any of them ends the text (and is part of it).
  std::vector<int32_t> stop_ids;
  /// Unset: the most likely token each time.
  std::optional<SamplingOptions> sampling;
};

/// Tokens that `no_repeat_ngram_size` n forbids next: those that followed an earlier occurrence of
/// the last n - 1 tokens. Empty for n 0.
std::vector<int32_t> RepeatingTokens(absl::Span<const int32_t> sequence, int64_t n);

/// A text being continued, token by token. Holds keys and values for all tokens that it may get.
class TextGeneration {
 public:
  bool done() const { return done_; }
  /// Adds one token. INVALID_ARGUMENT if the n-gram rule leaves none to choose, DATA_LOSS for
  /// scores that are not finite, FAILED_PRECONDITION if done.
  ///
  /// On a device that holds no data there is nothing to choose by: all tokens are padding, and the
  /// text goes on to its limit.
  absl::Status Advance();

  /// The new tokens.
  const std::vector<int32_t>& tokens() const { return tokens_; }
  /// Scores that the last token was chosen by, before tokens were forbidden.
  const std::vector<float>& last_scores() const { return last_scores_; }
  /// True if the text ended because it had reached max_new_tokens.
  bool cut() const { return done_ && !stopped_; }

 private:
  friend class TextGenerator;
  TextGeneration(Device* device, const TextTower* tower, const LinearWeight* head,
                 GenerationOptions options, std::vector<int32_t> row, std::vector<int32_t> pending);
  absl::StatusOr<int32_t> Choose(const Tensor& logits);

  Device* const device_;
  const TextTower* const tower_;
  const LinearWeight* const head_;
  const GenerationOptions options_;
  std::optional<TokenSampler> sampler_;
  KeyValueCache cache_;
  /// Padding, prompt and what was added.
  std::vector<int32_t> sequence_;
  /// What the tower has yet to read.
  std::vector<int32_t> pending_;
  std::vector<int32_t> tokens_;
  std::vector<float> last_scores_;
  bool done_ = false;
  bool stopped_ = false;
};

/// Lets a tower continue texts. The tower must outlive it, and it its texts.
class TextGenerator {
 public:
  /// Makes the map from states to scores: device memory of the size of the embedding table.
  static absl::StatusOr<TextGenerator> Create(Device* device, const TextTower* tower);

  /// `row` is the prompt padded on the left, `padding` how many of its ids are padding. Padding
  /// counts for the n-gram rule alone. INVALID_ARGUMENT if nothing but padding is there.
  absl::StatusOr<std::unique_ptr<TextGeneration>> Start(absl::Span<const int32_t> row,
                                                        int64_t padding,
                                                        const GenerationOptions& options) const;

 private:
  TextGenerator(Device* device, const TextTower* tower, LinearWeight head)
      : device_(device),
        tower_(tower),
        head_(std::make_unique<const LinearWeight>(std::move(head))) {}

  Device* device_;
  const TextTower* tower_;
  /// At an address that texts may keep.
  std::unique_ptr<const LinearWeight> head_;
};

}  // namespace ltx::text

#endif  // LTX_ENGINE_TEXT_TEXT_GENERATOR_H_
