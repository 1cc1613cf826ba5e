#include "engine/text/chat_prompt.h"

#include <utf8proc.h>

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/text/unicode_trim.h"
#include "engine/text/utf8.h"
#include "kernels/status_macros.h"

namespace ltx::text {
namespace {

constexpr absl::string_view kStartOfTurn = "<start_of_turn>";
constexpr absl::string_view kEndOfTurn = "<end_of_turn>";
constexpr int64_t kRowMultiple = 8;

/// Whether Python's str.isalpha() takes it.
bool IsLetter(char32_t code_point) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code_point))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return true;
    default:
      return false;
  }
}

}  // namespace

absl::Status CheckTurnTokens(const Tokenizer& tokenizer) {
  for (const absl::string_view token : {kStartOfTurn, kEndOfTurn}) {
    if (tokenizer.IdOf(token) >= 0) continue;
    return absl::UnimplementedError(absl::StrCat(
        "the tokenizer has no token ", token, ", so its model does not talk in Gemma 3's turns"));
  }
  return absl::OkStatus();
}

absl::StatusOr<ChatRow> MakeChatRow(const Tokenizer& tokenizer, absl::string_view system_prompt,
                                    absl::string_view user_text) {
  const std::string text =
      absl::StrCat(tokenizer.begin_token(), kStartOfTurn, "user\n", system_prompt, "\n\n",
                   TrimUnicodeWhitespace(user_text), kEndOfTurn, "\n", kStartOfTurn, "model\n");
  LTX_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, tokenizer.Encode(text));
  ChatRow row;
  const auto count = static_cast<int64_t>(ids.size());
  row.padding = (kRowMultiple - count % kRowMultiple) % kRowMultiple;
  row.ids.assign(static_cast<size_t>(row.padding), tokenizer.pad_id());
  row.ids.insert(row.ids.end(), ids.begin(), ids.end());
  return row;
}

std::string CleanAnswer(absl::string_view text) {
  const std::string plain = absl::StrReplaceAll(text, {{"\u2018", "'"},
                                                       {"\u2019", "'"},
                                                       {"\u2032", "'"},
                                                       {"\u201c", "\""},
                                                       {"\u201d", "\""},
                                                       {"\u2014", "-"},
                                                       {"\u2013", "-"},
                                                       {"\u2212", "-"},
                                                       {"\u00a0", " "}});
  absl::string_view rest = plain;
  while (const std::optional<CodePoint> next = DecodeCodePoint(rest)) {
    if (IsLetter(next->value)) return std::string(rest);
    rest.remove_prefix(next->bytes);
  }
  return plain;
}

}  // namespace ltx::text
