#include "kernels/device_factory.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cuda/open_cuda.h"
#include "kernels/status_macros.h"

namespace ltx {
namespace {

absl::StatusOr<OpenedDevice> OpenCpu(int threads, std::string why_cpu) {
  cpu::CpuDeviceOptions options;
  options.threads = threads;
  OpenedDevice opened;
  LTX_ASSIGN_OR_RETURN(opened.device, cpu::CpuDevice::Create(options));
  opened.why_cpu = std::move(why_cpu);
  return opened;
}

absl::StatusOr<OpenedDevice> OpenGpu(absl::string_view name, int ordinal) {
  OpenedDevice opened;
  absl::StatusOr<std::unique_ptr<Device>> device = cuda::OpenCuda(ordinal);
  if (!device.ok()) {
    return absl::Status(device.status().code(),
                        absl::StrCat("device \"", name, "\": ", device.status().message()));
  }
  opened.device = *std::move(device);
  return opened;
}

}  // namespace

absl::StatusOr<OpenedDevice> OpenDevice(absl::string_view name, int threads) {
  if (name == "cpu") return OpenCpu(threads, "");
  if (name == "auto") {
    const absl::Status cuda = cuda::CheckCuda();
    return cuda.ok() ? OpenGpu("cuda:0", 0) : OpenCpu(threads, std::string(cuda.message()));
  }
  if (name == "cuda") return OpenGpu(name, 0);
  absl::string_view number = name;
  int ordinal = 0;
  if (absl::ConsumePrefix(&number, "cuda:") && absl::SimpleAtoi(number, &ordinal) && ordinal >= 0) {
    return OpenGpu(name, ordinal);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("device is \"", name, "\", legal are auto, cpu, cuda and cuda:N"));
}

}  // namespace ltx
