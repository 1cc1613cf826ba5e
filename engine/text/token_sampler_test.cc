#include "engine/text/token_sampler.h"

#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::text {
namespace {

using ::testing::IsEmpty;

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

std::vector<int32_t> Ids(const std::vector<Candidate>& candidates) {
  std::vector<int32_t> ids;
  for (const Candidate& candidate : candidates) ids.push_back(candidate.id);
  return ids;
}

TEST(CandidatesForTest, SoftmaxOfTheBest) {
  const std::vector<Candidate> two = CandidatesFor({1.0f, 3.0f, 2.0f, -5.0f}, {0.5, 2, 0});
  ASSERT_EQ(Ids(two), (std::vector<int32_t>{1, 2}));
  // exp(-2) for a difference of 1 at temperature 0.5.
  EXPECT_NEAR(two[0].probability, 1 / (1 + std::exp(-2.0)), 1e-12);
  EXPECT_NEAR(two[0].probability + two[1].probability, 1, 1e-12);
}

TEST(CandidatesForTest, EqualsOfTheLastOneCount) {
  EXPECT_EQ(Ids(CandidatesFor({2.0f, 1.0f, 1.0f, 0.0f}, {1.0, 2, 0})),
            (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(Ids(CandidatesFor({2.0f, 1.0f}, {1.0, 50, 0})), (std::vector<int32_t>{0, 1}));
}

TEST(CandidatesForTest, ForbiddenTokensAreNone) {
  EXPECT_EQ(Ids(CandidatesFor({kForbidden, 1.0f, kForbidden}, {1.0, 3, 0})),
            (std::vector<int32_t>{1}));
  EXPECT_THAT(CandidatesFor({kForbidden, kForbidden}, {1.0, 2, 0}), IsEmpty());
  EXPECT_EQ(TokenSampler({}).Draw({kForbidden}), -1);
}

TEST(CandidatesForTest, LargeScoresDoNotOverflow) {
  const std::vector<Candidate> candidates = CandidatesFor({3e38f, 3e38f}, {0.7, 2, 0});
  ASSERT_EQ(candidates.size(), 2u);
  EXPECT_NEAR(candidates[0].probability, 0.5, 1e-12);
}

TEST(TokenSamplerTest, DrawsInProportion) {
  const std::vector<float> scores = {0.3f, -1.0f, 1.2f, 0.9f, -0.2f, 0.0f};
  SamplingOptions options;
  options.top_k = 4;
  options.seed = 42;
  TokenSampler sampler(options);
  constexpr int kDraws = 20000;
  std::map<int32_t, int> counts;
  for (int i = 0; i < kDraws; ++i) ++counts[sampler.Draw(scores)];
  double chi_squared = 0;
  const std::vector<Candidate> candidates = CandidatesFor(scores, options);
  ASSERT_EQ(candidates.size(), 4u);
  for (const Candidate& candidate : candidates) {
    const double expected = candidate.probability * kDraws;
    chi_squared += std::pow(counts[candidate.id] - expected, 2) / expected;
    counts.erase(candidate.id);
  }
  EXPECT_THAT(counts, IsEmpty());
  // Three degrees of freedom: one in a thousand lies above; the seed is fixed.
  EXPECT_LT(chi_squared, 16.27);
}

TEST(TokenSamplerTest, SeedsDecide) {
  const std::vector<float> scores = {0.1f, 0.2f, 0.3f, 0.4f};
  const auto draws = [&scores](uint64_t seed) {
    SamplingOptions options;
    options.seed = seed;
    TokenSampler sampler(options);
    std::vector<int32_t> ids;
    for (int i = 0; i < 32; ++i) ids.push_back(sampler.Draw(scores));
    return ids;
  };
  EXPECT_EQ(draws(7), draws(7));
  EXPECT_NE(draws(7), draws(8));
}

}  // namespace
}  // namespace ltx::text
