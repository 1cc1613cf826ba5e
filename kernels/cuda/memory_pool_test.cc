#include "kernels/cuda/memory_pool.h"

#include <cstdlib>
#include <map>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/fake_memory.h"

namespace ltx::cuda {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

class MemoryPoolTest : public ::testing::Test {
 protected:
  void* Take(int64_t bytes, MemoryPool::Lane lane = 0) {
    auto block = pool_.Take(bytes, lane);
    EXPECT_TRUE(block.ok()) << block.status();
    return block.ok() ? *block : nullptr;
  }

  FakeMemory memory_{256 * kMiB};
  MemoryPool pool_{&memory_};
};

TEST_F(MemoryPoolTest, ABlockIsReusedInItsLane) {
  void* const block = Take(100 * kMiB);
  pool_.Give(block);
  EXPECT_EQ(Take(100 * kMiB), block);
  pool_.Give(block);
  EXPECT_EQ(memory_.held(), 100 * kMiB);
}

TEST_F(MemoryPoolTest, APoolThatGrowsAsksForAPartOfItself) {
  MemoryPool pool(&memory_, /*largest_growth=*/24 * kMiB);
  std::vector<void*> blocks;
  const auto take = [&] { blocks.push_back(pool.Take(18 * kMiB).value()); };
  // An eighth of nothing is nothing.
  take();
  EXPECT_EQ(memory_.held(), 18 * kMiB);
  blocks.push_back(pool.Take(150 * kMiB).value());
  // An eighth in whole pages of 2 MiB: of 168, 188 and 210 MiB, the last cut to the limit.
  take();
  EXPECT_EQ(memory_.held(), (168 + 20) * kMiB);
  take();
  EXPECT_EQ(memory_.held(), (188 + 22) * kMiB);
  take();
  EXPECT_EQ(memory_.held(), (210 + 24) * kMiB);
  // There is no room for 24 MiB, but for what is asked for.
  take();
  EXPECT_EQ(memory_.held(), (234 + 18) * kMiB);
  for (void* const block : blocks) pool.Give(block);
}

TEST_F(MemoryPoolTest, WhatIsReservedServesBlocks) {
  EXPECT_TRUE(pool_.Reserve(48 * kMiB).value());
  EXPECT_TRUE(pool_.Reserve(8 * kMiB).value());
  void* const large = Take(40 * kMiB);
  void* const small = Take(1000);
  EXPECT_EQ(memory_.held(), 56 * kMiB);
  EXPECT_EQ(pool_.segments(), (std::vector<int64_t>{48 * kMiB, 8 * kMiB}));
  EXPECT_FALSE(pool_.Reserve(256 * kMiB).value());
  pool_.Give(large);
  pool_.Give(small);
}

TEST_F(MemoryPoolTest, SmallBlocksShareASegmentAndAreAligned) {
  std::vector<void*> blocks(100);
  for (int i = 0; i < 100; ++i) blocks[i] = Take(1 + i);
  for (void* block : blocks) EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 512, 0);
  EXPECT_EQ(pool_.usage().used_bytes, 100 * 512);
  EXPECT_EQ(memory_.held(), 8 * kMiB);
  for (void* block : blocks) pool_.Give(block);
  EXPECT_EQ(pool_.usage().used_bytes, 0);
  // All neighbours have joined: the whole segment is one block again.
  void* const whole = Take(kMiB);
  EXPECT_EQ(whole, blocks[0]);
  pool_.Give(whole);
}

TEST_F(MemoryPoolTest, ALargeSegmentServesSeveralRequestsAndJoinsAgain) {
  void* const whole = Take(96 * kMiB);
  pool_.Give(whole);
  void* const a = Take(32 * kMiB);
  void* const b = Take(32 * kMiB);
  void* const c = Take(32 * kMiB);
  EXPECT_EQ(memory_.held(), 96 * kMiB);
  pool_.Give(a);
  pool_.Give(c);
  pool_.Give(b);
  EXPECT_EQ(Take(96 * kMiB), whole);
  pool_.Give(whole);
}

TEST_F(MemoryPoolTest, ReleasesFreeSegmentsBeforeItFails) {
  void* const first = Take(150 * kMiB);
  pool_.Give(first);
  void* const second = Take(200 * kMiB);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(memory_.held(), 200 * kMiB);
  EXPECT_EQ(Take(100 * kMiB), nullptr);
  EXPECT_EQ(pool_.usage().used_bytes, 200 * kMiB);
  pool_.Give(second);
  EXPECT_EQ(pool_.Trim(), 200 * kMiB);
  EXPECT_EQ(pool_.usage().reserved_bytes, 0);
  EXPECT_EQ(memory_.held(), 0);
}

TEST_F(MemoryPoolTest, ABlockCrossesLanesOnlyAfterAWait) {
  void* const block = Take(64 * kMiB);
  pool_.Give(block);
  void* const side = Take(64 * kMiB, 1);
  EXPECT_NE(side, block) << "lane 1 has not waited for lane 0";
  pool_.Give(side, 1);

  pool_.Fork(/*from=*/0, /*to=*/1);
  void* const taken = Take(64 * kMiB, 1);
  void* const also_taken = Take(64 * kMiB, 1);
  EXPECT_TRUE(taken == block || also_taken == block);
  pool_.Give(taken, 1);
  pool_.Give(also_taken, 1);
  EXPECT_EQ(memory_.held(), 128 * kMiB);

  void* const own = Take(64 * kMiB, 0);
  EXPECT_NE(own, nullptr);
  EXPECT_EQ(memory_.held(), 192 * kMiB) << "lane 0 has not waited for lane 1";
  pool_.Give(own);
  pool_.Join(/*from=*/1, /*into=*/0);
  std::vector<void*> blocks(3);
  for (void*& taken : blocks) taken = Take(64 * kMiB, 0);
  EXPECT_EQ(memory_.held(), 192 * kMiB);
  for (void* taken_again : blocks) pool_.Give(taken_again);
}

TEST_F(MemoryPoolTest, JoiningUnitesNeighbours) {
  void* const whole = Take(96 * kMiB);
  pool_.Give(whole);
  void* const a = Take(48 * kMiB);
  pool_.Fork(0, 1);
  void* const b = Take(48 * kMiB, 1);
  pool_.Give(a, 0);
  pool_.Give(b, 1);
  pool_.Join(1, 0);
  EXPECT_EQ(Take(96 * kMiB), whole);
  pool_.Give(whole);
  EXPECT_EQ(memory_.held(), 96 * kMiB);
}

}  // namespace
}  // namespace ltx::cuda
