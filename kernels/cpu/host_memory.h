#ifndef LTX_KERNELS_CPU_HOST_MEMORY_H_
#define LTX_KERNELS_CPU_HOST_MEMORY_H_

#include <cstddef>
#include <cstdint>

#include "kernels/memory_ledger.h"

namespace ltx::cpu {

/// Where a CPU device gets its blocks. Tests put one in place that counts, or that fails on demand.
class HostMemory {
 public:
  virtual ~HostMemory() = default;
  /// A block of `bytes` aligned to 64 (a cache line, the widest vector), or nullptr if there is
  /// none. Never called with 0 bytes.
  virtual void* Allocate(int64_t bytes, MemoryOwner owner) = 0;
  virtual void Free(void* block, int64_t bytes, MemoryOwner owner) = 0;
};

}  // namespace ltx::cpu

#endif  // LTX_KERNELS_CPU_HOST_MEMORY_H_
