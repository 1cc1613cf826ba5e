#ifndef LTX_KERNELS_CPU_HOST_HEAP_H_
#define LTX_KERNELS_CPU_HOST_HEAP_H_

#include <cstdint>

#include "kernels/cpu/host_memory.h"

namespace ltx::cpu {

/// Blocks of the process heap.
class HostHeap final : public HostMemory {
 public:
  void* Allocate(int64_t bytes, MemoryOwner owner) override;
  void Free(void* block, int64_t bytes, MemoryOwner owner) override;
};

/// The one heap of the process; it has no state and lives for ever.
HostHeap& ProcessHeap();

}  // namespace ltx::cpu

#endif  // LTX_KERNELS_CPU_HOST_HEAP_H_
