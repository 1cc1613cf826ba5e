#ifndef LTX_ENGINE_TEXT_UTF8_H_
#define LTX_ENGINE_TEXT_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace ltx::text {

struct CodePoint {
  char32_t value = 0;
  /// How many bytes spell it, 1 to 4.
  size_t bytes = 0;
};

/// The code point at the front of `text`, or nothing if `text` is empty or starts with bytes that
/// are not UTF-8 (overlong forms, surrogates and values above U+10FFFF are not).
std::optional<CodePoint> DecodeCodePoint(absl::string_view text);

/// Offset of the first byte that is not part of well-formed UTF-8, or nothing if all of it is.
std::optional<size_t> FindInvalidUtf8(absl::string_view text);

/// How many bytes the code point starting with `lead` has; `lead` must come from well-formed UTF-8.
inline size_t CodePointBytes(char lead) {
  const auto byte = static_cast<uint8_t>(lead);
  if (byte < 0x80) return 1;
  if (byte < 0xe0) return 2;
  return byte < 0xf0 ? 3 : 4;
}

}  // namespace ltx::text

#endif  // LTX_ENGINE_TEXT_UTF8_H_
