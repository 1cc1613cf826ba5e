#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/conv_geometry.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/operand_check.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/strided_copy.h"
#include "kernels/status_macros.h"

namespace ltx::cpu {
namespace {

/// `x` split at an axis: [outer, extent, inner bytes].
struct AxisView {
  int64_t outer = 1;
  int64_t extent = 1;
  int64_t inner_bytes = 1;
};

AxisView SplitAt(const Tensor& x, int axis) {
  AxisView view;
  for (int i = 0; i < axis; ++i) view.outer *= x.dim(i);
  view.extent = x.dim(axis);
  view.inner_bytes = SizeOf(x.dtype());
  for (int i = axis + 1; i < x.rank(); ++i) view.inner_bytes *= x.dim(i);
  return view;
}

/// The axis counted from the front, or INTERNAL.
absl::StatusOr<int> CheckAxis(absl::string_view operation, const Tensor& x, int axis) {
  if (!x.defined()) return OperandError(operation, "needs its operand", {&x});
  const int index = axis < 0 ? axis + x.rank() : axis;
  if (index < 0 || index >= x.rank()) {
    return OperandError(operation, absl::StrCat("has no axis ", axis), {&x});
  }
  return index;
}

/// Bytes below which a copy is not worth a second thread.
constexpr int64_t kCopyGrain = int64_t{1} << 17;

int64_t BlockGrain(int64_t block_bytes) {
  return kCopyGrain / std::max<int64_t>(1, block_bytes) + 1;
}

/// Copies `count` blocks of `bytes`; block i moves from from_offset(i) to to_offset(i).
template <typename From, typename To>
void CopyBlocks(int threads, int64_t count, int64_t bytes, const void* from, void* to,
                const From& from_offset, const To& to_offset) {
  if (bytes == 0) return;
  ParallelFor(threads, count, BlockGrain(bytes), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::memcpy(static_cast<char*>(to) + to_offset(i),
                  static_cast<const char*>(from) + from_offset(i), static_cast<size_t>(bytes));
    }
  });
}

}  // namespace

absl::StatusOr<Tensor> CpuDevice::Permute(const Tensor& x, absl::Span<const int> order) {
  if (!x.defined() || static_cast<int>(order.size()) != x.rank()) {
    return OperandError("Permute", "needs one entry of the order per axis", {&x});
  }
  std::vector<StridedAxis> axes(order.size());
  Shape shape = x.shape();
  std::vector<bool> used(order.size(), false);
  std::vector<int64_t> stride(order.size(), SizeOf(x.dtype()));
  for (int i = x.rank() - 2; i >= 0; --i) stride[i] = stride[i + 1] * x.dim(i + 1);
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] < 0 || order[i] >= x.rank() || used[order[i]]) {
      return OperandError("Permute", absl::StrCat("entry ", i, " of the order is ", order[i]),
                          {&x});
    }
    used[order[i]] = true;
    axes[i] = {x.dim(order[i]), stride[order[i]]};
    shape.set_dim(static_cast<int>(i), x.dim(order[i]));
  }
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(shape, x.dtype(), MemoryOwner::kActivations));
  StridedCopy(threads_, x.raw(), axes, SizeOf(x.dtype()), y.raw());
  return y;
}

absl::StatusOr<Tensor> CpuDevice::Slice(const Tensor& x, int axis, int64_t begin, int64_t end) {
  LTX_ASSIGN_OR_RETURN(const int index, CheckAxis("Slice", x, axis));
  if (begin < 0 || end < begin || end > x.dim(index)) {
    return OperandError("Slice", absl::StrCat("no range [", begin, ", ", end, ") on axis ", axis),
                        {&x});
  }
  Shape shape = x.shape();
  shape.set_dim(index, end - begin);
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(shape, x.dtype(), MemoryOwner::kActivations));
  const AxisView view = SplitAt(x, index);
  const int64_t bytes = (end - begin) * view.inner_bytes;
  const int64_t pitch = view.extent * view.inner_bytes;
  CopyBlocks(
      threads_, view.outer, bytes, x.raw(), y.raw(),
      [&](int64_t i) { return i * pitch + begin * view.inner_bytes; },
      [&](int64_t i) { return i * bytes; });
  return y;
}

