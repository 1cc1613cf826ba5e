#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "kernels/conv_geometry.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/strided_copy.h"
#include "kernels/dispatch_width.h"
#include "kernels/layout_shapes.h"
#include "kernels/status_macros.h"

namespace ltx::cpu {
namespace {

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
  LTX_ASSIGN_OR_RETURN(const Shape shape, PermuteShape(x, order));
  std::vector<StridedAxis> axes(order.size());
  std::vector<int64_t> stride(order.size(), SizeOf(x.dtype()));
  for (int i = x.rank() - 2; i >= 0; --i) stride[i] = stride[i + 1] * x.dim(i + 1);
  for (size_t i = 0; i < order.size(); ++i) axes[i] = {x.dim(order[i]), stride[order[i]]};
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(shape, x.dtype(), MemoryOwner::kActivations));
  StridedCopy(threads_, x.raw(), axes, SizeOf(x.dtype()), y.raw());
  return y;
}

absl::StatusOr<Tensor> CpuDevice::Slice(const Tensor& x, int axis, int64_t begin, int64_t end) {
  LTX_ASSIGN_OR_RETURN(const Shape shape, SliceShape(x, axis, begin, end));
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(shape, x.dtype(), MemoryOwner::kActivations));
  const AxisView view(x, axis);
  const int64_t bytes = (end - begin) * view.inner_bytes;
  const int64_t pitch = view.extent * view.inner_bytes;
  CopyBlocks(
      threads_, view.outer, bytes, x.raw(), y.raw(),
      [&](int64_t i) { return i * pitch + begin * view.inner_bytes; },
      [&](int64_t i) { return i * bytes; });
  return y;
}

absl::StatusOr<Tensor> CpuDevice::Concat(absl::Span<const Tensor> parts, int axis) {
  LTX_ASSIGN_OR_RETURN(const Shape shape, ConcatShape(parts, axis));
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(shape, parts[0].dtype(), MemoryOwner::kActivations));
  const AxisView whole(y, axis);
  const int64_t pitch = whole.extent * whole.inner_bytes;
  int64_t offset = 0;
  for (const Tensor& part : parts) {
    const int64_t bytes = part.dim(axis) * whole.inner_bytes;
    CopyBlocks(
        threads_, whole.outer, bytes, part.raw(), y.raw(), [&](int64_t i) { return i * bytes; },
        [&](int64_t i) { return i * pitch + offset; });
    offset += bytes;
  }
  return y;
}

absl::StatusOr<Tensor> CpuDevice::Pad(const Tensor& x, int axis, int64_t before, int64_t after,
                                      PadMode mode) {
  LTX_ASSIGN_OR_RETURN(const Shape shape, PadShape(x, axis, before, after, mode));
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(shape, x.dtype(), MemoryOwner::kActivations));
  const AxisView view(x, axis);
  const auto inner = static_cast<size_t>(view.inner_bytes);
  if (inner == 0) return y;
  const int64_t to_pitch = shape.dim(axis) * view.inner_bytes;
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
  LTX_ASSIGN_OR_RETURN(const Shape shape, GatherRowsShape(table, indices));
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(shape, table.dtype(), MemoryOwner::kActivations));
  const int64_t bytes = table.dim(1) * SizeOf(table.dtype());
  CopyBlocks(
      threads_, shape.dim(0), bytes, table.raw(), y.raw(),
      [&](int64_t i) { return indices[i] * bytes; }, [&](int64_t i) { return i * bytes; });
  return y;
}

absl::StatusOr<Tensor> CpuDevice::Interleave(absl::Span<const Tensor> parts) {
  LTX_ASSIGN_OR_RETURN(const Shape shape, InterleaveShape(parts));
  const Tensor& first = parts[0];
  const auto count = static_cast<int64_t>(parts.size());
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
  LTX_ASSIGN_OR_RETURN(const Shape shape, DepthToSpaceShape(x, factors, drop_first_frame));
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(shape, x.dtype(), MemoryOwner::kActivations));
  // Not a structured binding: lambdas below capture them.
  const int64_t p1 = factors[0];
  const int64_t p2 = factors[1];
  const int64_t p3 = factors[2];
  const int64_t batch = x.dim(0);
  const int64_t height = x.dim(2);
  const int64_t width = x.dim(3);
  const int64_t channels = shape.dim(4);
  const int64_t drop = drop_first_frame ? 1 : 0;
  const int64_t frames = shape.dim(1);
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
  LTX_ASSIGN_OR_RETURN(const Shape shape, UpsampleNearest2xShape(x));
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(shape, x.dtype(), MemoryOwner::kActivations));
  const int64_t width = x.dim(2);
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
