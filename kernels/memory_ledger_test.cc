#include "kernels/memory_ledger.h"

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace ltx {
namespace {

const MemoryLedger::Amounts& Of(const MemoryLedger::Snapshot& snapshot, MemoryOwner owner) {
  return snapshot.by_owner[static_cast<int>(owner)];
}

TEST(MemoryLedgerTest, LiveAndPeakByOwnerAndInTotal) {
  MemoryLedger ledger;
  ledger.Add(MemoryOwner::kActivations, 100);
  ledger.Add(MemoryOwner::kCache, 30);
  ledger.Remove(MemoryOwner::kActivations, 100);
  ledger.Add(MemoryOwner::kCache, 20);
  const MemoryLedger::Snapshot seen = ledger.Read();
  EXPECT_EQ(seen.total.live_bytes, 50);
  // The peaks of owners fell at different times.
  EXPECT_EQ(seen.total.peak_bytes, 130);
  EXPECT_EQ(seen.live_allocations, 2);
  EXPECT_EQ(Of(seen, MemoryOwner::kActivations).live_bytes, 0);
  EXPECT_EQ(Of(seen, MemoryOwner::kActivations).peak_bytes, 100);
  EXPECT_EQ(Of(seen, MemoryOwner::kCache).live_bytes, 50);
  EXPECT_EQ(Of(seen, MemoryOwner::kCache).peak_bytes, 50);
  EXPECT_EQ(Of(seen, MemoryOwner::kMedia).peak_bytes, 0);
}

TEST(MemoryLedgerTest, ResetPeaksStartsFromTheLiveAmounts) {
  MemoryLedger ledger;
  ledger.Add(MemoryOwner::kWorkspace, 1000);
  ledger.Remove(MemoryOwner::kWorkspace, 1000);
  ledger.Add(MemoryOwner::kMedia, 7);
  ledger.ResetPeaks();
  EXPECT_EQ(ledger.Read().total.peak_bytes, 7);
  EXPECT_EQ(Of(ledger.Read(), MemoryOwner::kWorkspace).peak_bytes, 0);
  EXPECT_EQ(Of(ledger.Read(), MemoryOwner::kMedia).peak_bytes, 7);
  ledger.Add(MemoryOwner::kMedia, 5);
  EXPECT_EQ(ledger.Read().total.peak_bytes, 12);
}

TEST(MemoryLedgerTest, OwnersHaveDistinctNames) {
  std::set<std::string> names;
  for (int i = 0; i < kMemoryOwnerCount; ++i) {
    names.emplace(MemoryOwnerName(static_cast<MemoryOwner>(i)));
  }
  EXPECT_EQ(names.size(), kMemoryOwnerCount);
  EXPECT_EQ(names.count("?"), 0u);
  EXPECT_EQ(MemoryOwnerName(MemoryOwner::kWeightsDit), "weights/dit");
}

TEST(MemoryLedgerTest, ThreadsLoseNothing) {
  MemoryLedger ledger;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&ledger, t] {
      const auto owner = static_cast<MemoryOwner>(t);
      for (int i = 0; i < 1000; ++i) {
        ledger.Add(owner, 3);
        ledger.Add(owner, 1);
        ledger.Remove(owner, 3);
        ledger.Read();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ledger.Read().total.live_bytes, 4000);
  EXPECT_EQ(ledger.Read().live_allocations, 4000);
  for (int t = 0; t < 4; ++t) {
    EXPECT_EQ(Of(ledger.Read(), static_cast<MemoryOwner>(t)).live_bytes, 1000);
    // 999 from the rounds before the last, and both blocks of that.
    EXPECT_EQ(Of(ledger.Read(), static_cast<MemoryOwner>(t)).peak_bytes, 999 + 3 + 1);
  }
}

}  // namespace
}  // namespace ltx
