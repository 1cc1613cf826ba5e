#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "tests/memory/counting_memory.h"
#include "tests/memory/tiny_model.h"

ABSL_FLAG(int, clips, 20, "Clips to make after the warm-up");

namespace ltx::testing {
namespace {

/// Clips after which the heap has met every block size of the run.
constexpr int kWarmUpClips = 3;
/// Growth of resident memory allowed over all further clips, however many. Some tens of KiB come
/// and go with where the heap puts small blocks.
constexpr int64_t kResidentGrowth = int64_t{1} << 20;

TEST(RepeatedClipsTest, IdenticalClipsTakeTheSameMemoryEachTime) {
  TinyModel tiny;
  ASSERT_EQ(tiny.Load(), absl::OkStatus());
  const int64_t loaded = tiny.live_bytes();
  const pipeline::GenerationRequest request = tiny.Request(pipeline::Recipe::kDistilled);
  TinyModel::Clip first;
  CountingMemory::Totals first_totals;
  int64_t first_requests = 0;
  int64_t resident = 0;
  int64_t highest = 0;
  const int clips = kWarmUpClips + absl::GetFlag(FLAGS_clips);
  for (int i = 0; i < clips; ++i) {
    tiny.memory().ResetPeaks();
    tiny.device().ledger().ResetPeaks();
    const int64_t requests_before = tiny.memory().Read().requests;
    auto clip = tiny.Run(request);
    ASSERT_TRUE(clip.ok()) << clip.status();
    ASSERT_EQ(tiny.live_bytes(), loaded) << "clip " << i;
    ExpectSameBooks(tiny.device().ledger(), tiny.memory());
    const CountingMemory::Totals totals = tiny.memory().Read();
    if (i == 0) {
      first = *std::move(clip);
      first_totals = totals;
      first_requests = totals.requests - requests_before;
    } else {
      ASSERT_TRUE(*clip == first) << "clip " << i;
      EXPECT_EQ(totals.requests - requests_before, first_requests) << "clip " << i;
    }
    EXPECT_EQ(totals.total.peak_bytes, first_totals.total.peak_bytes) << "clip " << i;
    for (int owner = 0; owner < kMemoryOwnerCount; ++owner) {
      EXPECT_EQ(totals.by_owner[owner].peak_bytes, first_totals.by_owner[owner].peak_bytes)
          << "clip " << i << ", " << MemoryOwnerName(static_cast<MemoryOwner>(owner));
    }
    // What the heap keeps of freed blocks varies by some MB from clip to clip: give it back first.
    malloc_trim(0);
    if (i + 1 == kWarmUpClips) resident = ResidentBytes();
    if (i + 1 > kWarmUpClips) highest = std::max(highest, ResidentBytes());
  }
  std::printf("resident: %.1f MB after the warm-up, at most %.1f MB over %d clips\n",
              static_cast<double>(resident) / 1e6, static_cast<double>(highest) / 1e6,
              clips - kWarmUpClips);
  EXPECT_LE(highest - resident, kResidentGrowth);
}

}  // namespace
}  // namespace ltx::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  absl::ParseCommandLine(argc, argv);
  return RUN_ALL_TESTS();
}
