#ifndef LTX_TESTS_CUDA_REFUSING_MEMORY_H_
#define LTX_TESTS_CUDA_REFUSING_MEMORY_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/cuda/context.h"
#include "kernels/cuda/device_memory.h"

namespace ltx::cuda {

/// The GPU's memory, but the n-th tensor or the n-th segment is refused.
class RefusingMemory final : public DeviceMemory {
 public:
  absl::StatusOr<void*> Allocate(int64_t bytes) override {
    ++segments_;
    if (refuse_segments_ && segments_ >= refuse_at_) return nullptr;
    return heap_.Allocate(bytes);
  }
  void Free(void* segment, int64_t bytes) override { heap_.Free(segment, bytes); }
  bool Admit(int64_t /*bytes*/, MemoryOwner /*owner*/) override {
    ++tensors_;
    return refuse_segments_ || tensors_ != refuse_at_;
  }

  /// The n-th tensor from now; 0: none.
  void RefuseTensor(int64_t n) { Set(false, n); }
  /// The n-th segment from now, and all after it.
  void RefuseSegmentsFrom(int64_t n) { Set(true, n); }
  int64_t tensors() const { return tensors_; }
  int64_t segments() const { return segments_; }

 private:
  void Set(bool segments, int64_t n) {
    refuse_segments_ = segments;
    refuse_at_ = n;
    tensors_ = 0;
    segments_ = 0;
  }

  CudaHeap heap_;
  bool refuse_segments_ = false;
  int64_t refuse_at_ = 0;
  int64_t tensors_ = 0;
  int64_t segments_ = 0;
};

}  // namespace ltx::cuda

#endif  // LTX_TESTS_CUDA_REFUSING_MEMORY_H_
