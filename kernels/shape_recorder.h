#ifndef LTX_KERNELS_SHAPE_RECORDER_H_
#define LTX_KERNELS_SHAPE_RECORDER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cuda/device_memory.h"
#include "kernels/cuda/memory_pool.h"
#include "kernels/memory_ledger.h"

namespace ltx {

/// Books what recordings would hold (MemoryOwner::kRecordings) on a device that records: segments
/// of the very pool that recordings of a CUDA device share, cut by the same rules, though no memory
/// is behind them.
///
/// Not thread-safe.
class ShapeRecorder {
 public:
  /// `ledger` must outlive the recorder, the recorder every pool.
  explicit ShapeRecorder(MemoryLedger* ledger) : ledger_(ledger), segments_(this) {}

  /// `bytes` of recordings are there already, `segments` among them, and will be used again: only
  /// what goes beyond is booked. To be called while there is no recording here.
  void Assume(int64_t bytes, std::vector<int64_t> segments);
  /// Recordings hold so much more, or less.
  void Add(int64_t bytes);

  /// The pool of the recordings that there are, or a new one.
  absl::StatusOr<std::shared_ptr<cuda::MemoryPool>> Pool();
  /// Its segments, in bytes; none without recordings.
  std::vector<int64_t> segments() const;

 private:
  /// Segments of addresses at which there is nothing.
  class Segments final : public cuda::DeviceMemory {
   public:
    explicit Segments(ShapeRecorder* recorder) : recorder_(recorder) {}
    absl::StatusOr<void*> Allocate(int64_t bytes) override;
    void Free(void* segment, int64_t bytes) override;

   private:
    ShapeRecorder* const recorder_;
    /// Not null, which would be a refusal.
    uintptr_t next_ = 512;
  };

  MemoryLedger* const ledger_;
  Segments segments_;
  std::weak_ptr<cuda::MemoryPool> pool_;
  std::vector<int64_t> assumed_segments_;
  int64_t held_ = 0;
  int64_t assumed_ = 0;
  int64_t booked_ = 0;
};

}  // namespace ltx

#endif  // LTX_KERNELS_SHAPE_RECORDER_H_
