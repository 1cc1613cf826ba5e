#include "engine/text/detokenizer.h"

#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "engine/text/test_models.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::text {
namespace {

using ::testing::HasSubstr;

Tokenizer Make(const std::string& decoder, const std::string& vocabulary = "") {
  auto tokenizer = Tokenizer::Create(
      absl::StrReplaceAll(TinyTokenizerJson(), {{"\"normalizer\":", decoder + "\"normalizer\":"},
                                                {"\"z\": 23", vocabulary + "\"z\": 23"}}),
      TinyTokenizerConfig());
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

constexpr char kDecoder[] =
    R"("decoder": {"type": "Sequence", "decoders": [
         {"type": "Replace", "pattern": {"String": "_"}, "content": " "},
         {"type": "ByteFallback"}, {"type": "Fuse"}]}, )";
// U+00E9 is C3 A9.
constexpr char kBytes[] = R"("<0xC3>": 12, "<0xA9>": 13, )";

TEST(DetokenizerTest, JoinsTokensAndSkipsSpecialOnes) {
  const Tokenizer tokenizer = Make(kDecoder);
  const auto detokenizer = Detokenizer::Create(tokenizer);
  ASSERT_TRUE(detokenizer.ok()) << detokenizer.status();
  EXPECT_EQ(detokenizer->Decode({2, 10, 9, 4, 11, 1, 0}), "ab a cd");
  EXPECT_EQ(detokenizer->Decode(*tokenizer.Encode("abcd a b")), "abcd a b");
  // Nothing has these ids.
  EXPECT_EQ(detokenizer->Decode({-1, 22, 999, 5}), "a");
}

TEST(DetokenizerTest, BytesBecomeCharacters) {
  const auto detokenizer = Detokenizer::Create(Make(kDecoder, kBytes));
  ASSERT_TRUE(detokenizer.ok()) << detokenizer.status();
  EXPECT_EQ(detokenizer->Decode({5, 12, 13, 6}), "a\u00e9b");
  // Special tokens between them are gone before bytes are put together.
  EXPECT_EQ(detokenizer->Decode({12, 2, 13}), "\u00e9");
  EXPECT_EQ(detokenizer->Decode({5, 12, 6}),
            "a\ufffd"
            "b");
  EXPECT_EQ(detokenizer->Decode({12, 13, 12}), "\ufffd\ufffd\ufffd");
}

TEST(DetokenizerTest, OtherDecodersAreRefusedHereAndNotBefore) {
  const auto detokenizer = Detokenizer::Create(Make(R"("decoder": {"type": "WordPiece"}, )"));
  EXPECT_EQ(detokenizer.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(detokenizer.status().message(), HasSubstr("WordPiece"));
  EXPECT_EQ(Detokenizer::Create(Make("")).status().code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace ltx::text
