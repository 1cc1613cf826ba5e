#include "engine/text/chat_prompt.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "engine/text/test_models.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tokenizer Make(const std::string& tokenizer_json) {
  auto tokenizer = Tokenizer::Create(tokenizer_json, TinyTokenizerConfig());
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

TEST(CleanAnswerTest, TypographyBecomesPlain) {
  const std::pair<const char*, const char*> kCases[] = {
      {"it\u2019s \u2018so\u2019, 5\u2032", "it's 'so', 5'"},
      {"a \u201cred\u201d ball", "a \"red\" ball"},
      {"now\u2014then\u2013and \u22125", "now-then-and -5"},
      {"no\u00a0break", "no break"},
      {"caf\u00e9 \u2026 stays", "caf\u00e9 \u2026 stays"},
  };
  for (const auto& [text, clean] : kCases) EXPECT_EQ(CleanAnswer(text), clean);
}

TEST(CleanAnswerTest, BeginsWithTheFirstLetterOfAnyScript) {
  const std::pair<const char*, const char*> kCases[] = {
      {"**1. \"The sea", "The sea"},
      {"\n\n \u2014 \u00e9t\u00e9", "\u00e9t\u00e9"},
      {"123 \u6d77 x", "\u6d77 x"},
      {"\U0001f3ac \u0645\u0634\u0647\u062f", "\u0645\u0634\u0647\u062f"},
      // A modifier letter and a title-case letter are letters; a digit, a roman number and a mark
      // are not.
      {"1\u02b0a", "\u02b0a"},
      {"2\u01c5", "\u01c5"},
      {"\u2160\u0301\u00b2b", "b"},
      {"", ""},
      {"1, 2 \u2014 3", "1, 2 - 3"},
  };
  for (const auto& [text, clean] : kCases) EXPECT_EQ(CleanAnswer(text), clean);
}

TEST(MakeChatRowTest, NeedsTheTurnTokens) {
  const absl::Status status = CheckTurnTokens(Make(TinyTokenizerJson()));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(status.message(), HasSubstr("<start_of_turn>"));
}

TEST(MakeChatRowTest, PutsTheSystemPromptIntoTheUsersTurn) {
  // Token 3 stands for every character that the tiny vocabulary does not have; runs of them are
  // one.
  const Tokenizer tokenizer = Make(absl::StrReplaceAll(
      TinyTokenizerJson(), {{"\"added_tokens\": [",
                             "\"added_tokens\": ["
                             "{\"id\": 12, \"content\": \"<start_of_turn>\", \"special\": true},"
                             "{\"id\": 13, \"content\": \"<end_of_turn>\", \"special\": true},"
                             "{\"id\": 14, \"content\": \"\\n\", \"special\": false},"}}));
  EXPECT_TRUE(CheckTurnTokens(tokenizer).ok());
  const auto row = MakeChatRow(tokenizer, "ab", " cd \n");
  ASSERT_TRUE(row.ok()) << row.status();
  EXPECT_EQ(row->ids.size() % 8, 0u);
  EXPECT_EQ(std::count(row->ids.begin(), row->ids.begin() + row->padding, tokenizer.pad_id()),
            row->padding);
  // <bos>, <start_of_turn>user\n, system, blank line, user, <end_of_turn>\n,
  // <start_of_turn>model\n.
  EXPECT_THAT(std::vector<int32_t>(row->ids.begin() + row->padding, row->ids.end()),
              ElementsAre(2, 12, 3, 14, 10, 14, 14, 11, 13, 14, 12, 3, 8, 3, 14));
}

}  // namespace
}  // namespace ltx::text
