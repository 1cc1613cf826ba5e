#include "engine/text/tokenizer_json.h"

#include <string>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr absl::string_view kBase = R"({
  "added_tokens": [{"id": 0, "content": "<pad>", "normalized": false, "special": true},
                   {"id": 9, "content": "\n", "normalized": true}],
  "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "_"},
  "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious",
                    "invert": false},
  "post_processor": {"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<bos>", "type_id": 0}}, {"Sequence": {"id": "A"}}],
    "special_tokens": {"<bos>": {"id": "<bos>", "ids": [2], "tokens": ["<bos>"]}}},
  "model": {"type": "BPE", "dropout": null, "unk_token": "?", "fuse_unk": true,
            "byte_fallback": true, "ignore_merges": false,
            "vocab": {"<pad>": 0, "a": 1, "<bos>": 2, "ab": 3, "b": 4, "?": 5},
            "merges": [["a", "b"]]}})";

absl::Status Refusal(absl::string_view from, absl::string_view to) {
  const std::string text = absl::StrReplaceAll(kBase, {{from, to}});
  EXPECT_NE(text, kBase);
  return ParseTokenizerJson(text).status();
}

TEST(TokenizerJsonTest, ReadsEverythingThatEncodingNeeds) {
  const auto definition = ParseTokenizerJson(kBase);
  ASSERT_TRUE(definition.ok()) << definition.status();
  EXPECT_EQ(definition->vocabulary.size(), 6u);
  EXPECT_EQ(definition->vocabulary.at("ab"), 3);
  EXPECT_THAT(definition->merges, ElementsAre(Pair("a", "b")));
  EXPECT_EQ(definition->unknown_token, "?");
  EXPECT_TRUE(definition->fuse_unknown);
  ASSERT_EQ(definition->added_tokens.size(), 2u);
  EXPECT_FALSE(definition->added_tokens[0].normalized);
  EXPECT_TRUE(definition->added_tokens[0].special);
  EXPECT_TRUE(definition->added_tokens[1].normalized);
  ASSERT_EQ(definition->normalizer.size(), 1u);
  EXPECT_EQ(definition->normalizer[0].content, "_");
  EXPECT_EQ(definition->split_after, " ");
  EXPECT_THAT(definition->prefix_ids, ElementsAre(2));
  EXPECT_TRUE(definition->suffix_ids.empty());
}

TEST(TokenizerJsonTest, BothMergeSpellingsAndAnyMemberOrder) {
  const std::string joined = absl::StrReplaceAll(kBase, {{R"([["a", "b"]])", R"(["a b"])"}});
  const auto definition = ParseTokenizerJson(joined);
  ASSERT_TRUE(definition.ok()) << definition.status();
  EXPECT_THAT(definition->merges, ElementsAre(Pair("a", "b")));
  EXPECT_THAT(ParseTokenizerJson(
                  R"({"model":{"merges":[],"vocab":{"a":0},"byte_fallback":true,"type":"BPE"}})")
                  .status(),
              absl::OkStatus());
}

TEST(TokenizerJsonTest, RefusesOtherKindsByName) {
  const struct {
    absl::string_view from, to, name;
  } kCases[] = {
      {R"("type": "BPE")", R"("type": "Unigram")", "Unigram"},
      {R"("byte_fallback": true)", R"("byte_fallback": false)", "byte_fallback"},
      {R"("dropout": null)", R"("dropout": 0.1)", "dropout"},
      {R"("dropout": null)", R"("continuing_subword_prefix": "##")", "continuing_subword_prefix"},
      {R"("dropout": null)", R"("end_of_word_suffix": "</w>")", "end_of_word_suffix"},
      {R"("type": "Replace")", R"("type": "NFKC")", "NFKC"},
      {R"("normalizer": {"type": "Replace", "pattern": {"String")",
       R"("normalizer": {"type": "Replace", "pattern": {"Regex")", "normalizer"},
      {R"("type": "Split")", R"("type": "ByteLevel")", "ByteLevel"},
      {"MergedWithPrevious", "Isolated", "Isolated"},
      {R"("invert": false)", R"("invert": true)", "invert"},
      {R"("normalized": true)", R"("lstrip": true)", "lstrip"},
      {R"("normalized": true)", R"("single_word": true)", "single_word"},
      {"TemplateProcessing", "RobertaProcessing", "RobertaProcessing"},
  };
  for (const auto& c : kCases) {
    const absl::Status status = Refusal(c.from, c.to);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
    EXPECT_THAT(status.message(), HasSubstr(std::string(c.name)));
  }
}

TEST(TokenizerJsonTest, RefusesContradictionsAndDamage) {
  const struct {
    absl::string_view from, to, name;
  } kCases[] = {
      {R"("unk_token": "?")", R"("unk_token": "!")", "unk_token"},
      {R"("id": 0, "content")", R"("id": 1, "content")", "<pad>"},
      {R"([["a", "b"]])", R"([["a", "b", "c"]])", "merges"},
      {R"([["a", "b"]])", R"([["a"]])", "merges"},
      {R"([["a", "b"]])", R"(["ab"])", "merges"},
      {R"([["a", "b"]])", R"([7])", "merges"},
      {R"("ab": 3)", R"("ab": -3)", "vocab"},
      {R"("ab": 3)", R"("ab": 3000000000)", "vocab"},
      {R"("ab": 3)", R"("ab": "x")", "vocab"},
      {R"("vocab")", R"("vocabulary")", "vocab"},
      {R"("merges")", R"("merge")", "merges"},
      {R"("ids": [2])", R"("ids": ["x"])", "post_processor"},
      {R"({"String": " "}, "content")", R"({"String": ""}, "content")", "normalizer"},
  };
  for (const auto& c : kCases) {
    const absl::Status status = Refusal(c.from, c.to);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(status.message(), HasSubstr(std::string(c.name)));
  }
  EXPECT_FALSE(ParseTokenizerJson("").ok());
  EXPECT_FALSE(ParseTokenizerJson("[]").ok());
  EXPECT_FALSE(ParseTokenizerJson("{\"model\":").ok());
  EXPECT_FALSE(ParseTokenizerJson("{\"a\": \"\xff\"}").ok());
  EXPECT_FALSE(ParseTokenizerJson(std::string(100000, '[')).ok());
}

}  // namespace
}  // namespace ltx::text
