#include "engine/text/utf8.h"

namespace ltx::text {

std::optional<CodePoint> DecodeCodePoint(absl::string_view text) {
  if (text.empty()) return std::nullopt;
  const auto lead = static_cast<uint8_t>(text[0]);
  if (lead < 0x80) return CodePoint{lead, 1};
  // 0x80..0xbf continue a sequence, 0xc0 and 0xc1 could only start overlong forms.
  if (lead < 0xc2 || lead > 0xf4) return std::nullopt;
  const size_t bytes = CodePointBytes(text[0]);
  if (text.size() < bytes) return std::nullopt;
  char32_t value = lead & (0xffu >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if ((byte & 0xc0u) != 0x80u) return std::nullopt;
    value = (value << 6) | (byte & 0x3fu);
  }
  // The smallest value that needs three or four bytes; smaller ones would be overlong.
  if ((bytes == 3 && value < 0x800) || (bytes == 4 && value < 0x10000)) return std::nullopt;
  if (value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) return std::nullopt;
  return CodePoint{value, bytes};
}

std::optional<size_t> FindInvalidUtf8(absl::string_view text) {
  size_t offset = 0;
  while (offset < text.size()) {
    const std::optional<CodePoint> point = DecodeCodePoint(text.substr(offset));
    if (!point.has_value()) return offset;
    offset += point->bytes;
  }
  return std::nullopt;
}

}  // namespace ltx::text
