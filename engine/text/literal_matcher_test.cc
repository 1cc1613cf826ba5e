#include "engine/text/literal_matcher.h"

#include "gtest/gtest.h"

namespace ltx::text {
namespace {

TEST(LiteralMatcherTest, LeftmostThenLongest) {
  LiteralMatcher matcher;
  matcher.Add("bc", 1);
  matcher.Add("ab", 2);
  matcher.Add("abcd", 3);
  // "ab" starts first; "abcd" is longer from the same place but does not fit here.
  const auto match = matcher.Find("xabce", 0);
  ASSERT_TRUE(match.has_value());
  EXPECT_EQ(match->begin, 1u);
  EXPECT_EQ(match->end, 3u);
  EXPECT_EQ(match->id, 2);
  EXPECT_EQ(matcher.Find("xabcde", 0)->id, 3);
  EXPECT_EQ(matcher.Find("xabce", 2)->id, 1);
  EXPECT_FALSE(matcher.Find("xabce", 3).has_value());
}

TEST(LiteralMatcherTest, FirstOfEqualLiteralsWins) {
  LiteralMatcher matcher;
  matcher.Add("a", 7);
  matcher.Add("a", 8);
  EXPECT_EQ(matcher.Find("a", 0)->id, 7);
}

TEST(LiteralMatcherTest, NothingToFind) {
  LiteralMatcher matcher;
  EXPECT_TRUE(matcher.empty());
  EXPECT_FALSE(matcher.Find("abc", 0).has_value());
  matcher.Add("", 1);
  EXPECT_TRUE(matcher.empty());
}

}  // namespace
}  // namespace ltx::text
