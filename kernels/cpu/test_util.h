#ifndef LTX_KERNELS_CPU_TEST_UTIL_H_
#define LTX_KERNELS_CPU_TEST_UTIL_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/host_heap.h"
#include "kernels/host_copy.h"

namespace ltx::cpu {

/// Helpers of the CPU device's tests.

/// A process heap that counts on its own and fails when told to.
class CountingMemory final : public HostMemory {
 public:
  void* Allocate(int64_t bytes, MemoryOwner owner) override {
    ++calls_;
    if (fail_at_ > 0 && calls_ == fail_at_) return nullptr;
    void* block = ProcessHeap().Allocate(bytes, owner);
    Count(&total_, bytes);
    Count(&by_owner_[static_cast<int>(owner)], bytes);
    return block;
  }
  void Free(void* block, int64_t bytes, MemoryOwner owner) override {
    total_.live_bytes -= bytes;
    by_owner_[static_cast<int>(owner)].live_bytes -= bytes;
    ProcessHeap().Free(block, bytes, owner);
  }

  /// The n-th call from now (1 is the next) yields nullptr; 0: none does.
  void FailAt(int64_t n) {
    calls_ = 0;
    fail_at_ = n;
  }
  int64_t calls() const { return calls_; }
  const MemoryLedger::Amounts& total() const { return total_; }
  const MemoryLedger::Amounts& of(MemoryOwner owner) const {
    return by_owner_[static_cast<int>(owner)];
  }

 private:
  static void Count(MemoryLedger::Amounts* amounts, int64_t bytes) {
    amounts->live_bytes += bytes;
    amounts->peak_bytes = std::max(amounts->peak_bytes, amounts->live_bytes);
  }

  int64_t calls_ = 0;
  int64_t fail_at_ = 0;
  MemoryLedger::Amounts total_;
  std::array<MemoryLedger::Amounts, kMemoryOwnerCount> by_owner_{};
};

/// A device over a CountingMemory, random operands, and comparisons.
class CpuDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    CpuDeviceOptions options;
    options.threads = 2;
    options.memory = &memory_;
    auto device = CpuDevice::Create(options);
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
  }
  void TearDown() override {
    if (device_ == nullptr) return;
    const MemoryLedger::Snapshot seen = device_->ledger().Read();
    for (int i = 0; i < kMemoryOwnerCount; ++i) {
      EXPECT_EQ(seen.by_owner[i].peak_bytes, memory_.of(static_cast<MemoryOwner>(i)).peak_bytes);
      EXPECT_EQ(seen.by_owner[i].live_bytes, memory_.of(static_cast<MemoryOwner>(i)).live_bytes);
    }
    EXPECT_EQ(seen.total.peak_bytes, memory_.total().peak_bytes);
    EXPECT_EQ(seen.by_owner[static_cast<int>(MemoryOwner::kWorkspace)].live_bytes, 0);
  }

  /// `count` values of a standard normal distribution times `spread`.
  std::vector<float> Random(int64_t count, float spread = 1.0f) {
    std::normal_distribution<float> normal(0.0f, spread);
    std::vector<float> values(count);
    for (float& value : values) value = normal(generator_);
    return values;
  }

  /// A tensor with these values; for bf16 they are rounded first.
  Tensor Make(const std::vector<float>& values, const Shape& shape, DType dtype = DType::kF32) {
    auto tensor = TensorFromFloats(*device_, values, shape, dtype);
    EXPECT_TRUE(tensor.ok()) << tensor.status();
    return tensor.ok() ? *tensor : Tensor();
  }
  Tensor MakeRandom(const Shape& shape, DType dtype = DType::kF32, float spread = 1.0f) {
    return Make(Random(shape.num_elements(), spread), shape, dtype);
  }

  std::vector<float> Values(const Tensor& tensor) {
    auto values = ToFloats(*device_, tensor);
    EXPECT_TRUE(values.ok()) << values.status();
    return values.ok() ? *values : std::vector<float>();
  }

  /// Runs `op` (a callable without arguments that yields StatusOr<Tensor>) with its first, second,
  /// ... allocation failing, until it succeeds: each failure is RESOURCE_EXHAUSTED and leaves the
  /// ledger as it was; the run after it yields the same bytes as an undisturbed one.
  template <typename Op>
  void ExpectSurvivesEveryFailedAllocation(const Op& op) {
    auto undisturbed = op();
    ASSERT_TRUE(undisturbed.ok()) << undisturbed.status();
    const std::vector<uint8_t> want = Bytes(*undisturbed);
    for (int64_t n = 1;; ++n) {
      ASSERT_LT(n, 100);
      const int64_t live = device_->ledger().Read().total.live_bytes;
      const int64_t allocations = device_->ledger().Read().live_allocations;
      memory_.FailAt(n);
      auto result = op();
      const bool failed = memory_.calls() >= n;
      memory_.FailAt(0);
      if (!failed) {
        ASSERT_TRUE(result.ok());
        EXPECT_GT(n, 1) << "the operation allocates nothing";
        return;
      }
      ASSERT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted) << "allocation " << n;
      EXPECT_EQ(device_->ledger().Read().total.live_bytes, live);
      EXPECT_EQ(device_->ledger().Read().live_allocations, allocations);
      auto again = op();
      ASSERT_TRUE(again.ok()) << again.status();
      EXPECT_EQ(Bytes(*again), want);
    }
  }

  std::vector<uint8_t> Bytes(const Tensor& tensor) {
    std::vector<uint8_t> bytes(tensor.num_bytes());
    EXPECT_TRUE(device_->Download(tensor, absl::MakeSpan(bytes)).ok());
    return bytes;
  }

  CountingMemory memory_;
  std::mt19937 generator_{20240229};
  /// As model code sees it: with the default arguments of the base class.
  std::unique_ptr<Device> device_;
};

/// |got - want| <= absolute + relative * |want|, element by element; for a bf16 result pass
/// `relative` >= 2^-8, half an ulp of bf16.
inline void ExpectClose(const std::vector<float>& got, const std::vector<double>& want,
                        double relative, double absolute) {
  ASSERT_EQ(got.size(), want.size());
  double worst = -1.0;
  size_t at = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double excess = std::abs(got[i] - want[i]) - (absolute + relative * std::abs(want[i]));
    if (!(excess <= worst)) {
      worst = std::isnan(excess) ? HUGE_VAL : excess;
      at = i;
    }
  }
  if (got.empty()) return;
  EXPECT_LE(worst, 0.0) << "element " << at << " of " << got.size() << ": got " << got[at]
                        << ", want " << want[at];
}

}  // namespace ltx::cpu

#endif  // LTX_KERNELS_CPU_TEST_UTIL_H_
