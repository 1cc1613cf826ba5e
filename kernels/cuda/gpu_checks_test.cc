#include "kernels/cuda/gpu_checks.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::cuda {
namespace {

using Answer = CudaInstallation::Answer;

CudaInstallation Working() {
  CudaInstallation installation;
  installation.driver_version = 13000;
  installation.runtime_version = 13000;
  installation.gpus = 1;
  return installation;
}

void ExpectRefused(const CudaInstallation& installation, const std::string& message) {
  const absl::Status status = CheckInstallation(installation);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_EQ(status.message(), message);
}

TEST(GpuChecksTest, VersionsAreToldAsUsersKnowThem) {
  EXPECT_EQ(CudaVersionText(13000), "13.0");
  EXPECT_EQ(CudaVersionText(12080), "12.8");
  EXPECT_EQ(CudaVersionText(11020), "11.2");
}

TEST(GpuChecksTest, AWorkingInstallationPasses) { EXPECT_TRUE(CheckInstallation(Working()).ok()); }

TEST(GpuChecksTest, WithoutADriver) {
  CudaInstallation installation = Working();
  installation.driver_version = 0;
  // What the runtime answers without one is of no interest.
  for (const Answer answer : {Answer::kDriverTooOld, Answer::kNoGpu, Answer::kFailed}) {
    installation.answer = answer;
    installation.gpus = 0;
    ExpectRefused(installation, "no NVIDIA driver on this machine (no libcuda.so.1)");
  }
}

TEST(GpuChecksTest, DriverOfAnOlderMajorVersion) {
  CudaInstallation installation = Working();
  installation.driver_version = 12080;
  const std::string message =
      "the NVIDIA driver is too old: it knows CUDA 12.8, this build needs CUDA 13.0";
  ExpectRefused(installation, message);
  installation.answer = Answer::kDriverTooOld;
  installation.gpus = 0;
  ExpectRefused(installation, message);
}

TEST(GpuChecksTest, MinorVersionsMayDiffer) {
  CudaInstallation installation = Working();
  installation.runtime_version = 13010;
  EXPECT_TRUE(CheckInstallation(installation).ok());
  installation.driver_version = 14000;
  EXPECT_TRUE(CheckInstallation(installation).ok());
  // Unless the runtime itself says otherwise.
  installation.driver_version = 13000;
  installation.answer = Answer::kDriverTooOld;
  ExpectRefused(installation,
                "the NVIDIA driver is too old: it knows CUDA 13.0, this build needs CUDA 13.1");
}

TEST(GpuChecksTest, WithoutAGpu) {
  CudaInstallation installation = Working();
  installation.gpus = 0;
  ExpectRefused(installation, "the NVIDIA driver finds no GPU it may use");
  installation.answer = Answer::kNoGpu;
  ExpectRefused(installation, "the NVIDIA driver finds no GPU it may use");
}

TEST(GpuChecksTest, ADriverThatDoesNotWorkIsQuoted) {
  CudaInstallation installation = Working();
  installation.answer = Answer::kFailed;
  installation.gpus = 0;
  installation.failure = "system not yet initialized";
  ExpectRefused(installation, "the NVIDIA driver does not work: system not yet initialized");
}

TEST(GpuChecksTest, Ordinals) {
  EXPECT_TRUE(CheckOrdinal(0, 1).ok());
  EXPECT_TRUE(CheckOrdinal(3, 4).ok());
  for (const int ordinal : {-1, 1, 7}) {
    const absl::Status status = CheckOrdinal(ordinal, 1);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << ordinal;
  }
  EXPECT_EQ(CheckOrdinal(1, 1).message(), "there is no GPU 1; this machine has cuda:0");
  EXPECT_EQ(CheckOrdinal(4, 4).message(), "there is no GPU 4; this machine has cuda:0 to cuda:3");
}

TEST(GpuChecksTest, ComputeCapabilities) {
  EXPECT_TRUE(CheckCapability("cuda:0 (H200)", 9, 0).ok());
  EXPECT_TRUE(CheckCapability("cuda:0 (A100)", 8, 0).ok());
  EXPECT_TRUE(CheckCapability("cuda:0 (B200)", 10, 0).ok());
  const absl::Status status = CheckCapability("cuda:1 (Tesla T4)", 7, 5);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            "cuda:1 (Tesla T4) has compute capability 7.5; 8.0 or newer is needed");
}

}  // namespace
}  // namespace ltx::cuda
