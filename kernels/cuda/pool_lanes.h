#ifndef LTX_KERNELS_CUDA_POOL_LANES_H_
#define LTX_KERNELS_CUDA_POOL_LANES_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "kernels/cuda/memory_pool.h"

namespace ltx::cuda {

/// Which lane work is issued to, and when blocks that go meanwhile may be taken again. Work is
/// split by Fork into a main and a side lane: the main lane is given all of its part, then, after
/// UseSide, the side lane its own, until Join.
///
/// One thread issues work; blocks may be given back by others.
class PoolLanes {
 public:
  static constexpr MemoryPool::Lane kMain = 0;
  static constexpr MemoryPool::Lane kSide = 1;

  MemoryPool::Lane lane() const { return lane_.load(std::memory_order_relaxed); }
  /// The number of the section between Fork and Join; 0: outside.
  uint64_t section() const { return section_.load(std::memory_order_relaxed); }

  /// `pools`: all that blocks are taken from before Join. Must be outside a section.
  void Fork(absl::Span<MemoryPool* const> pools);
  void UseSide() { lane_.store(kSide, std::memory_order_relaxed); }
  void Join(absl::Span<MemoryPool* const> pools);

  /// Gives back a block that was taken in `section`.
  void Give(const std::shared_ptr<MemoryPool>& pool, void* block, uint64_t section);

 private:
  struct DeferredGive {
    std::shared_ptr<MemoryPool> pool;
    void* block;
  };

  std::atomic<MemoryPool::Lane> lane_{kMain};
  std::atomic<uint64_t> section_{0};
  uint64_t sections_ = 0;
  absl::Mutex mutex_;
  std::vector<DeferredGive> deferred_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_POOL_LANES_H_
