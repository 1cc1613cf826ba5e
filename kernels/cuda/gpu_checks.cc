#include "kernels/cuda/gpu_checks.h"

#include "absl/strings/str_cat.h"

namespace ltx::cuda {
namespace {

using Answer = CudaInstallation::Answer;

/// bf16 products and asynchronous copies begin with Ampere.
constexpr int kOldestMajor = 8;

int MajorOf(int version) { return version / 1000; }

}  // namespace

std::string CudaVersionText(int version) {
  return absl::StrCat(MajorOf(version), ".", version % 1000 / 10);
}

absl::Status CheckInstallation(const CudaInstallation& installation) {
  if (installation.driver_version == 0) {
    return absl::FailedPreconditionError("no NVIDIA driver on this machine (no libcuda.so.1)");
  }
  if (installation.answer == Answer::kDriverTooOld ||
      MajorOf(installation.driver_version) < MajorOf(installation.runtime_version)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the NVIDIA driver is too old: it knows CUDA ",
                     CudaVersionText(installation.driver_version), ", this build needs CUDA ",
                     CudaVersionText(installation.runtime_version)));
  }
  if (installation.answer == Answer::kFailed) {
    return absl::FailedPreconditionError(
        absl::StrCat("the NVIDIA driver does not work: ", installation.failure));
  }
  if (installation.answer == Answer::kNoGpu || installation.gpus == 0) {
    return absl::FailedPreconditionError("the NVIDIA driver finds no GPU it may use");
  }
  return absl::OkStatus();
}

absl::Status CheckOrdinal(int ordinal, int gpus) {
  if (ordinal >= 0 && ordinal < gpus) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("there is no GPU ", ordinal, "; this machine has cuda:0",
                   gpus == 1 ? "" : absl::StrCat(" to cuda:", gpus - 1)));
}

absl::Status CheckCapability(absl::string_view gpu, int major, int minor) {
  if (major >= kOldestMajor) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(gpu, " has compute capability ", major, ".",
                                                    minor, "; ", kOldestMajor,
                                                    ".0 or newer is needed"));
}

}  // namespace ltx::cuda
