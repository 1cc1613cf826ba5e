#ifndef LTX_KERNELS_CUDA_DEVICE_MEMORY_H_
#define LTX_KERNELS_CUDA_DEVICE_MEMORY_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/memory_ledger.h"

namespace ltx::cuda {

/// Where a CUDA device gets its memory: segments that a MemoryPool cuts into blocks. Tests put one
/// in place that counts, or that refuses on demand.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  /// A segment aligned to 512 bytes, or nullptr if there is no memory for it; any other failure is
  /// a status. Never called with 0 bytes.
  virtual absl::StatusOr<void*> Allocate(int64_t bytes) = 0;
  /// May wait for the device.
  virtual void Free(void* segment, int64_t bytes) = 0;
  /// Asked once for every tensor, before a block is looked for; false refuses it as if there were
  /// no memory left.
  virtual bool Admit(int64_t /*bytes*/, MemoryOwner /*owner*/) { return true; }
};

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_DEVICE_MEMORY_H_
