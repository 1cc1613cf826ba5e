#ifndef LTX_KERNELS_CUDA_FAKE_MEMORY_H_
#define LTX_KERNELS_CUDA_FAKE_MEMORY_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/cuda/device_memory.h"

namespace ltx::cuda {

/// Addresses without memory behind them: the pool never looks inside. Holds at most `limit` bytes.
class FakeMemory final : public DeviceMemory {
 public:
  explicit FakeMemory(int64_t limit) : limit_(limit) {}
  absl::StatusOr<void*> Allocate(int64_t bytes) override {
    if (held_ + bytes > limit_) return nullptr;
    held_ += bytes;
    next_ += uintptr_t{1} << 40;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address is all that there is.
    return reinterpret_cast<void*>(next_);
  }
  void Free(void* /*segment*/, int64_t bytes) override { held_ -= bytes; }
  int64_t held() const { return held_; }

 private:
  const int64_t limit_;
  int64_t held_ = 0;
  uintptr_t next_ = 0;
};

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_FAKE_MEMORY_H_
