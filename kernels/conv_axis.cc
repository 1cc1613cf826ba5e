#include "kernels/conv_axis.h"

#include <algorithm>

namespace ltx {

int64_t PaddedSource(int64_t position, int64_t extent, PadMode mode) {
  switch (mode) {
    case PadMode::kZeros:
      return -1;
    case PadMode::kReplicate:
      return std::clamp<int64_t>(position, 0, extent - 1);
    case PadMode::kReflect:
      return position < 0 ? -position : 2 * (extent - 1) - position;
    case PadMode::kCircular:
      return ((position % extent) + extent) % extent;
  }
  return -1;
}

int64_t ConvAxis::Outside(int64_t position) const {
  return PaddedSource(position, input, pad_mode);
}

}  // namespace ltx
