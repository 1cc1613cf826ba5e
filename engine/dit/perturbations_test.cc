#include "engine/dit/perturbations.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::dit {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(PerturbationsTest, NothingGivenKeepsAll) {
  const KeepFlags keep = KeepFlagsOf({}, PerturbationKind::kSkipVideoSelfAttention, 0);
  EXPECT_TRUE(keep.all_kept());
  EXPECT_FALSE(keep.all_skipped);
}

TEST(PerturbationsTest, FlagsBySampleKindAndBlock) {
  const BatchPerturbations batch = {
      {},
      {{PerturbationKind::kSkipVideoSelfAttention, std::vector<int64_t>{0, 2}},
       {PerturbationKind::kSkipAudioSelfAttention, std::nullopt}}};
  EXPECT_THAT(KeepFlagsOf(batch, PerturbationKind::kSkipVideoSelfAttention, 0).weights,
              ElementsAre(1.0f, 0.0f));
  EXPECT_TRUE(KeepFlagsOf(batch, PerturbationKind::kSkipVideoSelfAttention, 1).all_kept());
  EXPECT_THAT(KeepFlagsOf(batch, PerturbationKind::kSkipVideoSelfAttention, 2).weights,
              ElementsAre(1.0f, 0.0f));
  EXPECT_THAT(KeepFlagsOf(batch, PerturbationKind::kSkipAudioSelfAttention, 47).weights,
              ElementsAre(1.0f, 0.0f));
  EXPECT_TRUE(KeepFlagsOf(batch, PerturbationKind::kSkipAudioToVideoAttention, 0).all_kept());
  EXPECT_TRUE(KeepFlagsOf(batch, PerturbationKind::kSkipVideoToAudioAttention, 0).all_kept());
}

TEST(PerturbationsTest, AllSkippedOnlyIfEverySampleIs) {
  const Perturbation skip = {PerturbationKind::kSkipAudioToVideoAttention, std::nullopt};
  const KeepFlags all =
      KeepFlagsOf({{skip}, {skip}}, PerturbationKind::kSkipAudioToVideoAttention, 3);
  EXPECT_TRUE(all.all_skipped);
  EXPECT_THAT(all.weights, ElementsAre(0.0f, 0.0f));
  EXPECT_FALSE(
      KeepFlagsOf({{skip}, {}}, PerturbationKind::kSkipAudioToVideoAttention, 3).all_skipped);
}

TEST(PerturbationsTest, AnEmptyBlockListSkipsNothing) {
  const Perturbation none = {PerturbationKind::kSkipVideoSelfAttention, std::vector<int64_t>{}};
  EXPECT_THAT(KeepFlagsOf({{none}}, PerturbationKind::kSkipVideoSelfAttention, 0).weights,
              IsEmpty());
}

TEST(PerturbationsTest, NamesOfKinds) {
  EXPECT_EQ(*ParsePerturbationKind("SKIP_V2A_CROSS_ATTN"),
            PerturbationKind::kSkipVideoToAudioAttention);
  EXPECT_EQ(*ParsePerturbationKind("SKIP_A2V_CROSS_ATTN"),
            PerturbationKind::kSkipAudioToVideoAttention);
  EXPECT_THAT(ParsePerturbationKind("SKIP").status().message(),
              ::testing::HasSubstr("\"SKIP\" is unknown; legal are SKIP_VIDEO_SELF_ATTN"));
}

TEST(PerturbationsTest, RunsJoinNeighboursThatAgree) {
  KeepFlags keep;
  std::vector<BatchRun> runs = RunsOf(keep, 3);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].end, 3);
  EXPECT_TRUE(runs[0].kept);
  keep.weights = {1.0f, 0.0f, 0.0f, 1.0f};
  runs = RunsOf(keep, 4);
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[1].begin, 1);
  EXPECT_EQ(runs[1].end, 3);
  EXPECT_FALSE(runs[1].kept);
  EXPECT_TRUE(runs[2].kept);
}

}  // namespace
}  // namespace ltx::dit
