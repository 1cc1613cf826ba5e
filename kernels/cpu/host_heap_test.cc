#include "kernels/cpu/host_heap.h"

#include <cstdint>
#include <cstring>
#include <limits>

#include "gtest/gtest.h"

namespace ltx::cpu {
namespace {

TEST(HostHeapTest, BlocksAreAlignedAndWritable) {
  for (const int64_t bytes : {1, 63, 64, 65, 4097}) {
    void* block = ProcessHeap().Allocate(bytes, MemoryOwner::kActivations);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u);
    std::memset(block, 0x5a, bytes);
    ProcessHeap().Free(block, bytes, MemoryOwner::kActivations);
  }
}

TEST(HostHeapTest, RefusesWhatCannotBe) {
  EXPECT_EQ(ProcessHeap().Allocate(std::numeric_limits<int64_t>::max(), MemoryOwner::kActivations),
            nullptr);
  EXPECT_EQ(ProcessHeap().Allocate(int64_t{1} << 60, MemoryOwner::kActivations), nullptr);
}

}  // namespace
}  // namespace ltx::cpu
