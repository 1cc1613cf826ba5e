#include "tests/memory/counting_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/cpu/host_heap.h"

namespace ltx::testing {
namespace {

void Grow(int64_t bytes, CountingMemory::Amounts* amounts) {
  amounts->live_bytes += bytes;
  amounts->peak_bytes = std::max(amounts->peak_bytes, amounts->live_bytes);
}

}  // namespace

void* CountingMemory::Allocate(int64_t bytes, MemoryOwner owner) {
  absl::MutexLock lock(&mutex_);
  if (++totals_.requests == refuse_at_) {
    ++totals_.refused;
    return nullptr;
  }
  void* const block = cpu::ProcessHeap().Allocate(bytes, owner);
  if (block == nullptr) return nullptr;
  blocks_[block] = {bytes, owner};
  ++totals_.live_blocks;
  Grow(bytes, &totals_.total);
  Grow(bytes, &totals_.by_owner[static_cast<int>(owner)]);
  return block;
}

void CountingMemory::Free(void* block, int64_t bytes, MemoryOwner owner) {
  absl::MutexLock lock(&mutex_);
  const auto found = blocks_.find(block);
  if (found == blocks_.end()) {
    complaints_.push_back(absl::StrCat("free of an unknown block of ", bytes, " bytes"));
    return;
  }
  // The books follow what was handed out, not what the caller says.
  const Block known = found->second;
  if (known.bytes != bytes || known.owner != owner) {
    complaints_.push_back(absl::StrCat("a block of ", known.bytes, " bytes of ",
                                       MemoryOwnerName(known.owner), " came back as ", bytes,
                                       " bytes of ", MemoryOwnerName(owner)));
  }
  blocks_.erase(found);
  --totals_.live_blocks;
  totals_.total.live_bytes -= known.bytes;
  totals_.by_owner[static_cast<int>(known.owner)].live_bytes -= known.bytes;
  cpu::ProcessHeap().Free(block, known.bytes, known.owner);
}

CountingMemory::Totals CountingMemory::Read() const {
  absl::MutexLock lock(&mutex_);
  return totals_;
}

void CountingMemory::ResetPeaks() {
  absl::MutexLock lock(&mutex_);
  totals_.total.peak_bytes = totals_.total.live_bytes;
  for (Amounts& amounts : totals_.by_owner) amounts.peak_bytes = amounts.live_bytes;
}

void CountingMemory::RefuseRequest(int64_t n) {
  absl::MutexLock lock(&mutex_);
  refuse_at_ = n == 0 ? 0 : totals_.requests + n;
}

std::vector<std::string> CountingMemory::complaints() const {
  absl::MutexLock lock(&mutex_);
  return complaints_;
}

void ExpectSameBooks(const MemoryLedger& ledger, const CountingMemory& memory) {
  const MemoryLedger::Snapshot told = ledger.Read();
  const CountingMemory::Totals seen = memory.Read();
  EXPECT_EQ(told.live_allocations, seen.live_blocks);
  EXPECT_EQ(told.total.live_bytes, seen.total.live_bytes);
  EXPECT_EQ(told.total.peak_bytes, seen.total.peak_bytes);
  for (int i = 0; i < kMemoryOwnerCount; ++i) {
    const absl::string_view owner = MemoryOwnerName(static_cast<MemoryOwner>(i));
    EXPECT_EQ(told.by_owner[i].live_bytes, seen.by_owner[i].live_bytes) << owner;
    EXPECT_EQ(told.by_owner[i].peak_bytes, seen.by_owner[i].peak_bytes) << owner;
  }
  for (const std::string& complaint : memory.complaints()) ADD_FAILURE() << complaint;
}

int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t virtual_pages = 0;
  int64_t resident_pages = 0;
  file >> virtual_pages >> resident_pages;
  return resident_pages * sysconf(_SC_PAGESIZE);
}

}  // namespace ltx::testing
