#ifndef LTX_TESTS_MEMORY_COUNTING_MEMORY_H_
#define LTX_TESTS_MEMORY_COUNTING_MEMORY_H_

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "kernels/cpu/host_memory.h"
#include "kernels/memory_ledger.h"

namespace ltx::testing {

/// The process heap behind a second set of books, kept by block address and independent of the
/// device's ledger. Can refuse a chosen request. Thread-safe.
class CountingMemory final : public cpu::HostMemory {
 public:
  struct Amounts {
    int64_t live_bytes = 0;
    int64_t peak_bytes = 0;
  };
  struct Totals {
    Amounts total;
    std::array<Amounts, kMemoryOwnerCount> by_owner{};
    int64_t live_blocks = 0;
    /// Calls of Allocate() so far, refused ones included.
    int64_t requests = 0;
    int64_t refused = 0;
  };

  void* Allocate(int64_t bytes, MemoryOwner owner) override;
  void Free(void* block, int64_t bytes, MemoryOwner owner) override;

  Totals Read() const;
  /// Peaks become the live amounts.
  void ResetPeaks();
  /// Refuses the n-th request from now (1 is the next one), and only that. 0: none.
  void RefuseRequest(int64_t n);
  /// What callers did wrong: frees of unknown blocks, or with another size or owner.
  std::vector<std::string> complaints() const;

 private:
  struct Block {
    int64_t bytes = 0;
    MemoryOwner owner = MemoryOwner::kActivations;
  };

  mutable absl::Mutex mutex_;
  Totals totals_ ABSL_GUARDED_BY(mutex_);
  int64_t refuse_at_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unordered_map<void*, Block> blocks_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> complaints_ ABSL_GUARDED_BY(mutex_);
};

/// Expects that the ledger's live bytes and peaks, in total and by owner, are those of `memory`.
void ExpectSameBooks(const MemoryLedger& ledger, const CountingMemory& memory);

/// Resident bytes of this process.
int64_t ResidentBytes();

}  // namespace ltx::testing

#endif  // LTX_TESTS_MEMORY_COUNTING_MEMORY_H_
