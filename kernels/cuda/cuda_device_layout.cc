#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/byte_frames.h"
#include "kernels/cuda/cast.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/layout.h"
#include "kernels/layout_shapes.h"
#include "kernels/op_check.h"
#include "kernels/operand_check.h"
#include "kernels/status_macros.h"

namespace ltx::cuda {

absl::StatusOr<Tensor> CudaDevice::Cast(const Tensor& x, DType dtype) {
  if (!x.defined()) return OperandError("Cast", "needs its operand", {&x});
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(x.shape(), dtype, MemoryOwner::kActivations));
  if (x.dtype() == dtype) {
    LaunchCopyRows(x.raw(), x.num_bytes(), y.raw(), y.num_bytes(), x.num_bytes(), 1,
                   context_->stream());
  } else if (!LaunchCast(x.raw(), x.dtype(), y.raw(), dtype, x.num_elements(),
                         context_->stream())) {
    return absl::UnimplementedError(
        absl::StrCat("Cast: from ", DTypeName(x.dtype()), " to ", DTypeName(dtype)));
  }
  return Launched("Cast", y);
}

absl::StatusOr<Tensor> CudaDevice::Permute(const Tensor& x, absl::Span<const int> order) {
  LTX_ASSIGN_OR_RETURN(const Shape shape, PermuteShape(x, order));
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(shape, x.dtype(), MemoryOwner::kActivations));
  std::array<int64_t, kMaxCopyAxes> strides{};
  int64_t stride = 1;
  for (int i = x.rank() - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= x.dim(i);
  }
  std::array<CopyAxis, kMaxCopyAxes> axes;
  for (size_t i = 0; i < order.size(); ++i) axes[i] = {x.dim(order[i]), strides[order[i]]};
  LaunchPermute(x.raw(), axes, x.rank(), SizeOf(x.dtype()), y.raw(), context_->stream());
  return Launched("Permute", y);
}

absl::StatusOr<Tensor> CudaDevice::Slice(const Tensor& x, int axis, int64_t begin, int64_t end) {
  LTX_ASSIGN_OR_RETURN(const Shape shape, SliceShape(x, axis, begin, end));
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(shape, x.dtype(), MemoryOwner::kActivations));
  const AxisView view(x, axis);
  const int64_t bytes = (end - begin) * view.inner_bytes;
  LaunchCopyRows(x.data<char>() + begin * view.inner_bytes, view.extent * view.inner_bytes, y.raw(),
                 bytes, bytes, view.outer, context_->stream());
  return Launched("Slice", y);
}

absl::StatusOr<Tensor> CudaDevice::Concat(absl::Span<const Tensor> parts, int axis) {
  LTX_ASSIGN_OR_RETURN(const Shape shape, ConcatShape(parts, axis));
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(shape, parts[0].dtype(), MemoryOwner::kActivations));
  const AxisView whole(y, axis);
  const int64_t pitch = whole.extent * whole.inner_bytes;
  int64_t offset = 0;
  for (const Tensor& part : parts) {
    const int64_t bytes = part.dim(axis) * whole.inner_bytes;
    LaunchCopyRows(part.raw(), bytes, y.data<char>() + offset, pitch, bytes, whole.outer,
                   context_->stream());
    offset += bytes;
  }
  return Launched("Concat", y);
}

absl::StatusOr<Tensor> CudaDevice::Pad(const Tensor& x, int axis, int64_t before, int64_t after,
                                       PadMode mode) {
  LTX_ASSIGN_OR_RETURN(const Shape shape, PadShape(x, axis, before, after, mode));
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(shape, x.dtype(), MemoryOwner::kActivations));
  const AxisView view(x, axis);
  LaunchPad(x.raw(), view.outer, view.extent, view.inner_bytes, before, after, mode, y.raw(),
            context_->stream());
  return Launched("Pad", y);
}

