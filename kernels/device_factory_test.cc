#include "kernels/device_factory.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/open_cuda.h"

namespace ltx {
namespace {

using ::testing::HasSubstr;

TEST(DeviceFactoryTest, Cpu) {
  const auto opened = OpenDevice("cpu", 2);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->device->name(), "cpu");
  EXPECT_EQ(opened->device->properties().threads, 2);
  EXPECT_EQ(opened->why_cpu, "");
}

TEST(DeviceFactoryTest, AutoTakesAGpuIfThereIsOneAndElseSaysWhyNot) {
  const auto opened = OpenDevice("auto", 1);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const absl::Status cuda = cuda::CheckCuda();
  EXPECT_EQ(opened->device->name(), cuda.ok() ? "cuda:0" : "cpu");
  EXPECT_EQ(opened->why_cpu, cuda.message());
}

TEST(DeviceFactoryTest, AnExplicitGpuIsNeverReplaced) {
  for (const char* name : {"cuda", "cuda:0"}) {
    const auto opened = OpenDevice(name, 1);
    const absl::Status cuda = cuda::CheckCuda();
    ASSERT_EQ(opened.status().code(), cuda.code());
    if (cuda.ok()) continue;
    EXPECT_EQ(cuda.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(opened.status().message()), HasSubstr(std::string(name)));
    EXPECT_THAT(std::string(opened.status().message()), HasSubstr(std::string(cuda.message())));
  }
  EXPECT_FALSE(OpenDevice("cuda:99", 1).ok());
}

TEST(DeviceFactoryTest, OtherNamesAreRefused) {
  for (const char* name : {"", "tpu", "cuda:", "cuda:x", "cuda:-1", "CPU", "cpu:0"}) {
    const absl::Status status = OpenDevice(name, 1).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr("auto, cpu, cuda and cuda:N"));
  }
}

}  // namespace
}  // namespace ltx
