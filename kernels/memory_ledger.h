#ifndef LTX_KERNELS_MEMORY_LEDGER_H_
#define LTX_KERNELS_MEMORY_LEDGER_H_

#include <array>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace ltx {

/// Who holds a piece of device memory. Every allocation names one.
enum class MemoryOwner : uint8_t {
  kWeightsText,
  kWeightsDit,
  kWeightsVideoVae,
  kWeightsAudioVae,
  kWeightsUpsampler,
  /// Values that flow between operations.
  kActivations,
  /// Scratch of one operation, freed before it returns.
  kWorkspace,
  /// Values kept on purpose between units or requests: rope tables, embeddings, filters.
  kCache,
  /// Frames and samples on their way to an encoder.
  kMedia,
  /// What a device keeps to run recorded work again (Device::Record): memory of its results and
  /// intermediate values, and the inputs it reads.
  kRecordings,
};
inline constexpr int kMemoryOwnerCount = 10;

/// Short lower-case name for logs and metrics, e.g. "weights/dit".
absl::string_view MemoryOwnerName(MemoryOwner owner);
/// True for what a request takes and gives back; false for what may outlive it.
bool GoesWithRequest(MemoryOwner owner);

/// Live and peak bytes of one device of this process, in total and by owner. Exact: it is told of
/// every allocation and every release, and of nothing else. Machine-wide occupancy is not its
/// subject. Thread-safe.
class MemoryLedger {
 public:
  struct Amounts {
    int64_t live_bytes = 0;
    int64_t peak_bytes = 0;
  };
  struct Snapshot {
    Amounts total;
    /// Indexed by MemoryOwner. Peaks of owners need not coincide in time.
    std::array<Amounts, kMemoryOwnerCount> by_owner{};
    int64_t live_allocations = 0;
  };

  void Add(MemoryOwner owner, int64_t bytes);
  void Remove(MemoryOwner owner, int64_t bytes);
  Snapshot Read() const;
  /// Peaks become the live amounts: call it at the start of what is to be measured.
  void ResetPeaks();

 private:
  mutable absl::Mutex mutex_;
  Snapshot state_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ltx

#endif  // LTX_KERNELS_MEMORY_LEDGER_H_
