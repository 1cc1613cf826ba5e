#include "kernels/cuda/pool_lanes.h"

namespace ltx::cuda {

void PoolLanes::Fork(absl::Span<MemoryPool* const> pools) {
  for (MemoryPool* pool : pools) pool->Fork(kMain, kSide);
  section_.store(++sections_, std::memory_order_relaxed);
}

void PoolLanes::Join(absl::Span<MemoryPool* const> pools) {
  lane_.store(kMain, std::memory_order_relaxed);
  section_.store(0, std::memory_order_relaxed);
  for (MemoryPool* pool : pools) pool->Join(kSide, kMain);
  absl::MutexLock lock(&mutex_);
  for (const DeferredGive& give : deferred_) give.pool->Give(give.block, kMain);
  deferred_.clear();
}

void PoolLanes::Give(const std::shared_ptr<MemoryPool>& pool, void* block, uint64_t section) {
  // The main lane is given all of its work of a section before the side lane gets any, so what goes
  // meanwhile has no user in the side lane. What the side lane lets go, though, the main one may
  // have used as well, unless it came up in the side lane itself.
  if (lane() == kMain || section == this->section()) {
    pool->Give(block, lane());
    return;
  }
  absl::MutexLock lock(&mutex_);
  deferred_.push_back({pool, block});
}

}  // namespace ltx::cuda
