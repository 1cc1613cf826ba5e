#include "kernels/cuda/pool_lanes.h"

#include <memory>

#include "gtest/gtest.h"
#include "kernels/cuda/fake_memory.h"

namespace ltx::cuda {
namespace {

constexpr int64_t kBytes = int64_t{64} << 20;

class PoolLanesTest : public ::testing::Test {
 protected:
  void* Take() {
    const auto block = pool_->Take(kBytes, lanes_.lane());
    EXPECT_TRUE(block.ok()) << block.status();
    return block.ok() ? *block : nullptr;
  }
  void Give(void* block, uint64_t section) { lanes_.Give(pool_, block, section); }

  FakeMemory memory_{4 * kBytes};
  std::shared_ptr<MemoryPool> pool_ = std::make_shared<MemoryPool>(&memory_);
  PoolLanes lanes_;
};

TEST_F(PoolLanesTest, WhatTheMainLaneLetsGoTheSideLaneGetsAfterTheJoin) {
  lanes_.Fork({pool_.get()});
  EXPECT_EQ(lanes_.lane(), PoolLanes::kMain);
  void* const block = Take();
  Give(block, lanes_.section());
  lanes_.UseSide();
  EXPECT_EQ(lanes_.lane(), PoolLanes::kSide);
  void* const side = Take();
  EXPECT_NE(side, block) << "the main lane may still work on it";
  Give(side, lanes_.section());
  EXPECT_EQ(Take(), side) << "a lane's own blocks are its own again at once";
  Give(side, lanes_.section());
  lanes_.Join({pool_.get()});
  EXPECT_EQ(lanes_.lane(), PoolLanes::kMain);
  EXPECT_EQ(lanes_.section(), 0u);
  void* const first = Take();
  void* const second = Take();
  EXPECT_TRUE((first == block && second == side) || (first == side && second == block));
}

TEST_F(PoolLanesTest, WhatWasThereBeforeTheSectionWaitsForItsEnd) {
  void* const before = Take();
  lanes_.Fork({pool_.get()});
  lanes_.UseSide();
  // The main lane, too, may have used it.
  Give(before, 0);
  void* const side = Take();
  EXPECT_NE(side, before);
  lanes_.Join({pool_.get()});
  EXPECT_EQ(Take(), before);
}

TEST_F(PoolLanesTest, TheSideLaneHasWhatWasFreeBeforeTheFork) {
  void* const block = Take();
  Give(block, 0);
  lanes_.Fork({pool_.get()});
  lanes_.UseSide();
  EXPECT_EQ(Take(), block);
}

}  // namespace
}  // namespace ltx::cuda
