#ifndef LTX_ENGINE_TEXT_CHAT_PROMPT_H_
#define LTX_ENGINE_TEXT_CHAT_PROMPT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/text/tokenizer.h"

namespace ltx::text {

/// A row for generation: padding first.
struct ChatRow {
  std::vector<int32_t> ids;
  int64_t padding = 0;
};

/// OK if the tokenizer has Gemma 3's turn tokens, else UNIMPLEMENTED naming the one that is
/// missing.
absl::Status CheckTurnTokens(const Tokenizer& tokenizer);

/// One turn of a user in Gemma 3's fixed public form, and the beginning of the model's: the begin
/// token, the system prompt as it stands at the head of the user's turn, a blank line, the user's
/// text without white space around it. The same ids as Hugging Face's apply_chat_template with the
/// published template, tokenised once more: where the file adds a begin token there are two.
///
/// Padded to a multiple of 8, as the reference does. INVALID_ARGUMENT for text that is not UTF-8 or
/// beyond the tokenizer's limit.
absl::StatusOr<ChatRow> MakeChatRow(const Tokenizer& tokenizer, absl::string_view system_prompt,
                                    absl::string_view user_text);

/// What the reference makes of a model's answer (helpers.py:clean_response): typographic quotes,
/// dashes and blanks become plain ones, and whatever stands before the first letter of any script
/// is dropped; text without a letter stays.
std::string CleanAnswer(absl::string_view text);

}  // namespace ltx::text

#endif  // LTX_ENGINE_TEXT_CHAT_PROMPT_H_
