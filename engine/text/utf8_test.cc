#include "engine/text/utf8.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::text {
namespace {

TEST(Utf8Test, DecodesEveryLength) {
  const struct {
    absl::string_view text;
    char32_t value;
  } kCases[] = {{"A", 0x41},
                {"\xc2\x80", 0x80},
                {"\xe2\x96\x81", 0x2581},
                {"\xf0\x9f\x98\x80", 0x1f600},
                {"\xf4\x8f\xbf\xbf", 0x10ffff}};
  for (const auto& c : kCases) {
    const auto point = DecodeCodePoint(c.text);
    ASSERT_TRUE(point.has_value());
    EXPECT_EQ(point->value, c.value);
    EXPECT_EQ(point->bytes, c.text.size());
    EXPECT_EQ(CodePointBytes(c.text[0]), c.text.size());
  }
}

TEST(Utf8Test, RefusesWhatIsNotUtf8) {
  const absl::string_view kBad[] = {
      "\x80",              // continuation without a lead
      "\xc0\xaf",          // overlong
      "\xe0\x80\x80",      // overlong
      "\xf0\x80\x80\x80",  // overlong
      "\xed\xa0\x80",      // surrogate
      "\xf4\x90\x80\x80",  // above U+10FFFF
      "\xff",              // never a lead
      "\xe2\x96",          // cut short
      "\xe2\x41\x41",      // lead without continuation
  };
  for (const absl::string_view bad : kBad) {
    EXPECT_FALSE(DecodeCodePoint(bad).has_value());
    EXPECT_EQ(FindInvalidUtf8(std::string("ok") + std::string(bad)), 2u);
  }
  EXPECT_FALSE(DecodeCodePoint("").has_value());
}

TEST(Utf8Test, AcceptsZeroBytesAndMixedText) {
  EXPECT_FALSE(FindInvalidUtf8(absl::string_view("a\0b\xc3\xa9", 5)).has_value());
}

}  // namespace
}  // namespace ltx::text
