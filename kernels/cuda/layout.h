#ifndef LTX_KERNELS_CUDA_LAYOUT_H_
#define LTX_KERNELS_CUDA_LAYOUT_H_

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>

#include "kernels/op_enums.h"

namespace ltx::cuda {

/// Kernels that move elements of any type. Sizes, offsets and pitches are in bytes unless said
/// otherwise; every address and size must be a multiple of the element's size.

/// Row i of `rows` rows of `bytes`: from + i * from_pitch -> to + i * to_pitch.
void LaunchCopyRows(const void* from, int64_t from_pitch, void* to, int64_t to_pitch, int64_t bytes,
                    int64_t rows, cudaStream_t stream);

/// [outer, extent, bytes] -> [outer, before + extent + after, bytes].
void LaunchPad(const void* from, int64_t outer, int64_t extent, int64_t bytes, int64_t before,
               int64_t after, PadMode mode, void* to, cudaStream_t stream);

/// Row i of `to` is row indices[i] of `table`; indices in device memory, checked by the caller.
void LaunchGatherRows(const void* table, const int32_t* indices, int64_t rows, int64_t bytes,
                      void* to, cudaStream_t stream);

/// [batch, height, width, bytes] -> [batch, 2 height, 2 width, bytes].
void LaunchUpsampleNearest2x(const void* from, int64_t batch, int64_t height, int64_t width,
                             int64_t bytes, void* to, cudaStream_t stream);

/// One axis of a result: its extent, and the distance of neighbours in the source in elements.
struct CopyAxis {
  int64_t extent = 1;
  int64_t stride = 0;
};
inline constexpr int kMaxCopyAxes = 6;

/// Writes the elements of `from`, walked over `count` axes with the last fastest, densely to `to`.
/// Elements have 1, 2, 4 or 8 bytes.
void LaunchPermute(const void* from, std::array<CopyAxis, kMaxCopyAxes> axes, int count,
                   int64_t element_bytes, void* to, cudaStream_t stream);

/// Tensors that one launch interleaves, in device memory. Rope tables have two or three.
inline constexpr int kMaxInterleaveParts = 8;
struct InterleaveParts {
  const void* of[kMaxInterleaveParts] = {};
};
/// Element i of part p becomes element i * stride + offset + p of `to`.
void LaunchInterleave(const InterleaveParts& parts, int count, int64_t elements,
                      int64_t element_bytes, int64_t stride, int64_t offset, void* to,
                      cudaStream_t stream);

/// DepthToSpace of kernels/device.h.
struct DepthToSpaceArgs {
  int64_t batch = 0;
  /// Of the input.
  int64_t frames = 0;
  int64_t height = 0;
  int64_t width = 0;
  /// Of the result.
  int64_t channels = 0;
  std::array<int, 3> factors{1, 1, 1};
  bool drop_first_frame = false;
};
/// The product of the factors must not exceed this many elements of 8 bytes.
inline constexpr int64_t kMaxDepthToSpaceFactors = 4096;
void LaunchDepthToSpace(const void* from, const DepthToSpaceArgs& args, int64_t element_bytes,
                        void* to, cudaStream_t stream);

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_LAYOUT_H_
