#ifndef LTX_KERNELS_CUDA_MEMORY_POOL_H_
#define LTX_KERNELS_CUDA_MEMORY_POOL_H_

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "kernels/cuda/device_memory.h"

namespace ltx::cuda {

/// Blocks of device memory for work that is ordered by streams. Segments come from a DeviceMemory
/// and stay here when their blocks are given back, because getting one costs a device
/// synchronisation; blocks are cut best-fit and joined with free neighbours again.
///
/// A lane is a stream: work issued in it runs in order. A block given back in a lane may be taken
/// again in the same lane at once, although the device has not finished with it: what uses it next
/// stands behind. Another lane gets it only after it has waited for that point of the first one,
/// which the caller reports with Fork and Join. Lane 0 is the main lane.
///
/// Thread-safe.
class MemoryPool {
 public:
  using Lane = int;

  /// `memory` must outlive the pool. With a `largest_growth`, new segments are an eighth of what
  /// the pool holds, up to that size, or what is asked for if that is more or there is no more to
  /// be had: getting a segment takes a driver some tenths of a millisecond.
  explicit MemoryPool(DeviceMemory* memory, int64_t largest_growth = 0)
      : memory_(memory), largest_growth_(largest_growth) {}
  /// Frees all segments; every block must have been given back.
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  /// A block of at least `bytes` > 0, aligned to 512 bytes, or nullptr if memory is not to be had
  /// (segments that are wholly free have been released and the request tried again by then).
  absl::StatusOr<void*> Take(int64_t bytes, Lane lane = 0);
  /// `lane`: the one whose work used the block last, or that has waited for all that did.
  void Give(void* block, Lane lane = 0);

  /// Lane `to` now waits for all that lane `from` has been given so far.
  void Fork(Lane from, Lane to);
  /// The same; and what `from` holds free passes to `into`.
  void Join(Lane from, Lane into);

  /// Adds a segment of so many bytes, wholly free; false if memory is not to be had.
  absl::StatusOr<bool> Reserve(int64_t bytes);
  /// Releases the segments that are wholly free and returns their bytes.
  int64_t Trim();

  /// Bytes of each segment.
  std::vector<int64_t> segments() const;

  struct Usage {
    /// In segments.
    int64_t reserved_bytes = 0;
    /// In taken blocks, rounding included.
    int64_t used_bytes = 0;
  };
  Usage usage() const;

 private:
  struct Block {
    int64_t bytes = 0;
    char* segment = nullptr;
    bool free = false;
    Lane lane = 0;
    /// Position in the order of all Give calls.
    uint64_t freed_at = 0;
  };
  using Blocks = std::map<char*, Block>;

  Blocks::iterator FindFree(int64_t bytes, Lane lane) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// The free block of a new segment of exactly so many bytes, or the end.
  absl::StatusOr<Blocks::iterator> NewSegment(int64_t bytes, Lane lane)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Blocks::iterator> AddSegment(int64_t bytes, Lane lane)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  char* Cut(Blocks::iterator block, int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddFree(Blocks::iterator block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveFree(Blocks::iterator block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t TrimLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// How far `lane` has waited for `other`.
  uint64_t& Seen(Lane lane, Lane other) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  DeviceMemory* const memory_;
  const int64_t largest_growth_;
  mutable absl::Mutex mutex_;
  /// All blocks by address; neighbours of one segment are neighbours here.
  Blocks blocks_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<int64_t, char*>> free_ ABSL_GUARDED_BY(mutex_);
  std::map<char*, int64_t> segments_ ABSL_GUARDED_BY(mutex_);
  std::map<std::pair<Lane, Lane>, uint64_t> seen_ ABSL_GUARDED_BY(mutex_);
  uint64_t gives_ ABSL_GUARDED_BY(mutex_) = 0;
  Usage usage_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_MEMORY_POOL_H_
