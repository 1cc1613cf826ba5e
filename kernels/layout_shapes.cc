#include "kernels/layout_shapes.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/conv_geometry.h"
#include "kernels/operand_check.h"
#include "kernels/status_macros.h"

namespace ltx {
namespace {

/// The axis counted from the front, or INTERNAL.
absl::StatusOr<int> CheckAxis(absl::string_view operation, const Tensor& x, int axis) {
  if (!x.defined()) return OperandError(operation, "needs its operand", {&x});
  const int index = axis < 0 ? axis + x.rank() : axis;
  if (index < 0 || index >= x.rank()) {
    return OperandError(operation, absl::StrCat("has no axis ", axis), {&x});
  }
  return index;
}

}  // namespace

absl::StatusOr<Shape> PermuteShape(const Tensor& x, absl::Span<const int> order) {
  if (!x.defined() || static_cast<int>(order.size()) != x.rank()) {
    return OperandError("Permute", "needs one entry of the order per axis", {&x});
  }
  Shape shape = x.shape();
  std::vector<bool> used(order.size(), false);
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] < 0 || order[i] >= x.rank() || used[order[i]]) {
      return OperandError("Permute", absl::StrCat("entry ", i, " of the order is ", order[i]),
                          {&x});
    }
    used[order[i]] = true;
    shape.set_dim(static_cast<int>(i), x.dim(order[i]));
  }
  return shape;
}

absl::StatusOr<Shape> SliceShape(const Tensor& x, int axis, int64_t begin, int64_t end) {
  LTX_ASSIGN_OR_RETURN(const int index, CheckAxis("Slice", x, axis));
  if (begin < 0 || end < begin || end > x.dim(index)) {
    return OperandError("Slice", absl::StrCat("no range [", begin, ", ", end, ") on axis ", axis),
                        {&x});
  }
  Shape shape = x.shape();
  shape.set_dim(index, end - begin);
  return shape;
}

absl::StatusOr<Shape> ConcatShape(absl::Span<const Tensor> parts, int axis) {
  if (parts.empty()) return absl::InternalError("Concat: needs at least one part");
  LTX_ASSIGN_OR_RETURN(const int index, CheckAxis("Concat", parts[0], axis));
  Shape shape = parts[0].shape();
  shape.set_dim(index, 0);
  for (const Tensor& part : parts) {
    if (!part.defined() || part.rank() != shape.rank() || part.dtype() != parts[0].dtype()) {
      return OperandError("Concat", "parts must have one rank and dtype", {&parts[0], &part});
    }
    Shape expected = part.shape();
    expected.set_dim(index, shape.dim(index));
    if (expected != shape) {
      return OperandError("Concat", absl::StrCat("parts may differ on axis ", axis, " alone"),
                          {&parts[0], &part});
    }
    shape.set_dim(index, shape.dim(index) + part.dim(index));
  }
  return shape;
}

absl::StatusOr<Shape> PadShape(const Tensor& x, int axis, int64_t before, int64_t after,
                               PadMode mode) {
  LTX_ASSIGN_OR_RETURN(const int index, CheckAxis("Pad", x, axis));
  if (absl::Status status = CheckPadding(axis, x.dim(index), before, after, mode); !status.ok()) {
    return OperandError("Pad", status.message(), {&x});
  }
  Shape shape = x.shape();
  shape.set_dim(index, x.dim(index) + before + after);
  return shape;
}

absl::StatusOr<Shape> GatherRowsShape(const Tensor& table, absl::Span<const int32_t> indices) {
  if (!table.defined() || table.rank() != 2) {
    return OperandError("GatherRows", "the table must be [V, D]", {&table});
  }
  for (const int32_t index : indices) {
    if (index < 0 || index >= table.dim(0)) {
      return OperandError("GatherRows", absl::StrCat("no row ", index), {&table});
    }
  }
  return Shape({static_cast<int64_t>(indices.size()), table.dim(1)});
}

absl::StatusOr<Shape> InterleaveShape(absl::Span<const Tensor> parts) {
  if (parts.empty()) return absl::InternalError("Interleave: needs at least one part");
  const Tensor& first = parts[0];
  LTX_ASSIGN_OR_RETURN(const int last, CheckAxis("Interleave", first, -1));
  for (const Tensor& part : parts) {
    if (!part.defined() || part.shape() != first.shape() || part.dtype() != first.dtype()) {
      return OperandError("Interleave", "parts must have one shape and dtype", {&first, &part});
    }
  }
  Shape shape = first.shape();
  shape.set_dim(last, shape.dim(last) * static_cast<int64_t>(parts.size()));
  return shape;
}

Shape SpaceOfDepth(const Shape& x, const std::array<int, 3>& factors, bool drop_first_frame) {
  const auto [p1, p2, p3] = factors;
  const int64_t frames = std::max<int64_t>(0, x.dim(1) * p1 - (drop_first_frame ? 1 : 0));
  return {x.dim(0), frames, x.dim(2) * p2, x.dim(3) * p3, x.dim(4) / (int64_t{p1} * p2 * p3)};
}

absl::StatusOr<Shape> DepthToSpaceShape(const Tensor& x, const std::array<int, 3>& factors,
                                        bool drop_first_frame) {
  const auto [p1, p2, p3] = factors;
  if (!x.defined() || x.rank() != 5 || p1 < 1 || p2 < 1 || p3 < 1 ||
      x.dim(4) % (int64_t{p1} * p2 * p3) != 0) {
    return OperandError("DepthToSpace",
                        absl::StrCat("needs [B, T, H, W, C ", p1, " ", p2, " ", p3, "]"), {&x});
  }
  return SpaceOfDepth(x.shape(), factors, drop_first_frame);
}

absl::StatusOr<Shape> UpsampleNearest2xShape(const Tensor& x) {
  if (!x.defined() || x.rank() != 4) {
    return OperandError("UpsampleNearest2x", "needs [B, H, W, C]", {&x});
  }
  return Shape({x.dim(0), x.dim(1) * 2, x.dim(2) * 2, x.dim(3)});
}

absl::StatusOr<Shape> I420Shape(const Tensor& frames) {
  if (!frames.defined() || frames.dtype() != DType::kF32 || frames.rank() != 4 ||
      frames.dim(1) % 2 != 0 || frames.dim(2) % 2 != 0 || frames.dim(3) != 3) {
    return OperandError("ToByteFrames", "needs F32 [F, H, W, 3] with even H and W", {&frames});
  }
  return Shape({frames.dim(0), frames.dim(1) * 3 / 2, frames.dim(2)});
}

AxisView::AxisView(const Tensor& x, int axis) {
  const int index = axis < 0 ? axis + x.rank() : axis;
  for (int i = 0; i < index; ++i) outer *= x.dim(i);
  extent = x.dim(index);
  inner_bytes = SizeOf(x.dtype());
  for (int i = index + 1; i < x.rank(); ++i) inner_bytes *= x.dim(i);
}

}  // namespace ltx
