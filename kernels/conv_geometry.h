#ifndef LTX_KERNELS_CONV_GEOMETRY_H_
#define LTX_KERNELS_CONV_GEOMETRY_H_

#include <array>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/conv_axis.h"
#include "kernels/op_types.h"

namespace ltx {

/// A convolution whose spatial axes are padded in front to three with extents of one.
struct ConvGeometry {
  int64_t batch = 0;
  int64_t channels = 0;
  std::array<ConvAxis, 3> axes;

  int64_t output_positions() const {
    return batch * axes[0].output * axes[1].output * axes[2].output;
  }
  /// Length of the sum for one output element.
  int64_t depth() const { return axes[0].kernel * axes[1].kernel * axes[2].kernel * channels; }
};

/// Where padding modes find their elements; INTERNAL naming axis and numbers if `geometry` (an
/// axis as the caller gave it) cannot be: strides or dilations below one, negative pads, an input
/// too short for its padding or its kernel. An empty input yields an empty output.
absl::StatusOr<ConvAxis> MakeConvAxis(int axis, int64_t input, int64_t kernel,
                                      const AxisGeometry& geometry);

/// A transposed convolution over one axis. Output u = q * stride + f - padding, 0 <= f < stride, is
/// the sum over i of x[q - i] with tap f + i * stride: a plain convolution over q with taps running
/// backwards, for each phase f.
struct TransposedConv {
  /// Output extent over all phases: (input - 1) stride - 2 padding + kernel; 0 if that is not
  /// positive or the input is empty.
  int64_t length = 0;
  /// The convolution of one phase.
  ConvAxis phase;
  /// Outputs that the phases have in front of the first one that counts.
  int64_t crop = 0;
};

/// INTERNAL naming the numbers if `stride` is below one or `padding` negative.
absl::StatusOr<TransposedConv> MakeTransposedConv(int64_t input, int64_t kernel, int64_t stride,
                                                  int64_t padding);

/// INTERNAL unless `before` and `after` elements can be had from an axis of `extent` in this mode.
absl::Status CheckPadding(int axis, int64_t extent, int64_t before, int64_t after, PadMode mode);

}  // namespace ltx

#endif  // LTX_KERNELS_CONV_GEOMETRY_H_