absl::StatusOr<Tensor> CpuDevice::Concat(absl::Span<const Tensor> parts, int axis) {
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
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(shape, parts[0].dtype(), MemoryOwner::kActivations));
  const AxisView whole = SplitAt(y, index);
  const int64_t pitch = whole.extent * whole.inner_bytes;
  int64_t offset = 0;
  for (const Tensor& part : parts) {
    const int64_t bytes = part.dim(index) * whole.inner_bytes;
    CopyBlocks(
        threads_, whole.outer, bytes, part.raw(), y.raw(), [&](int64_t i) { return i * bytes; },
        [&](int64_t i) { return i * pitch + offset; });
    offset += bytes;
  }
  return y;
}

absl::StatusOr<Tensor> CpuDevice::Pad(const Tensor& x, int axis, int64_t before, int64_t after,
                                      PadMode mode) {
  LTX_ASSIGN_OR_RETURN(const int index, CheckAxis("Pad", x, axis));
  if (absl::Status status = CheckPadding(axis, x.dim(index), before, after, mode); !status.ok()) {
    return OperandError("Pad", status.message(), {&x});
  }
  Shape shape = x.shape();
  shape.set_dim(index, x.dim(index) + before + after);
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(shape, x.dtype(), MemoryOwner::kActivations));
  const AxisView view = SplitAt(x, index);
  const auto inner = static_cast<size_t>(view.inner_bytes);
  if (inner == 0) return y;
  const int64_t to_pitch = shape.dim(index) * view.inner_bytes;
  const int64_t from_pitch = view.extent * view.inner_bytes;
  ParallelFor(threads_, view.outer, BlockGrain(to_pitch), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const char* from = x.data<char>() + i * from_pitch;
      char* to = y.data<char>() + i * to_pitch;
      const auto edge = [&](int64_t position) {
        char* target = to + (position + before) * view.inner_bytes;
        const int64_t source = PaddedSource(position, view.extent, mode);
        if (source < 0) {
          std::memset(target, 0, inner);
        } else {
          std::memcpy(target, from + source * view.inner_bytes, inner);
        }
      };
      for (int64_t position = -before; position < 0; ++position) edge(position);
      if (from_pitch > 0) {
        std::memcpy(to + before * view.inner_bytes, from, static_cast<size_t>(from_pitch));
      }
      for (int64_t k = 0; k < after; ++k) edge(view.extent + k);
    }
  });
  return y;
}

absl::StatusOr<Tensor> CpuDevice::GatherRows(const Tensor& table,
                                             absl::Span<const int32_t> indices) {
  if (!table.defined() || table.rank() != 2) {
    return OperandError("GatherRows", "the table must be [V, D]", {&table});
  }
  for (const int32_t index : indices) {
    if (index < 0 || index >= table.dim(0)) {
      return OperandError("GatherRows", absl::StrCat("no row ", index), {&table});
    }
  }
  const auto count = static_cast<int64_t>(indices.size());
  LTX_ASSIGN_OR_RETURN(Tensor y,
                       Allocate({count, table.dim(1)}, table.dtype(), MemoryOwner::kActivations));
  const int64_t bytes = table.dim(1) * SizeOf(table.dtype());
  CopyBlocks(
      threads_, count, bytes, table.raw(), y.raw(), [&](int64_t i) { return indices[i] * bytes; },
      [&](int64_t i) { return i * bytes; });
  return y;
}

absl::StatusOr<Tensor> CpuDevice::Interleave(absl::Span<const Tensor> parts) {
  if (parts.empty()) return absl::InternalError("Interleave: needs at least one part");
  const Tensor& first = parts[0];
  LTX_ASSIGN_OR_RETURN(const int last, CheckAxis("Interleave", first, -1));
  for (const Tensor& part : parts) {
    if (!part.defined() || part.shape() != first.shape() || part.dtype() != first.dtype()) {
      return OperandError("Interleave", "parts must have one shape and dtype", {&first, &part});
    }
  }
  const auto count = static_cast<int64_t>(parts.size());
  Shape shape = first.shape();
  shape.set_dim(last, shape.dim(last) * count);
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(shape, first.dtype(), MemoryOwner::kActivations));
  const int64_t elements = first.num_elements();
  return DispatchWidth(SizeOf(first.dtype()), [&](auto zero) {
    using T = decltype(zero);
    // A stretch of every part at a time, so that the result is written while it is in cache.
    constexpr int64_t kStretch = 256;
    ParallelFor(threads_, elements, BlockGrain(count * int64_t{sizeof(T)}),
                [&](int64_t begin, int64_t end) {
                  for (int64_t at = begin; at < end; at += kStretch) {
                    const int64_t stop = std::min(end, at + kStretch);
                    for (int64_t part = 0; part < count; ++part) {
                      const T* from = parts[part].data<T>();
                      T* to = y.data<T>() + part;
                      for (int64_t i = at; i < stop; ++i) to[i * count] = from[i];
                    }
                  }
                });
    return y;
  });
}

