#ifndef LTX_KERNELS_LAYOUT_SHAPES_H_
#define LTX_KERNELS_LAYOUT_SHAPES_H_

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/op_types.h"
#include "kernels/tensor.h"

namespace ltx {

/// Shapes of the results of the layout operations in kernels/device.h, the same on every device;
/// INTERNAL, naming the operation and its operands, if these do not fit.

absl::StatusOr<Shape> PermuteShape(const Tensor& x, absl::Span<const int> order);
absl::StatusOr<Shape> SliceShape(const Tensor& x, int axis, int64_t begin, int64_t end);
absl::StatusOr<Shape> ConcatShape(absl::Span<const Tensor> parts, int axis);
absl::StatusOr<Shape> PadShape(const Tensor& x, int axis, int64_t before, int64_t after,
                               PadMode mode);
absl::StatusOr<Shape> GatherRowsShape(const Tensor& table, absl::Span<const int32_t> indices);
absl::StatusOr<Shape> InterleaveShape(absl::Span<const Tensor> parts);
/// What DepthToSpace makes of x [B, T, H, W, C], whose channels divide.
Shape SpaceOfDepth(const Shape& x, const std::array<int, 3>& factors, bool drop_first_frame);
absl::StatusOr<Shape> DepthToSpaceShape(const Tensor& x, const std::array<int, 3>& factors,
                                        bool drop_first_frame);
absl::StatusOr<Shape> UpsampleNearest2xShape(const Tensor& x);
/// Of ByteFrames::i420; frames are f32 [F, H, W, 3] with even H and W.
absl::StatusOr<Shape> I420Shape(const Tensor& frames);

/// A tensor split at an axis (negative: from the end): [outer, extent, inner_bytes]. The axis must
/// be one of the tensor's.
struct AxisView {
  AxisView(const Tensor& x, int axis);

  int64_t outer = 1;
  int64_t extent = 1;
  int64_t inner_bytes = 1;
};

}  // namespace ltx

#endif  // LTX_KERNELS_LAYOUT_SHAPES_H_
