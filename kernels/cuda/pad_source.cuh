#ifndef LTX_KERNELS_CUDA_PAD_SOURCE_CUH_
#define LTX_KERNELS_CUDA_PAD_SOURCE_CUH_

#include "kernels/op_enums.h"

namespace ltx::cuda {

/// The element of [0, extent) that stands at `position` of a padded axis, or -1 for a zero: what
/// kernels/conv_axis.h's PaddedSource says, on the device.
__device__ __forceinline__ int PadSource(int position, int extent, PadMode mode) {
  if (position >= 0 && position < extent) return position;
  switch (mode) {
    case PadMode::kZeros:
      return -1;
    case PadMode::kReplicate:
      return position < 0 ? 0 : extent - 1;
    case PadMode::kReflect:
      return position < 0 ? -position : 2 * (extent - 1) - position;
    case PadMode::kCircular:
      return (position % extent + extent) % extent;
  }
  return -1;
}

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_PAD_SOURCE_CUH_
