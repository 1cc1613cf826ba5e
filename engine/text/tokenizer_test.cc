#include "engine/text/tokenizer.h"

#include <string>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// "_" stands for the word mark. "\n" is cut before the normaliser runs, "__" after it.
constexpr absl::string_view kJson = R"({
  "added_tokens": [{"id": 0, "content": "<pad>", "normalized": false, "special": true},
                   {"id": 1, "content": "<eos>", "normalized": false, "special": true},
                   {"id": 2, "content": "<bos>", "normalized": false, "special": true},
                   {"id": 3, "content": "\n", "normalized": false},
                   {"id": 4, "content": "__", "normalized": true}],
  "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "_"},
  "pre_tokenizer": null,
  "post_processor": null,
  "model": {"type": "BPE", "byte_fallback": true,
            "vocab": {"<pad>": 0, "<eos>": 1, "<bos>": 2, "\n": 3, "__": 4, "_": 5, "a": 6, "b": 7,
                      "_a": 8, "a_": 9},
            "merges": [["_", "a"], ["a", "_"]]}})";
constexpr absl::string_view kConfig =
    R"({"bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<pad>"})";

Tokenizer Make(absl::string_view config = kConfig, int64_t max_tokens = 8) {
  TokenizerLimits limits;
  limits.max_tokens = max_tokens;
  limits.max_bytes = 40;
  auto tokenizer = Tokenizer::Create(kJson, config, limits);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

std::vector<int32_t> Ids(const Tokenizer& tokenizer, absl::string_view prompt) {
  const auto result = tokenizer.Tokenize(prompt);
  EXPECT_TRUE(result.ok()) << result.status();
  return result->ids;
}

TEST(TokenizerTest, TrimsNormalisesAndMerges) {
  const Tokenizer tokenizer = Make();
  EXPECT_THAT(Ids(tokenizer, "  b a b \n"), ElementsAre(2, 7, 8, 5, 7));
  EXPECT_THAT(Ids(tokenizer, ""), ElementsAre(2));
  EXPECT_THAT(Ids(tokenizer, "\xe3\x80\x80"), ElementsAre(2));
}

TEST(TokenizerTest, CutsAddedTokensBeforeAndAfterTheNormaliser) {
  const Tokenizer tokenizer = Make();
  EXPECT_THAT(Ids(tokenizer, "a\na"), ElementsAre(2, 6, 3, 6));
  EXPECT_THAT(Ids(tokenizer, "a  a"), ElementsAre(2, 6, 4, 6));
  // The line break splits the run of blanks, so no "__" forms across it.
  EXPECT_THAT(Ids(tokenizer, "b \n b"), ElementsAre(2, 7, 5, 3, 5, 7));
}

TEST(TokenizerTest, BeginTokenRules) {
  // Nothing adds it: put in front unless it was typed.
  EXPECT_THAT(Ids(Make(), "<bos>a"), ElementsAre(2, 6));
  const std::string adds =
      R"({"bos_token": {"content": "<bos>"}, "eos_token": "<eos>", "add_bos_token": true})";
  EXPECT_THAT(Ids(Make(adds), "<bos>a"), ElementsAre(2, 2, 6));
  const std::string both =
      R"({"bos_token": "<bos>", "eos_token": "<eos>", "add_bos_token": true,
          "add_eos_token": true})";
  EXPECT_THAT(Ids(Make(both), "a"), ElementsAre(2, 6, 1));
}

TEST(TokenizerTest, CutsOnTheRightAndCountsWhatWasLost) {
  const Tokenizer prepends = Make(kConfig, 4);
  auto result = prepends.Tokenize("bbbbbb");
  ASSERT_TRUE(result.ok());
  EXPECT_THAT(result->ids, ElementsAre(2, 7, 7, 7));
  EXPECT_EQ(result->dropped_tokens, 3);
  const std::string adds =
      R"({"bos_token": "<bos>", "eos_token": "<eos>", "add_bos_token": true,
          "add_eos_token": true})";
  result = Make(adds, 4).Tokenize("bbbbbb");
  ASSERT_TRUE(result.ok());
  EXPECT_THAT(result->ids, ElementsAre(2, 7, 7, 1));
  EXPECT_EQ(result->dropped_tokens, 4);
  EXPECT_EQ(prepends.Tokenize("bbb")->dropped_tokens, 0);
}

TEST(TokenizerTest, PadsOnTheLeft) {
  const Tokenizer tokenizer = Make(kConfig, 4);
  const PaddedPrompt row = tokenizer.PadLeft(*tokenizer.Tokenize("b"));
  EXPECT_THAT(row.ids, ElementsAre(0, 0, 2, 7));
  EXPECT_THAT(row.mask, ElementsAre(0, 0, 1, 1));
}

TEST(TokenizerTest, PadTokenFallsBackToTheEndToken) {
  const std::string config = R"({"bos_token": "<bos>", "eos_token": "<eos>", "pad_token": null})";
  EXPECT_EQ(Make(config).pad_id(), 1);
}

TEST(TokenizerTest, RefusesBadPrompts) {
  const Tokenizer tokenizer = Make();
  const absl::Status invalid = tokenizer.Tokenize("ab\xff").status();
  EXPECT_EQ(invalid.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(invalid.message(), HasSubstr("offset 2"));
  const absl::Status long_text = tokenizer.Tokenize(std::string(41, 'a')).status();
  EXPECT_EQ(long_text.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(long_text.message(), HasSubstr("at most 40"));
}

TEST(TokenizerTest, RefusesBadConfigs) {
  for (const absl::string_view config :
       {"{}", "[]", "not json", R"({"bos_token": "<bos>"})", R"({"bos_token": 7})",
        R"({"bos_token": "<none>", "eos_token": "<eos>"})",
        R"({"bos_token": "<bos>", "eos_token": "<eos>", "add_bos_token": "yes"})"}) {
    EXPECT_EQ(Tokenizer::Create(kJson, config).status().code(), absl::StatusCode::kInvalidArgument)
        << config;
  }
  EXPECT_EQ(Tokenizer::Create(kJson, absl::StrReplaceAll(kConfig, {{"{", R"({"truncation_side":
            "left", )"}}))
                .status()
                .code(),
            absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace ltx::text
