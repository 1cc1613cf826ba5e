#ifndef LTX_KERNELS_CUDA_GPU_CHECKS_H_
#define LTX_KERNELS_CUDA_GPU_CHECKS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace ltx::cuda {

/// Whether there is a GPU that this build can use, told from what the CUDA runtime says. Needs
/// neither the runtime nor a GPU.

/// "13.0" of 13000, the way in which driver and runtime tell their versions.
std::string CudaVersionText(int version);

/// What the runtime says before any GPU is opened.
struct CudaInstallation {
  /// The newest CUDA that the driver knows; 0: there is no driver.
  int driver_version = 0;
  /// The CUDA that this build was made with.
  int runtime_version = 0;
  /// How the runtime answered when asked for the number of GPUs.
  enum class Answer {
    kCounted,
    kDriverTooOld,
    kNoGpu,
    kFailed,
  };
  Answer answer = Answer::kCounted;
  /// If counted.
  int gpus = 0;
  /// If failed: in the runtime's words.
  std::string failure;
};

/// FAILED_PRECONDITION if there is no driver, it is too old, there is no GPU it may use, or it does
/// not work. A driver is too old for a newer major version of CUDA; within one, any will do.
absl::Status CheckInstallation(const CudaInstallation& installation);

/// INVALID_ARGUMENT unless GPU `ordinal` is among `gpus` of them (at least one).
absl::Status CheckOrdinal(int ordinal, int gpus);

/// FAILED_PRECONDITION if the GPU, by whatever name, is older than the code in this build.
absl::Status CheckCapability(absl::string_view gpu, int major, int minor);

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_GPU_CHECKS_H_
