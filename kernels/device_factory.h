#ifndef LTX_KERNELS_DEVICE_FACTORY_H_
#define LTX_KERNELS_DEVICE_FACTORY_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/device.h"

namespace ltx {

/// A device by the name a user gives it.
struct OpenedDevice {
  std::unique_ptr<Device> device;
  /// Why "auto" took the CPU; empty if it did not have to choose.
  std::string why_cpu;
};

/// `name` is "cpu", "cuda" (the first GPU), "cuda:N", or "auto": the first GPU if this build has
/// CUDA and the machine a driver and a GPU for it, else the CPU. `threads`: of the CPU device, 0
/// for one per core.
///
/// INVALID_ARGUMENT for another name or a GPU that is not there; FAILED_PRECONDITION, naming what
/// is missing, if the device cannot be had. An explicit choice is never replaced by another device.
absl::StatusOr<OpenedDevice> OpenDevice(absl::string_view name, int threads);

}  // namespace ltx

#endif  // LTX_KERNELS_DEVICE_FACTORY_H_
