#include "engine/text/detokenizer.h"

#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/text/utf8.h"

namespace ltx::text {
namespace {

constexpr absl::string_view kReplacementCharacter = "\xef\xbf\xbd";

/// The byte that a token <0xNN> spells.
std::optional<char> ByteOf(absl::string_view token) {
  int value = 0;
  constexpr size_t kLength = 6;
  if (token.size() != kLength || !absl::StartsWith(token, "<0x") || token.back() != '>' ||
      !absl::SimpleHexAtoi(token.substr(3, 2), &value)) {
    return std::nullopt;
  }
  return static_cast<char>(value);
}

/// A run of bytes is text if all of it is, else as many unknown characters as it has bytes.
void AppendBytes(std::string* bytes, std::string* text) {
  if (!FindInvalidUtf8(*bytes).has_value()) {
    text->append(*bytes);
  } else {
    for (size_t i = 0; i < bytes->size(); ++i) absl::StrAppend(text, kReplacementCharacter);
  }
  bytes->clear();
}

}  // namespace

absl::StatusOr<Detokenizer> Detokenizer::Create(const Tokenizer& tokenizer) {
  const DecoderDefinition& decoder = tokenizer.decoder();
  if (!decoder.unsupported.empty()) return absl::UnimplementedError(decoder.unsupported);
  std::vector<std::string> tokens(static_cast<size_t>(tokenizer.max_id()) + 1);
  for (const auto& [token, id] : tokenizer.model().vocabulary()) {
    tokens[static_cast<size_t>(id)] = token;
  }
  for (const AddedToken& added : tokenizer.added_tokens()) {
    tokens[static_cast<size_t>(added.id)] = added.special ? "" : added.content;
  }
  for (std::string& token : tokens) {
    for (const Replacement& replacement : decoder.replacements) {
      token = absl::StrReplaceAll(token, {{replacement.pattern, replacement.content}});
    }
  }
  return Detokenizer(std::move(tokens), decoder.byte_fallback);
}

std::string Detokenizer::Decode(absl::Span<const int32_t> ids) const {
  std::string text;
  std::string bytes;
  for (const int32_t id : ids) {
    if (id < 0 || static_cast<size_t>(id) >= tokens_.size()) continue;
    const std::string& token = tokens_[static_cast<size_t>(id)];
    // What is skipped does not part the bytes around it.
    if (token.empty()) continue;
    const std::optional<char> byte = byte_fallback_ ? ByteOf(token) : std::nullopt;
    if (byte.has_value()) {
      bytes.push_back(*byte);
      continue;
    }
    AppendBytes(&bytes, &text);
    text.append(token);
  }
  AppendBytes(&bytes, &text);
  return text;
}

}  // namespace ltx::text
