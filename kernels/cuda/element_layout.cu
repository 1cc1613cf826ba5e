#include <algorithm>

#include "kernels/cuda/layout.h"
#include "kernels/cuda/row_copy.cuh"
#include "kernels/dispatch_width.h"

// The operations of layout.h that move single elements.

namespace ltx::cuda {
namespace {

struct Axes {
  CopyAxis of[kMaxCopyAxes];
  int count = 0;
};

/// Byte offset in the source of the row with this index over the axes.
struct StridedSource {
  Axes axes;
  int64_t element_bytes;
  __device__ int64_t operator()(int64_t row) const {
    int64_t offset = 0;
    for (int i = axes.count - 1; i >= 0; --i) {
      const Division at = Divide(row, axes.of[i].extent);
      offset += at.remainder * axes.of[i].stride;
      row = at.quotient;
    }
    return offset * element_bytes;
  }
};

/// Drops axes of one element and joins those that the source walks as one.
Axes Simplified(const std::array<CopyAxis, kMaxCopyAxes>& axes, int count) {
  Axes result;
  for (int i = 0; i < count; ++i) {
    if (axes[i].extent == 1) continue;
    if (result.count > 0) {
      CopyAxis& outer = result.of[result.count - 1];
      if (outer.stride == axes[i].extent * axes[i].stride) {
        outer = {outer.extent * axes[i].extent, axes[i].stride};
        continue;
      }
    }
    result.of[result.count++] = axes[i];
  }
  return result;
}

constexpr int kTile = 32;
constexpr int kTileRows = 8;

/// A transposition of two axes inside any number of others: `lines` is dense in the source, the
/// last axis is dense in the result.
struct TransposeArgs {
  /// The other axes with their strides in source and result.
  CopyAxis others[kMaxCopyAxes];
  int64_t other_result_strides[kMaxCopyAxes];
  int other_count = 0;
  int64_t lines = 1;
  int64_t line_result_stride = 1;
  int64_t last = 1;
  int64_t last_source_stride = 1;
  int64_t line_tiles = 1;
  int64_t last_tiles = 1;
};

template <typename T>
__global__ void __launch_bounds__(kTile* kTileRows)
    TransposeKernel(const T* from, T* to, TransposeArgs args) {
  __shared__ T tile[kTile][kTile + 1];
  Division at = Divide(blockIdx.x, args.line_tiles);
  const int64_t line_begin = at.remainder * kTile;
  at = Divide(at.quotient, args.last_tiles);
  const int64_t last_begin = at.remainder * kTile;
  int64_t other = at.quotient;
  int64_t source = 0;
  int64_t result = 0;
  for (int i = args.other_count - 1; i >= 0; --i) {
    const Division part = Divide(other, args.others[i].extent);
    source += part.remainder * args.others[i].stride;
    result += part.remainder * args.other_result_strides[i];
    other = part.quotient;
  }
  for (int j = threadIdx.y; j < kTile; j += kTileRows) {
    const int64_t line = line_begin + threadIdx.x;
    const int64_t last = last_begin + j;
    if (line < args.lines && last < args.last) {
      tile[j][threadIdx.x] = from[source + last * args.last_source_stride + line];
    }
  }
  __syncthreads();
  for (int j = threadIdx.y; j < kTile; j += kTileRows) {
    const int64_t line = line_begin + j;
    const int64_t last = last_begin + threadIdx.x;
    if (line < args.lines && last < args.last) {
      to[result + line * args.line_result_stride + last] = tile[threadIdx.x][j];
    }
  }
}

/// `dense`: the axis, not the last, along which the source is dense.
void LaunchTranspose(const void* from, const Axes& axes, int dense, int64_t element_bytes, void* to,
                     cudaStream_t stream) {
  TransposeArgs args;
  int64_t result_stride = 1;
  int64_t other_elements = 1;
  for (int i = axes.count - 1; i >= 0; --i) {
    const CopyAxis& axis = axes.of[i];
    if (i == axes.count - 1) {
      args.last = axis.extent;
      args.last_source_stride = axis.stride;
    } else if (i == dense) {
      args.lines = axis.extent;
      args.line_result_stride = result_stride;
    } else {
      args.others[args.other_count] = axis;
      args.other_result_strides[args.other_count] = result_stride;
      ++args.other_count;
      other_elements *= axis.extent;
    }
    result_stride *= axis.extent;
  }
  args.line_tiles = (args.lines + kTile - 1) / kTile;
  args.last_tiles = (args.last + kTile - 1) / kTile;
  const auto blocks = static_cast<unsigned>(other_elements * args.line_tiles * args.last_tiles);
  DispatchWidth(element_bytes, [&](auto zero) {
    using T = decltype(zero);
    TransposeKernel<<<blocks, dim3(kTile, kTileRows), 0, stream>>>(static_cast<const T*>(from),
                                                                   static_cast<T*>(to), args);
  });
}

/// Any order of axes, an element at a time: a thread makes one packet of the result and steps
/// through the axes as an odometer does. The axes are the last of `axes.of`, the others have one
/// element.
template <typename T>
__global__ void __launch_bounds__(kMapThreads)
    GatherKernel(const T* from, T* to, int64_t elements, const __grid_constant__ Axes axes) {
  constexpr int kCount = kPacketSize<T>;
  const int64_t first = (int64_t{blockIdx.x} * kMapThreads + threadIdx.x) * kCount;
  if (first >= elements) return;
  int64_t index[kMaxCopyAxes];
  int64_t offset = 0;
  int64_t rest = first;
#pragma unroll
  for (int i = kMaxCopyAxes - 1; i >= 0; --i) {
    const Division at = Divide(rest, axes.of[i].extent);
    index[i] = at.remainder;
    offset += at.remainder * axes.of[i].stride;
    rest = at.quotient;
  }
  Packet<T, kCount> packet;
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    if (first + k < elements) packet.values[k] = from[offset];
    bool carries = true;
#pragma unroll
    for (int i = kMaxCopyAxes - 1; i >= 0; --i) {
      if (!carries) continue;
      offset += axes.of[i].stride;
      carries = ++index[i] == axes.of[i].extent;
      if (!carries) continue;
      offset -= axes.of[i].extent * axes.of[i].stride;
      index[i] = 0;
    }
  }
  if (first + kCount <= elements) {
    *reinterpret_cast<Packet<T, kCount>*>(to + first) = packet;
    return;
  }
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    if (first + k < elements) to[first + k] = packet.values[k];
  }
}