absl::StatusOr<Tensor> CpuDevice::DepthToSpace(const Tensor& x, const std::array<int, 3>& factors,
                                               bool drop_first_frame) {
  // Not a structured binding: lambdas below capture them.
  const int64_t p1 = factors[0];
  const int64_t p2 = factors[1];
  const int64_t p3 = factors[2];
  if (!x.defined() || x.rank() != 5 || p1 < 1 || p2 < 1 || p3 < 1 ||
      x.dim(4) % (p1 * p2 * p3) != 0) {
    return OperandError("DepthToSpace",
                        absl::StrCat("needs [B, T, H, W, C ", p1, " ", p2, " ", p3, "]"), {&x});
  }
  const int64_t batch = x.dim(0);
  const int64_t height = x.dim(2);
  const int64_t width = x.dim(3);
  const int64_t channels = x.dim(4) / (p1 * p2 * p3);
  const int64_t drop = drop_first_frame ? 1 : 0;
  const int64_t frames = std::max<int64_t>(0, x.dim(1) * p1 - drop);
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate({batch, frames, height * p2, width * p3, channels},
                                          x.dtype(), MemoryOwner::kActivations));
  const int64_t element = SizeOf(x.dtype());
  const int64_t line_bytes = width * p3 * channels * element;
  // One output line at a time: [W, p3, C] from the pixels of one input line.
  const int64_t pixel = x.dim(4) * element;
  const std::vector<StridedAxis> axes = {
      {width, pixel}, {p3, element}, {channels, element * p1 * p2 * p3}};
  ParallelFor(threads_, batch * frames * height * p2, BlockGrain(line_bytes),
              [&](int64_t begin, int64_t end) {
                for (int64_t line = begin; line < end; ++line) {
                  const int64_t out_row = line % (height * p2);
                  const int64_t out_frame = line / (height * p2) % frames + drop;
                  const int64_t b = line / (height * p2) / frames;
                  const int64_t in_line = (b * x.dim(1) + out_frame / p1) * height + out_row / p2;
                  const int64_t part = (out_frame % p1 * p2 + out_row % p2) * p3;
                  StridedCopy(/*threads=*/1,
                              x.data<char>() + in_line * width * pixel + part * element, axes,
                              element, y.data<char>() + line * line_bytes);
                }
              });
  return y;
}

absl::StatusOr<Tensor> CpuDevice::UpsampleNearest2x(const Tensor& x) {
  if (!x.defined() || x.rank() != 4) {
    return OperandError("UpsampleNearest2x", "needs [B, H, W, C]", {&x});
  }
  const int64_t width = x.dim(2);
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate({x.dim(0), x.dim(1) * 2, width * 2, x.dim(3)}, x.dtype(),
                                          MemoryOwner::kActivations));
  const int64_t pixel = x.dim(3) * SizeOf(x.dtype());
  if (pixel == 0) return y;
  const int64_t in_bytes = width * pixel;
  ParallelFor(
      threads_, x.dim(0) * x.dim(1), BlockGrain(4 * in_bytes), [&](int64_t begin, int64_t end) {
        for (int64_t line = begin; line < end; ++line) {
          const char* from = x.data<char>() + line * in_bytes;
          char* to = y.data<char>() + line * 4 * in_bytes;
          for (int64_t i = 0; i < width; ++i) {
            std::memcpy(to + 2 * i * pixel, from + i * pixel, static_cast<size_t>(pixel));
            std::memcpy(to + (2 * i + 1) * pixel, from + i * pixel, static_cast<size_t>(pixel));
          }
          std::memcpy(to + 2 * in_bytes, to, static_cast<size_t>(2 * in_bytes));
        }
      });
  return y;
}

}  // namespace ltx::cpu
