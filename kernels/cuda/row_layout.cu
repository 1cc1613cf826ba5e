#include "kernels/cuda/layout.h"
#include "kernels/cuda/row_copy.cuh"

// The operations of layout.h that move whole rows.

namespace ltx::cuda {
namespace {

struct PitchedSource {
  int64_t pitch;
  __device__ int64_t operator()(int64_t row) const { return row * pitch; }
};

struct PaddedSource {
  int64_t extent;
  int64_t padded;
  int64_t before;
  int64_t bytes;
  PadMode mode;
  __device__ int64_t operator()(int64_t row) const {
    const Division at = Divide(row, padded);
    int64_t position = at.remainder - before;
    if (position < 0 || position >= extent) {
      switch (mode) {
        case PadMode::kZeros:
          return -1;
        case PadMode::kReplicate:
          position = position < 0 ? 0 : extent - 1;
          break;
        case PadMode::kReflect:
          position = position < 0 ? -position : 2 * (extent - 1) - position;
          break;
        case PadMode::kCircular:
          position = ((position % extent) + extent) % extent;
          break;
      }
    }
    return (at.quotient * extent + position) * bytes;
  }
};

struct IndexedSource {
  const int32_t* indices;
  int64_t bytes;
  __device__ int64_t operator()(int64_t row) const { return indices[row] * bytes; }
};

struct NearestSource {
  int64_t height;
  int64_t width;
  int64_t bytes;
  __device__ int64_t operator()(int64_t pixel) const {
    const Division line = Divide(pixel, 2 * width);
    const Division picture = Divide(line.quotient, 2 * height);
    return ((picture.quotient * height + picture.remainder / 2) * width + line.remainder / 2) *
           bytes;
  }
};

}  // namespace

void LaunchCopyRows(const void* from, int64_t from_pitch, void* to, int64_t to_pitch, int64_t bytes,
                    int64_t rows, cudaStream_t stream) {
  LaunchRowCopy(from, to, to_pitch, bytes, rows, from_pitch, PitchedSource{from_pitch}, stream);
}

void LaunchPad(const void* from, int64_t outer, int64_t extent, int64_t bytes, int64_t before,
               int64_t after, PadMode mode, void* to, cudaStream_t stream) {
  const int64_t padded = before + extent + after;
  LaunchRowCopy(from, to, bytes, bytes, outer * padded, bytes,
                PaddedSource{extent, padded, before, bytes, mode}, stream);
}

void LaunchGatherRows(const void* table, const int32_t* indices, int64_t rows, int64_t bytes,
                      void* to, cudaStream_t stream) {
  LaunchRowCopy(table, to, bytes, bytes, rows, bytes, IndexedSource{indices, bytes}, stream);
}

void LaunchUpsampleNearest2x(const void* from, int64_t batch, int64_t height, int64_t width,
                             int64_t bytes, void* to, cudaStream_t stream) {
  LaunchRowCopy(from, to, bytes, bytes, batch * height * width * 4, bytes,
                NearestSource{height, width, bytes}, stream);
}

}  // namespace ltx::cuda
