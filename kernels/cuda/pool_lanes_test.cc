#include "kernels/cuda/pool_lanes.h"

#include <memory>

#include "gtest/gtest.h"
#include "kernels/cuda/device_memory.h"

namespace ltx::cuda {
namespace {

constexpr int64_t kBytes = int64_t{64} << 20;

/// Addresses without memory behind them.
class Addresses final : public DeviceMemory {
 public:
  absl::StatusOr<void*> Allocate(int64_t /*bytes*/) override {
    next_ += uintptr_t{1} << 40;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address is all that there is.
    return reinterpret_cast<void*>(next_);
  }
  void Free(void* /*segment*/, int64_t /*bytes*/) override {}

 private:
  uintptr_t next_ = 0;
};

class PoolLanesTest : public ::testing::Test {
 protected:
  void* Take() {
    const auto block = pool_->Take(kBytes, lanes_.lane());
    EXPECT_TRUE(block.ok()) << block.status();
    return block.ok() ? *block : nullptr;
  }
  void Give(void* block, uint64_t section) { lanes_.Give(pool_, block, section); }

  Addresses memory_;
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