void LaunchGather(const void* from, const Axes& axes, int64_t elements, int64_t element_bytes,
                  void* to, cudaStream_t stream) {
  Axes last;
  const int unused = kMaxCopyAxes - axes.count;
  for (int i = 0; i < axes.count; ++i) last.of[unused + i] = axes.of[i];
  last.count = kMaxCopyAxes;
  DispatchWidth(element_bytes, [&](auto zero) {
    using T = decltype(zero);
    const int64_t per_block = int64_t{kMapThreads} * kPacketSize<T>;
    const auto blocks = static_cast<unsigned>((elements + per_block - 1) / per_block);
    GatherKernel<<<blocks, kMapThreads, 0, stream>>>(static_cast<const T*>(from),
                                                     static_cast<T*>(to), elements, last);
  });
}

/// Whether a transposition fills at least a quarter of its tiles.
bool FillsTiles(int64_t lines, int64_t last) {
  constexpr int64_t kEdge = kTile;
  return std::min(lines, kEdge) * std::min(last, kEdge) * 4 >= kEdge * kEdge;
}

template <typename T>
__global__ void __launch_bounds__(kMapThreads)
    InterleaveKernel(InterleaveParts parts, int64_t parts_count, int64_t total, int64_t stride,
                     int64_t offset, T* to) {
  const int64_t i = int64_t{blockIdx.x} * kMapThreads + threadIdx.x;
  if (i >= total) return;
  const Division at = Divide(i, parts_count);
  to[at.quotient * stride + offset + at.remainder] =
      static_cast<const T*>(parts.of[at.remainder])[at.quotient];
}

/// Shared memory of one block of DepthToSpaceKernel.
constexpr int64_t kDepthTileBytes = 32768;

/// A block takes some pixels of one input line, or some channels of one pixel: it reads what lies
/// together in the input and writes what lies together in the result.
struct DepthTile {
  int64_t pixels = 1;
  int64_t channels = 1;
  int64_t pixel_tiles = 1;
  int64_t channel_tiles = 1;
};

