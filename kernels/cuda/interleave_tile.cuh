#ifndef LTX_KERNELS_CUDA_INTERLEAVE_TILE_CUH_
#define LTX_KERNELS_CUDA_INTERLEAVE_TILE_CUH_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/interleave_parts.h"
#include "kernels/cuda/map.cuh"

namespace ltx::cuda {

/// Shared memory of one block of InterleaveTileKernel.
inline constexpr int64_t kInterleaveTileBytes = 32768;
/// Elements of each part that a tile has, at least, for its reads to be worth it.
inline constexpr int64_t kLeastInterleaveRow = 32;

/// What a tile adds to its rows, so that they are an odd number of words apart.
template <typename T>
inline constexpr int64_t kInterleavePad = sizeof(T) < 4 ? 4 / sizeof(T) : 1;

/// Elements of each of `count` parts that a tile takes; less than kLeastInterleaveRow: none fits.
template <typename T>
int64_t InterleaveRow(int count) {
  return (kInterleaveTileBytes / static_cast<int64_t>(sizeof(T)) / count - kInterleavePad<T>) /
         kLeastInterleaveRow * kLeastInterleaveRow;
}

/// A block takes `row` elements of every part: it reads each part's as they lie and writes all of
/// them as they lie in the result. Rows are `pitch` apart in shared memory, an odd number of words.
/// change.At(part, index) is what becomes of the element there, and of the others of its 16 bytes.
template <typename T, typename Change>
__global__ void __launch_bounds__(kMapThreads)
    InterleaveTileKernel(const __grid_constant__ InterleaveParts parts, int count, int64_t elements,
                         int row, int pitch, Change change, T* to) {
  constexpr int kCount = kPacketSize<T>;
  __shared__ T values[kInterleaveTileBytes / sizeof(T)];
  const int64_t begin = int64_t{blockIdx.x} * row;
  const auto here = static_cast<int>(min(int64_t{row}, elements - begin));
  const int packets = (here + kCount - 1) / kCount;
  for (int i = static_cast<int>(threadIdx.x); i < count * packets; i += kMapThreads) {
    const int part = i / packets;
    const int at = i % packets * kCount;
    const T* const from = static_cast<const T*>(parts.of[part]) + begin + at;
    T* const kept = values + part * pitch + at;
    const auto changed = change.At(part, begin + at);
    if (at + kCount <= here) {
      const auto packet = *reinterpret_cast<const Packet<T, kCount>*>(from);
#pragma unroll
      for (int k = 0; k < kCount; ++k) kept[k] = changed(packet.values[k]);
    } else {
      for (int k = 0; at + k < here; ++k) kept[k] = changed(from[k]);
    }
  }
  __syncthreads();
  const int total = here * count;
  T* const out = to + begin * count;
  for (int i = static_cast<int>(threadIdx.x) * kCount; i < total; i += kMapThreads * kCount) {
    int part = i % count;
    int at = i / count;
    Packet<T, kCount> packet;
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      if (i + k < total) packet.values[k] = values[part * pitch + at];
      if (++part < count) continue;
      part = 0;
      ++at;
    }
    if (i + kCount <= total) {
      *reinterpret_cast<Packet<T, kCount>*>(out + i) = packet;
    } else {
      for (int k = 0; i + k < total; ++k) out[i + k] = packet.values[k];
    }
  }
}

/// False if the tiles do not suit the sizes or addresses.
template <typename T, typename Change>
bool LaunchInterleaveTiles(const InterleaveParts& parts, int count, int64_t elements,
                           const Change& change, T* to, cudaStream_t stream) {
  bool aligned = IsAligned16(to);
  for (int i = 0; i < count; ++i) aligned = aligned && IsAligned16(parts.of[i]);
  const int64_t row = InterleaveRow<T>(count);
  if (!aligned || row < kLeastInterleaveRow) return false;
  const auto blocks = static_cast<unsigned>((elements + row - 1) / row);
  InterleaveTileKernel<<<blocks, kMapThreads, 0, stream>>>(
      parts, count, elements, static_cast<int>(row), static_cast<int>(row + kInterleavePad<T>),
      change, to);
  return true;
}

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_INTERLEAVE_TILE_CUH_
