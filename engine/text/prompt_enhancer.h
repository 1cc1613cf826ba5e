#ifndef LTX_ENGINE_TEXT_PROMPT_ENHANCER_H_
#define LTX_ENGINE_TEXT_PROMPT_ENHANCER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/text/detokenizer.h"
#include "engine/text/text_generator.h"
#include "engine/text/text_tower.h"
#include "engine/text/tokenizer.h"
#include "kernels/device.h"

namespace ltx::text {

/// A prompt being rewritten, token by token. The enhancer must outlive it.
class PromptRewrite {
 public:
  bool done() const { return generation_->done(); }
  /// Errors of TextGeneration::Advance.
  absl::Status Advance() { return generation_->Advance(); }
  const std::vector<int32_t>& tokens() const { return generation_->tokens(); }
  /// The answer reached its limit of tokens and ends in the middle.
  bool cut() const { return generation_->cut(); }
  /// What the model has written so far, cleaned.
  std::string Text() const;

 private:
  friend class PromptEnhancer;
  PromptRewrite(const Detokenizer* detokenizer, std::unique_ptr<TextGeneration> generation)
      : detokenizer_(detokenizer), generation_(std::move(generation)) {}

  const Detokenizer* detokenizer_;
  std::unique_ptr<TextGeneration> generation_;
};

/// Prompt enhancement: the text tower that encodes prompts also writes, told by a system prompt to
/// turn a short prompt into a full description. Gemma 3 (LTX-2.3) can; the Gemma 4 of LTX-2.5 was
/// tuned to encode and has forgotten how to.
class PromptEnhancer {
 public:
  /// As the reference has it for Gemma 3 (base_encoder.py:GEMMA3_ENHANCE_GENERATION_KWARGS).
  static constexpr int64_t kMaxNewTokens = 512;
  static constexpr double kTemperature = 0.7;
  static constexpr int64_t kTopK = 50;

  struct Options {
    /// The reference's own are not part of this project.
    std::string system_prompt;
    int64_t max_new_tokens = kMaxNewTokens;
    /// 0: the most likely token each time.
    double temperature = kTemperature;
  };

  /// Whether a tower of this family can write: UNIMPLEMENTED saying why not.
  static absl::Status CheckFamily(const checkpoint::GemmaConfig& config);

  /// Makes the tower's map to scores: device memory (owner kWeightsText) of the size of its
  /// embedding table. The tower must outlive the enhancer. Errors of CheckFamily, CheckTurnTokens
  /// and Detokenizer::Create; INVALID_ARGUMENT for a system prompt that is not UTF-8 or too long.
  static absl::StatusOr<PromptEnhancer> Create(Device* device, const TextTower* tower,
                                               std::shared_ptr<const Tokenizer> tokenizer,
                                               Options options);

  /// What the user's turn says, in the reference's words.
  static std::string UserText(absl::string_view prompt);

  int64_t max_new_tokens() const { return options_.max_new_tokens; }

  /// INVALID_ARGUMENT for a prompt that is not UTF-8, or too long together with the system prompt.
  absl::StatusOr<std::unique_ptr<PromptRewrite>> Start(absl::string_view prompt,
                                                       uint64_t seed) const;

 private:
  PromptEnhancer(std::shared_ptr<const Tokenizer> tokenizer, Detokenizer detokenizer,
                 TextGenerator generator, Options options)
      : tokenizer_(std::move(tokenizer)),
        detokenizer_(std::make_unique<const Detokenizer>(std::move(detokenizer))),
        generator_(std::move(generator)),
        options_(std::move(options)) {}

  std::shared_ptr<const Tokenizer> tokenizer_;
  /// At an address that rewrites may keep.
  std::unique_ptr<const Detokenizer> detokenizer_;
  TextGenerator generator_;
  Options options_;
  std::vector<int32_t> stop_ids_;
};

}  // namespace ltx::text

#endif  // LTX_ENGINE_TEXT_PROMPT_ENHANCER_H_
