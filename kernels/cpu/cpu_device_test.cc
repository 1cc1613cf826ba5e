#include "kernels/cpu/cpu_device.h"

#include <sched.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/test_util.h"

namespace ltx::cpu {
namespace {

using ::testing::HasSubstr;

class CpuDeviceCoreTest : public CpuDeviceTest {};

TEST_F(CpuDeviceCoreTest, ThreadsDefaultToTheCoresOfTheProcess) {
  cpu_set_t cores;
  ASSERT_EQ(sched_getaffinity(0, sizeof(cores), &cores), 0);
  auto device = CpuDevice::Create({});
  ASSERT_TRUE(device.ok());
  EXPECT_EQ((*device)->properties().threads, CPU_COUNT(&cores));
  EXPECT_EQ((*device)->name(), "cpu");
  EXPECT_THAT((*device)->description(), HasSubstr("thread"));
}

TEST_F(CpuDeviceCoreTest, NegativeThreadsAreRefused) {
  CpuDeviceOptions options;
  options.threads = -1;
  EXPECT_EQ(CpuDevice::Create(options).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(CpuDeviceCoreTest, LedgerFollowsTheLastReference) {
  auto tensor = device_->Allocate({3, 5}, DType::kBF16, MemoryOwner::kCache);
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor->raw()) % 64, 0u);
  const Tensor row = *tensor->Rows(1, 2);
  const int cache = static_cast<int>(MemoryOwner::kCache);
  EXPECT_EQ(device_->ledger().Read().by_owner[cache].live_bytes, 30);
  *tensor = Tensor();
  EXPECT_EQ(device_->ledger().Read().by_owner[cache].live_bytes, 30);
  EXPECT_EQ(device_->ledger().Read().live_allocations, 1);
  EXPECT_EQ(row.num_bytes(), 10);
}

TEST_F(CpuDeviceCoreTest, EmptyTensorsNeedNoMemory) {
  memory_.FailAt(1);
  auto tensor = device_->Allocate({4, 0, 3}, DType::kF32, MemoryOwner::kActivations);
  ASSERT_TRUE(tensor.ok());
  EXPECT_TRUE(tensor->defined());
  EXPECT_EQ(memory_.calls(), 0);
  EXPECT_EQ(device_->ledger().Read().live_allocations, 0);
  EXPECT_TRUE(device_->Upload({}, *tensor).ok());
  EXPECT_TRUE(device_->Download(*tensor, {}).ok());
}

TEST_F(CpuDeviceCoreTest, FailedAllocationNamesOwnerNeedAndLiveBytes) {
  auto held = device_->Allocate({100}, DType::kU8, MemoryOwner::kMedia);
  ASSERT_TRUE(held.ok());
  memory_.FailAt(1);
  auto tensor = device_->Allocate({77}, DType::kF32, MemoryOwner::kWeightsDit);
  ASSERT_EQ(tensor.status().code(), absl::StatusCode::kResourceExhausted);
  const std::string message(tensor.status().message());
  EXPECT_THAT(message, HasSubstr("308"));
  EXPECT_THAT(message, HasSubstr("weights/dit"));
  EXPECT_THAT(message, HasSubstr("100"));
  EXPECT_EQ(device_->ledger().Read().total.live_bytes, 100);
  EXPECT_EQ(device_->ledger().Read().total.peak_bytes, 100);
  EXPECT_TRUE(device_->Allocate({77}, DType::kF32, MemoryOwner::kWeightsDit).ok());
}

TEST_F(CpuDeviceCoreTest, ImpossibleShapesAreRefused) {
  const int64_t huge = std::numeric_limits<int64_t>::max() / 2;
  EXPECT_EQ(device_->Allocate({huge, 3}, DType::kU8, MemoryOwner::kMedia).status().code(),
            absl::StatusCode::kInternal);
  EXPECT_EQ(device_->Allocate({-1}, DType::kU8, MemoryOwner::kMedia).status().code(),
            absl::StatusCode::kInternal);
}

TEST_F(CpuDeviceCoreTest, CopiesCheckTheirSize) {
  auto tensor = device_->Allocate({2, 3}, DType::kI32, MemoryOwner::kActivations);
  ASSERT_TRUE(tensor.ok());
  // One byte off the alignment of the elements.
  std::vector<uint8_t> bytes(25);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 7);
  const auto odd = absl::MakeConstSpan(bytes).subspan(1);
  EXPECT_TRUE(device_->Upload(odd, *tensor).ok());
  EXPECT_EQ(Bytes(*tensor), std::vector<uint8_t>(odd.begin(), odd.end()));
  EXPECT_EQ(device_->Upload(bytes, *tensor).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(device_->Download(*tensor, absl::MakeSpan(bytes)).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(device_->Upload({}, Tensor()).code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(device_->Synchronize().ok());
}

}  // namespace
}  // namespace ltx::cpu
