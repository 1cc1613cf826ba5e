#ifndef LTX_KERNELS_CUDA_ROW_COPY_CUH_
#define LTX_KERNELS_CUDA_ROW_COPY_CUH_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/map.cuh"

namespace ltx::cuda {

/// Copies rows of bytes in the widest units that all addresses allow.

/// `source(row)` yields the byte offset of a row in `from`, or a negative number for zeros.
template <typename Unit, typename Source>
__global__ void __launch_bounds__(kMapThreads)
    RowCopyKernel(const char* from, char* to, int64_t to_pitch, int64_t units_per_row,
                  int64_t units, Source source) {
  const int64_t i = int64_t{blockIdx.x} * kMapThreads + threadIdx.x;
  if (i >= units) return;
  const Division at = Divide(i, units_per_row);
  const int64_t offset = source(at.quotient);
  Unit value{};
  if (offset >= 0) value = reinterpret_cast<const Unit*>(from + offset)[at.remainder];
  reinterpret_cast<Unit*>(to + at.quotient * to_pitch)[at.remainder] = value;
}

template <typename Unit, typename Source>
void LaunchRowCopyOf(const void* from, void* to, int64_t to_pitch, int64_t bytes, int64_t rows,
                     const Source& source, cudaStream_t stream) {
  const int64_t units_per_row = bytes / static_cast<int64_t>(sizeof(Unit));
  const int64_t units = units_per_row * rows;
  const auto blocks = static_cast<unsigned>((units + kMapThreads - 1) / kMapThreads);
  RowCopyKernel<Unit><<<blocks, kMapThreads, 0, stream>>>(static_cast<const char*>(from),
                                                          static_cast<char*>(to), to_pitch,
                                                          units_per_row, units, source);
}

/// `granule`: every offset that `source` yields is a multiple of it.
template <typename Source>
void LaunchRowCopy(const void* from, void* to, int64_t to_pitch, int64_t bytes, int64_t rows,
                   int64_t granule, const Source& source, cudaStream_t stream) {
  if (bytes == 0 || rows == 0) return;
  const auto all = reinterpret_cast<uintptr_t>(from) | reinterpret_cast<uintptr_t>(to) |
                   static_cast<uintptr_t>(to_pitch) | static_cast<uintptr_t>(bytes) |
                   static_cast<uintptr_t>(granule);
  if (all % 16 == 0) {
    LaunchRowCopyOf<uint4>(from, to, to_pitch, bytes, rows, source, stream);
  } else if (all % 8 == 0) {
    LaunchRowCopyOf<uint2>(from, to, to_pitch, bytes, rows, source, stream);
  } else if (all % 4 == 0) {
    LaunchRowCopyOf<uint32_t>(from, to, to_pitch, bytes, rows, source, stream);
  } else if (all % 2 == 0) {
    LaunchRowCopyOf<uint16_t>(from, to, to_pitch, bytes, rows, source, stream);
  } else {
    LaunchRowCopyOf<uint8_t>(from, to, to_pitch, bytes, rows, source, stream);
  }
}

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_ROW_COPY_CUH_
