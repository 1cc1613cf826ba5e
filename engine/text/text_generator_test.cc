#include "engine/text/text_generator.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "engine/text/test_models.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/status_macros.h"

namespace ltx::text {
namespace {

using checkpoint::GemmaFamily;
using checkpoint::SafetensorsWriter;
using checkpoint::WeightLoader;
using checkpoint::WeightSet;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(RepeatingTokensTest, LooksAtTheWholeSequence) {
  EXPECT_THAT(RepeatingTokens({0, 0, 0, 5, 6, 5}, 2), ElementsAre(6));
  EXPECT_THAT(RepeatingTokens({7, 8, 1, 7, 8, 2, 7, 8}, 3), ElementsAre(1, 2));
  EXPECT_THAT(RepeatingTokens({7, 8}, 1), ElementsAre(7, 8));
  EXPECT_THAT(RepeatingTokens({7, 8}, 3), IsEmpty());
  EXPECT_THAT(RepeatingTokens({7, 7}, 0), IsEmpty());
}

class TextGeneratorTest : public ::testing::Test {
 protected:
  TextGeneratorTest() {
    SafetensorsWriter writer;
    AddRandom(TowerShapes(GemmaFamily::kGemma4, "model."), &writer);
    weights_ = OpenWeights(writer, "tower");
    const auto config = checkpoint::ParseGemmaConfig(TinyGemmaConfig(GemmaFamily::kGemma4));
    EXPECT_TRUE(config.ok()) << config.status();
    auto tower = TextTower::Load(
        *config, WeightLoader(device_.get(), &weights_, DType::kF32, MemoryOwner::kWeightsText));
    EXPECT_TRUE(tower.ok()) << tower.status();
    tower_ = std::make_unique<TextTower>(*std::move(tower));
  }

  struct Result {
    std::vector<int32_t> tokens;
    std::vector<float> first_scores;
    bool cut = false;
  };
  absl::StatusOr<Result> Run(const std::vector<int32_t>& row, int64_t padding,
                             const GenerationOptions& options) {
    const auto generator = TextGenerator::Create(device_.get(), tower_.get());
    EXPECT_TRUE(generator.ok()) << generator.status();
    LTX_ASSIGN_OR_RETURN(const std::unique_ptr<TextGeneration> text,
                         generator->Start(row, padding, options));
    Result result;
    while (!text->done()) {
      LTX_RETURN_IF_ERROR(text->Advance());
      if (result.first_scores.empty()) result.first_scores = text->last_scores();
    }
    EXPECT_EQ(text->Advance().code(), absl::StatusCode::kFailedPrecondition);
    result.tokens = text->tokens();
    result.cut = text->cut();
    return result;
  }

  std::unique_ptr<Device> device_ = MakeDevice();
  WeightSet weights_;
  std::unique_ptr<TextTower> tower_;
};

TEST_F(TextGeneratorTest, PaddingDoesNotChangeTheText) {
  GenerationOptions options;
  options.max_new_tokens = 8;
  const auto plain = Run({2, 5, 6}, 0, options);
  const auto padded = Run({0, 0, 0, 2, 5, 6}, 3, options);
  ASSERT_TRUE(plain.ok() && padded.ok());
  EXPECT_EQ(plain->tokens.size(), 8u);
  EXPECT_EQ(plain->tokens, padded->tokens);
  EXPECT_EQ(plain->first_scores.size(), 24u);
  EXPECT_TRUE(plain->cut);
}

TEST_F(TextGeneratorTest, StopsAfterAStopToken) {
  GenerationOptions options;
  options.max_new_tokens = 8;
  const auto free = Run({2, 5, 6}, 0, options);
  ASSERT_TRUE(free.ok());
  options.stop_ids = {free->tokens[0]};
  const auto stopped = Run({2, 5, 6}, 0, options);
  ASSERT_TRUE(stopped.ok());
  EXPECT_THAT(stopped->tokens, ElementsAre(free->tokens[0]));
  EXPECT_FALSE(stopped->cut);
}

TEST_F(TextGeneratorTest, SamplingFollowsTheSeed) {
  const auto text = [this](uint64_t seed) {
    GenerationOptions options;
    options.max_new_tokens = 12;
    options.sampling = SamplingOptions{0.7, 50, seed};
    return Run({2, 5, 6}, 0, options).value().tokens;
  };
  EXPECT_EQ(text(3), text(3));
  EXPECT_NE(text(3), text(4));
  GenerationOptions best;
  best.max_new_tokens = 12;
  const std::vector<int32_t> greedy = Run({2, 5, 6}, 0, best).value().tokens;
  // Among one there is no choice.
  best.sampling = SamplingOptions{0.7, 1, 3};
  EXPECT_EQ(Run({2, 5, 6}, 0, best).value().tokens, greedy);
}

TEST_F(TextGeneratorTest, NeverRepeatsASingleToken) {
  GenerationOptions options;
  options.max_new_tokens = 21;
  options.no_repeat_ngram_size = 1;
  const auto text = Run({2, 5, 6}, 0, options);
  ASSERT_TRUE(text.ok()) << text.status();
  std::vector<int32_t> all = text->tokens;
  all.insert(all.end(), {2, 5, 6});
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::unique(all.begin(), all.end()) - all.begin(), 24);
  // All 24 tokens are used up then.
  options.max_new_tokens = 22;
  EXPECT_EQ(Run({2, 5, 6}, 0, options).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(TextGeneratorTest, NeedsATokenToStartFrom) {
  EXPECT_EQ(Run({0, 0}, 2, {}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace ltx::text