template <typename T>
__global__ void __launch_bounds__(kMapThreads)
    DepthToSpaceKernel(const T* from, T* to, int64_t in_frames, int64_t height, int64_t width,
                       int64_t channels, int p1, int p2, int p3, int drop, DepthTile tile) {
  __shared__ T values[kDepthTileBytes / sizeof(T)];
  Division at = Divide(blockIdx.x, tile.channel_tiles);
  const int64_t c0 = at.remainder * tile.channels;
  at = Divide(at.quotient, tile.pixel_tiles);
  const int64_t w0 = at.remainder * tile.pixels;
  const int64_t line = at.quotient;
  const int factors = p1 * p2 * p3;
  const auto pixels = static_cast<int>(min(tile.pixels, width - w0));
  const auto depth = static_cast<int>(min(tile.channels, channels - c0));
  const int count = pixels * depth * factors;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kMapThreads) {
    const int pixel = i / (depth * factors);
    const int inside = i % (depth * factors);
    values[i] = from[((line * width + w0 + pixel) * channels + c0) * factors + inside];
  }
  __syncthreads();

  const Division frame = Divide(line, height);
  const Division batch = Divide(frame.quotient, in_frames);
  const int64_t out_frames = in_frames * p1 - drop;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kMapThreads) {
    int rest = i;
    const int c = rest % depth;
    rest /= depth;
    const int i3 = rest % p3;
    rest /= p3;
    const int pixel = rest % pixels;
    rest /= pixels;
    const int i2 = rest % p2;
    const int i1 = rest / p2;
    const int64_t t = batch.remainder * p1 + i1 - drop;
    if (t < 0) continue;
    const int64_t row = ((batch.quotient * out_frames + t) * height + frame.remainder) * p2 + i2;
    const int64_t column = (w0 + pixel) * p3 + i3;
    to[(row * width * p3 + column) * channels + c0 + c] =
        values[(pixel * depth + c) * factors + (i1 * p2 + i2) * p3 + i3];
  }
}

}  // namespace

void LaunchPermute(const void* from, std::array<CopyAxis, kMaxCopyAxes> axes, int count,
                   int64_t element_bytes, void* to, cudaStream_t stream) {
  int64_t elements = 1;
  for (int i = 0; i < count; ++i) elements *= axes[i].extent;
  if (elements == 0) return;
  Axes simple = Simplified(axes, count);
  if (simple.count > 0 && simple.of[simple.count - 1].stride != 1) {
    const int64_t last = simple.of[simple.count - 1].extent;
    for (int i = 0; i < simple.count - 1; ++i) {
      if (simple.of[i].stride != 1 || !FillsTiles(simple.of[i].extent, last)) continue;
      LaunchTranspose(from, simple, i, element_bytes, to, stream);
      return;
    }
    if (IsAligned16(to)) {
      LaunchGather(from, simple, elements, element_bytes, to, stream);
      return;
    }
  }
  // Rows that are dense on both sides, at worst of one element.
  int64_t row_elements = 1;
  if (simple.count > 0 && simple.of[simple.count - 1].stride == 1) {
    row_elements = simple.of[--simple.count].extent;
  }
  int64_t granule = row_elements;
  for (int i = 0; i < simple.count; ++i) granule |= simple.of[i].stride;
  const int64_t bytes = row_elements * element_bytes;
  LaunchRowCopy(from, to, bytes, bytes, elements / row_elements, granule * element_bytes,
                StridedSource{simple, element_bytes}, stream);
}

void LaunchInterleave(const InterleaveParts& parts, int count, int64_t elements,
                      int64_t element_bytes, int64_t stride, int64_t offset, void* to,
                      cudaStream_t stream) {
  const int64_t total = elements * count;
  if (total == 0) return;
  const auto blocks = static_cast<unsigned>((total + kMapThreads - 1) / kMapThreads);
  DispatchWidth(element_bytes, [&](auto zero) {
    InterleaveKernel<<<blocks, kMapThreads, 0, stream>>>(parts, count, total, stride, offset,
                                                         static_cast<decltype(zero)*>(to));
  });
}

void LaunchDepthToSpace(const void* from, const DepthToSpaceArgs& args, int64_t element_bytes,
                        void* to, cudaStream_t stream) {
  const auto [p1, p2, p3] = args.factors;
  const int64_t factors = int64_t{p1} * p2 * p3;
  const int64_t lines = args.batch * args.frames * args.height;
  if (lines * args.width * args.channels == 0) return;
  const int64_t room = kDepthTileBytes / element_bytes / factors;
  DepthTile tile;
  tile.channels = args.channels < room ? args.channels : room;
  tile.pixels = tile.channels < args.channels ? 1 : room / args.channels;
  if (tile.pixels > args.width) tile.pixels = args.width;
  tile.pixel_tiles = (args.width + tile.pixels - 1) / tile.pixels;
  tile.channel_tiles = (args.channels + tile.channels - 1) / tile.channels;
  const auto blocks = static_cast<unsigned>(lines * tile.pixel_tiles * tile.channel_tiles);
  DispatchWidth(element_bytes, [&, p1 = p1, p2 = p2, p3 = p3](auto zero) {
    using T = decltype(zero);
    DepthToSpaceKernel<<<blocks, kMapThreads, 0, stream>>>(
        static_cast<const T*>(from), static_cast<T*>(to), args.frames, args.height, args.width,
        args.channels, p1, p2, p3, args.drop_first_frame ? 1 : 0, tile);
  });
}

}  // namespace ltx::cuda
