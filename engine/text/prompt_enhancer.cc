#include "engine/text/prompt_enhancer.h"

#include "absl/strings/str_cat.h"
#include "engine/text/chat_prompt.h"
#include "kernels/status_macros.h"

namespace ltx::text {

std::string PromptRewrite::Text() const {
  return CleanAnswer(detokenizer_->Decode(generation_->tokens()));
}

absl::Status PromptEnhancer::CheckFamily(const checkpoint::GemmaConfig& config) {
  if (config.family == checkpoint::GemmaFamily::kGemma3) return absl::OkStatus();
  return absl::UnimplementedError(
      "the text encoder is a Gemma 4 that was tuned to encode prompts and cannot write them; the "
      "Gemma 3 of LTX-2.3 can");
}

absl::StatusOr<PromptEnhancer> PromptEnhancer::Create(Device* device, const TextTower* tower,
                                                      std::shared_ptr<const Tokenizer> tokenizer,
                                                      Options options) {
  LTX_RETURN_IF_ERROR(CheckFamily(tower->config()));
  LTX_RETURN_IF_ERROR(CheckTurnTokens(*tokenizer));
  // A system prompt that cannot be read is nobody's request.
  LTX_RETURN_IF_ERROR(MakeChatRow(*tokenizer, options.system_prompt, "").status());
  LTX_ASSIGN_OR_RETURN(Detokenizer detokenizer, Detokenizer::Create(*tokenizer));
  LTX_ASSIGN_OR_RETURN(TextGenerator generator, TextGenerator::Create(device, tower));
  PromptEnhancer enhancer(std::move(tokenizer), std::move(detokenizer), std::move(generator),
                          std::move(options));
  for (const int64_t id : tower->config().eos_token_ids) {
    enhancer.stop_ids_.push_back(static_cast<int32_t>(id));
  }
  return enhancer;
}

std::string PromptEnhancer::UserText(absl::string_view prompt) {
  return absl::StrCat("user prompt: ", prompt);
}

absl::StatusOr<std::unique_ptr<PromptRewrite>> PromptEnhancer::Start(absl::string_view prompt,
                                                                     uint64_t seed) const {
  LTX_ASSIGN_OR_RETURN(const ChatRow row,
                       MakeChatRow(*tokenizer_, options_.system_prompt, UserText(prompt)));
  GenerationOptions generation;
  generation.max_new_tokens = options_.max_new_tokens;
  generation.stop_ids = stop_ids_;
  if (options_.temperature > 0) {
    generation.sampling = SamplingOptions{options_.temperature, kTopK, seed};
  }
  LTX_ASSIGN_OR_RETURN(std::unique_ptr<TextGeneration> text,
                       generator_.Start(row.ids, row.padding, generation));
  return std::unique_ptr<PromptRewrite>(new PromptRewrite(detokenizer_.get(), std::move(text)));
}

}  // namespace ltx::text
