#include "kernels/host_copy.h"

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/cpu_device.h"

namespace ltx {
namespace {

class HostCopyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto device = cpu::CpuDevice::Create({});
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
  }

  std::unique_ptr<Device> device_;
};

TEST_F(HostCopyTest, FloatsComeBack) {
  const std::vector<float> values = {0.0f, -1.5f, 3.25f, 1e30f, -0.0f, 7.0f};
  auto tensor = TensorFromFloats(*device_, values, {2, 3});
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(tensor->shape(), Shape({2, 3}));
  auto back = ToFloats(*device_, *tensor);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(*back, values);
}

TEST_F(HostCopyTest, BFloat16RoundsToNearestEven) {
  // 1 + 1/256 and 1 + 3/256 lie midway between bf16 numbers.
  const std::vector<float> values = {1.0f + 1.0f / 256, 1.0f + 3.0f / 256, 1.0f + 1.1f / 256,
                                     -1.0f - 1.0f / 256, std::numeric_limits<float>::infinity()};
  auto tensor = TensorFromFloats(*device_, values, {5}, DType::kBF16);
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(tensor->num_bytes(), 10);
  auto back = ToFloats(*device_, *tensor);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(*back, (std::vector<float>{1.0f, 1.015625f, 1.0078125f, -1.0f,
                                       std::numeric_limits<float>::infinity()}));
  auto nan = TensorFromFloats(*device_, {std::nanf("")}, {1}, DType::kBF16);
  ASSERT_TRUE(nan.ok());
  EXPECT_TRUE(std::isnan((*ToFloats(*device_, *nan))[0]));
}

TEST_F(HostCopyTest, CopyChangesTheOwner) {
  const std::vector<float> values = {1.0f, -2.5f, 3.0f, 0.5f};
  auto tensor = TensorFromFloats(*device_, values, {4, 1}, DType::kBF16);
  ASSERT_TRUE(tensor.ok());
  auto copy = CopyForOwner(*device_, *tensor, MemoryOwner::kCache);
  ASSERT_TRUE(copy.ok()) << copy.status();
  tensor = Tensor();
  EXPECT_EQ(copy->shape(), Shape({4, 1}));
  EXPECT_EQ(copy->dtype(), DType::kBF16);
  EXPECT_EQ(*ToFloats(*device_, *copy), values);
  const MemoryLedger::Snapshot memory = device_->ledger().Read();
  EXPECT_EQ(memory.total.live_bytes, 8);
  EXPECT_EQ(memory.by_owner[static_cast<int>(MemoryOwner::kCache)].live_bytes, 8);
}

TEST_F(HostCopyTest, IntegersAndBytes) {
  auto ints = TensorFromInts(*device_, {1, -2, 3}, {3}, MemoryOwner::kCache);
  ASSERT_TRUE(ints.ok());
  EXPECT_EQ(ints->dtype(), DType::kI32);
  std::vector<int32_t> back(3);
  ASSERT_TRUE(
      device_->Download(*ints, absl::MakeSpan(reinterpret_cast<uint8_t*>(back.data()), 12)).ok());
  EXPECT_EQ(back, (std::vector<int32_t>{1, -2, 3}));
  EXPECT_EQ(device_->ledger().Read().by_owner[static_cast<int>(MemoryOwner::kCache)].live_bytes,
            12);
  auto bytes = TensorFromBytes(*device_, {9, 8}, {2, 1});
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(bytes->dtype(), DType::kU8);
  EXPECT_EQ(ToFloats(*device_, *bytes).status().code(), absl::StatusCode::kUnimplemented);
}

TEST_F(HostCopyTest, ZerosAndNothing) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    auto zeros = ZeroTensor(*device_, {2, 2}, dtype);
    ASSERT_TRUE(zeros.ok());
    EXPECT_EQ(*ToFloats(*device_, *zeros), std::vector<float>(4, 0.0f));
    auto none = ZeroTensor(*device_, {0, 7}, dtype);
    ASSERT_TRUE(none.ok());
    EXPECT_TRUE(ToFloats(*device_, *none)->empty());
  }
}

TEST_F(HostCopyTest, MisfitsAreRefused) {
  EXPECT_EQ(TensorFromFloats(*device_, {1.0f, 2.0f}, {3}).status().code(),
            absl::StatusCode::kInternal);
  EXPECT_EQ(TensorFromFloats(*device_, {1.0f}, {1}, DType::kF16).status().code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(device_->ledger().Read().total.live_bytes, 0);
}

}  // namespace
}  // namespace ltx
