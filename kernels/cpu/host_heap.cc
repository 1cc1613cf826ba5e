#include "kernels/cpu/host_heap.h"

#include <cstdlib>
#include <limits>

namespace ltx::cpu {
namespace {

constexpr int64_t kAlignment = 64;

}  // namespace

void* HostHeap::Allocate(int64_t bytes, MemoryOwner /*owner*/) {
  if (bytes <= 0 || bytes > std::numeric_limits<int64_t>::max() - kAlignment) return nullptr;
  // aligned_alloc wants a multiple of the alignment.
  const int64_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return std::aligned_alloc(kAlignment, static_cast<size_t>(rounded));
}

void HostHeap::Free(void* block, int64_t /*bytes*/, MemoryOwner /*owner*/) { std::free(block); }

HostHeap& ProcessHeap() {
  static HostHeap heap;
  return heap;
}

}  // namespace ltx::cpu
