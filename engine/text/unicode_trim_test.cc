#include "engine/text/unicode_trim.h"

#include <string>

#include "gtest/gtest.h"

namespace ltx::text {
namespace {

std::string Utf8(char32_t c) {
  std::string s;
  if (c < 0x80) {
    s += static_cast<char>(c);
  } else if (c < 0x800) {
    s += static_cast<char>(0xc0 | (c >> 6));
    s += static_cast<char>(0x80 | (c & 0x3f));
  } else {
    s += static_cast<char>(0xe0 | (c >> 12));
    s += static_cast<char>(0x80 | ((c >> 6) & 0x3f));
    s += static_cast<char>(0x80 | (c & 0x3f));
  }
  return s;
}

TEST(UnicodeTrimTest, RemovesAllTwentyNineCodePointsAtBothEnds) {
  int trimmed = 0;
  for (char32_t c = 0; c < 0x10000; ++c) {
    if (c >= 0xd800 && c <= 0xdfff) continue;
    const std::string padded = Utf8(c) + "a" + Utf8(c) + "b" + Utf8(c);
    if (TrimUnicodeWhitespace(padded) != padded) {
      ++trimmed;
      EXPECT_EQ(TrimUnicodeWhitespace(padded), "a" + Utf8(c) + "b") << static_cast<uint32_t>(c);
    }
  }
  EXPECT_EQ(trimmed, 29);
}

TEST(UnicodeTrimTest, KeepsZeroWidthMarks) {
  const std::string text = Utf8(0x200b) + "x" + Utf8(0xfeff);
  EXPECT_EQ(TrimUnicodeWhitespace(text), text);
}

TEST(UnicodeTrimTest, BlankTextBecomesEmpty) {
  EXPECT_EQ(TrimUnicodeWhitespace(" \n\t" + Utf8(0x3000)), "");
  EXPECT_EQ(TrimUnicodeWhitespace(""), "");
}

}  // namespace
}  // namespace ltx::text
