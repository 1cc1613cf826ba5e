#ifndef LTX_KERNELS_CONV_AXIS_H_
#define LTX_KERNELS_CONV_AXIS_H_

#include <cstdint>

#include "kernels/op_enums.h"

namespace ltx {

/// One spatial axis of a convolution: which input position each (output position, tap) reads.
struct ConvAxis {
  int64_t input = 1;
  int64_t output = 1;
  int64_t kernel = 1;
  int64_t stride = 1;
  /// Negative for a transposed convolution, whose taps walk backwards.
  int64_t dilation = 1;
  int64_t pad_before = 0;
  PadMode pad_mode = PadMode::kZeros;

  /// Input position before padding is applied; may lie outside [0, input).
  int64_t Position(int64_t out, int64_t tap) const {
    return out * stride + tap * dilation - pad_before;
  }
  /// The element that stands at `position`, or -1 for a zero.
  int64_t Source(int64_t position) const {
    if (position >= 0 && position < input) return position;
    return Outside(position);
  }

 private:
  int64_t Outside(int64_t position) const;
};

/// The element of [0, extent) that stands at `position` outside of it, or -1 for a zero. The
/// padding must have passed CheckPadding (kernels/conv_geometry.h).
int64_t PaddedSource(int64_t position, int64_t extent, PadMode mode);

}  // namespace ltx

#endif  // LTX_KERNELS_CONV_AXIS_H_
