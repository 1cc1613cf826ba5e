#include "engine/text/unicode_trim.h"

#include <cstdint>

#include "engine/text/utf8.h"

namespace ltx::text {
namespace {

bool IsWhitespace(char32_t c) {
  return (c >= 0x0009 && c <= 0x000d) || (c >= 0x001c && c <= 0x0020) || c == 0x0085 ||
         c == 0x00a0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
         c == 0x202f || c == 0x205f || c == 0x3000;
}

/// Bytes of the last code point of `text`.
size_t LastCodePointBytes(absl::string_view text) {
  size_t bytes = 1;
  while (bytes < text.size() &&
         (static_cast<uint8_t>(text[text.size() - bytes]) & 0xc0u) == 0x80u) {
    ++bytes;
  }
  return bytes;
}

}  // namespace

absl::string_view TrimUnicodeWhitespace(absl::string_view text) {
  while (!text.empty()) {
    const std::optional<CodePoint> first = DecodeCodePoint(text);
    if (!first.has_value() || !IsWhitespace(first->value)) break;
    text.remove_prefix(first->bytes);
  }
  while (!text.empty()) {
    const size_t bytes = LastCodePointBytes(text);
    const std::optional<CodePoint> last = DecodeCodePoint(text.substr(text.size() - bytes));
    if (!last.has_value() || !IsWhitespace(last->value)) break;
    text.remove_suffix(bytes);
  }
  return text;
}

}  // namespace ltx::text
