#include "engine/text/bpe.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<int32_t> Encode(const BpeModel& model, absl::string_view word) {
  std::vector<int32_t> ids;
  model.Encode(word, &ids);
  return ids;
}

BpeModel Make(TokenizerDefinition definition) {
  auto model = BpeModel::Create(&definition);
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

TEST(BpeTest, LowestRankFirstThenLeftmost) {
  TokenizerDefinition d;
  d.vocabulary = {{"a", 0}, {"b", 1}, {"ab", 2}, {"aa", 3}, {"ba", 4}, {"aab", 5}};
  d.merges = {{"a", "a"}, {"a", "b"}, {"aa", "b"}};
  const BpeModel model = Make(d);
  EXPECT_THAT(Encode(model, "aaa"), ElementsAre(3, 0));
  // "aa" outranks "ab", then "aa" + "b".
  EXPECT_THAT(Encode(model, "aab"), ElementsAre(5));
  EXPECT_THAT(Encode(model, "abab"), ElementsAre(2, 2));
  EXPECT_THAT(Encode(model, ""), IsEmpty());
}

TEST(BpeTest, StaleCandidatesAreDropped) {
  TokenizerDefinition d;
  d.vocabulary = {{"a", 0}, {"b", 1}, {"c", 2}, {"bc", 3}, {"ab", 4}};
  d.merges = {{"b", "c"}, {"a", "b"}};
  // (a, b) is queued, but b has become bc by the time it comes up.
  EXPECT_THAT(Encode(Make(d), "abc"), ElementsAre(0, 3));
}

TEST(BpeTest, BytesStandInForUnknownCharactersAndMerge) {
  TokenizerDefinition d;
  d.vocabulary = {{"x", 0}, {"<0xC3>", 1}, {"<0xA9>", 2}, {"<0xC3><0xA9>", 3}, {"<0x09>", 4}};
  d.merges = {{"<0xC3>", "<0xA9>"}};
  const BpeModel model = Make(d);
  EXPECT_THAT(Encode(model, "x\xc3\xa9x"), ElementsAre(0, 3, 0));
  EXPECT_THAT(Encode(model, "\t"), ElementsAre(4));
  // No byte token and no unknown token: the character is dropped.
  EXPECT_THAT(Encode(model, "xyx"), ElementsAre(0, 0));
}

TEST(BpeTest, UnknownTokensFuseAndWaitForAVocabularyCharacter) {
  TokenizerDefinition d;
  d.vocabulary = {{"?", 0}, {"x", 1}, {"<0x79>", 2}};
  d.unknown_token = "?";
  d.fuse_unknown = true;
  EXPECT_THAT(Encode(Make(d), "zzx"), ElementsAre(0, 1));
  // The byte of y comes before the unknown token of z, a habit of the reference implementation.
  EXPECT_THAT(Encode(Make(d), "zyzx"), ElementsAre(2, 0, 1));
  d.fuse_unknown = false;
  EXPECT_THAT(Encode(Make(d), "zzx"), ElementsAre(0, 0, 1));
}

TEST(BpeTest, IgnoreMergesTakesWholeWords) {
  TokenizerDefinition d;
  d.vocabulary = {{"a", 0}, {"b", 1}, {"ab", 2}};
  EXPECT_THAT(Encode(Make(d), "ab"), ElementsAre(0, 1));
  d.ignore_merges = true;
  EXPECT_THAT(Encode(Make(d), "ab"), ElementsAre(2));
  EXPECT_THAT(Encode(Make(d), "aba"), ElementsAre(0, 1, 0));
}

TEST(BpeTest, RepeatedMergeHasTheLaterRank) {
  TokenizerDefinition d;
  d.vocabulary = {{"a", 0}, {"b", 1}, {"c", 2}, {"ab", 3}, {"bc", 4}};
  d.merges = {{"a", "b"}, {"b", "c"}, {"a", "b"}};
  EXPECT_THAT(Encode(Make(d), "abc"), ElementsAre(0, 4));
}

TEST(BpeTest, MergeOutsideOfTheVocabularyIsRefused) {
  TokenizerDefinition d;
  d.vocabulary = {{"a", 0}, {"b", 1}};
  d.merges = {{"a", "b"}};
  const auto model = BpeModel::Create(&d);
  EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(model.status().message(), HasSubstr("\"ab\""));
}

TEST(BpeTest, LongRunsStayFast) {
  TokenizerDefinition d;
  std::string piece = "a";
  d.vocabulary = {{"a", 0}};
  for (int32_t i = 1; i < 12; ++i) {
    d.merges.emplace_back(piece, piece);
    piece += piece;
    d.vocabulary[piece] = i;
  }
  // Quadratic work would take minutes here.
  const std::string run(1 << 20, 'a');
  EXPECT_EQ(Encode(Make(d), run).size(), (1u << 20) >> 11);
}

}  // namespace
}  // namespace ltx::text