absl::StatusOr<Tensor> CudaDevice::GatherRows(const Tensor& table,
                                              absl::Span<const int32_t> indices) {
  LTX_ASSIGN_OR_RETURN(const Shape shape, GatherRowsShape(table, indices));
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(shape, table.dtype(), MemoryOwner::kActivations));
  if (y.num_elements() == 0) return y;
  LTX_ASSIGN_OR_RETURN(const Tensor on_device,
                       Allocate({shape.dim(0)}, DType::kI32, MemoryOwner::kWorkspace));
  LTX_RETURN_IF_ERROR(Upload(absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(indices.data()),
                                                 indices.size() * sizeof(int32_t)),
                             on_device));
  LaunchGatherRows(table.raw(), on_device.data<int32_t>(), shape.dim(0),
                   shape.dim(1) * SizeOf(table.dtype()), y.raw(), context_->stream());
  return Launched("GatherRows", y);
}

absl::StatusOr<Tensor> CudaDevice::Interleave(absl::Span<const Tensor> parts) {
  LTX_ASSIGN_OR_RETURN(const Shape shape, InterleaveShape(parts));
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(shape, parts[0].dtype(), MemoryOwner::kActivations));
  const auto count = static_cast<int64_t>(parts.size());
  for (int64_t first = 0; first < count; first += kMaxInterleaveParts) {
    const int64_t some = std::min<int64_t>(kMaxInterleaveParts, count - first);
    InterleaveParts pointers;
    for (int64_t i = 0; i < some; ++i) pointers.of[i] = parts[first + i].raw();
    LaunchInterleave(pointers, static_cast<int>(some), parts[0].num_elements(), SizeOf(y.dtype()),
                     count, first, y.raw(), context_->stream());
  }
  return Launched("Interleave", y);
}

absl::StatusOr<Tensor> CudaDevice::DepthToSpace(const Tensor& x, const std::array<int, 3>& factors,
                                                bool drop_first_frame) {
  LTX_ASSIGN_OR_RETURN(const Shape shape, DepthToSpaceShape(x, factors, drop_first_frame));
  if (int64_t{factors[0]} * factors[1] * factors[2] > kMaxDepthToSpaceFactors) {
    return absl::UnimplementedError(
        absl::StrCat("DepthToSpace: factors ", factors[0], ", ", factors[1], ", ", factors[2],
                     "; their product may be ", kMaxDepthToSpaceFactors, " at most"));
  }
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(shape, x.dtype(), MemoryOwner::kActivations));
  DepthToSpaceArgs args;
  args.batch = x.dim(0);
  args.frames = x.dim(1);
  args.height = x.dim(2);
  args.width = x.dim(3);
  args.channels = shape.dim(4);
  args.factors = factors;
  args.drop_first_frame = drop_first_frame;
  LaunchDepthToSpace(x.raw(), args, SizeOf(x.dtype()), y.raw(), context_->stream());
  return Launched("DepthToSpace", y);
}

absl::StatusOr<Tensor> CudaDevice::UpsampleNearest2x(const Tensor& x) {
  LTX_ASSIGN_OR_RETURN(const Shape shape, UpsampleNearest2xShape(x));
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(shape, x.dtype(), MemoryOwner::kActivations));
  LaunchUpsampleNearest2x(x.raw(), x.dim(0), x.dim(1), x.dim(2), x.dim(3) * SizeOf(x.dtype()),
                          y.raw(), context_->stream());
  return Launched("UpsampleNearest2x", y);
}

absl::StatusOr<ByteFrames> CudaDevice::ToByteFrames(const Tensor& frames, MemoryOwner owner) {
  LTX_ASSIGN_OR_RETURN(const Shape i420, I420Shape(frames));
  const int64_t height = frames.dim(1);
  const int64_t width = frames.dim(2);
  ByteFrames bytes;
  LTX_ASSIGN_OR_RETURN(bytes.rgb, Allocate(frames.shape(), DType::kU8, owner));
  LTX_ASSIGN_OR_RETURN(bytes.i420, Allocate(i420, DType::kU8, owner));
  LaunchByteFrames(frames.data<float>(), frames.dim(0), height, width, bytes.rgb.data<uint8_t>(),
                   bytes.i420.data<uint8_t>(), context_->stream());
  LTX_RETURN_IF_ERROR(context_->CheckLaunch("ToByteFrames"));
  return bytes;
}

}  // namespace ltx::cuda
