#include "kernels/cuda/element.cuh"
#include "kernels/cuda/interleave_tile.cuh"
#include "kernels/cuda/norm_interleave.h"

namespace ltx::cuda {
namespace {

constexpr int kWarps = kMapThreads / 32;

/// factors[part, row] = 1 / sqrt(mean square of the row + epsilon), a warp for each.
template <typename T>
__global__ void __launch_bounds__(kMapThreads)
    FactorKernel(const __grid_constant__ InterleaveParts parts, int64_t rows, int width,
                 float epsilon, float* factors) {
  constexpr int kCount = kPacketSize<T>;
  const int64_t row = int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  if (row >= rows) return;
  const T* const x = static_cast<const T*>(parts.of[blockIdx.y]) + row * width;
  float sum = 0.0f;
#pragma unroll 4
  for (int at = static_cast<int>(threadIdx.x % 32) * kCount; at < width; at += 32 * kCount) {
    const Pack<T> pack = LoadPack(x + at);
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      const float value = ToFloat(pack.values[k]);
      sum += value * value;
    }
  }
  sum = SumLanes(sum);
  if (threadIdx.x % 32 == 0) {
    factors[blockIdx.y * rows + row] = 1.0f / sqrtf(sum / static_cast<float>(width) + epsilon);
  }
}

/// Elements times the factor of their row.
template <typename T>
struct Scaled {
  const float* factors;
  int64_t rows;
  int64_t width;
  __device__ auto At(int part, int64_t index) const {
    const float factor = factors[part * rows + Divide(index, width).quotient];
    return [factor](T value) { return FromFloat<T>(ToFloat(value) * factor); };
  }
};

}  // namespace

bool CanNormInterleave(int64_t count, int64_t width, DType dtype) {
  bool can = false;
  DispatchElement(dtype, [&](auto zero) {
    using T = decltype(zero);
    can = count > 0 && count <= kMaxInterleaveParts && width % kPacketSize<T> == 0 &&
          InterleaveRow<T>(static_cast<int>(count)) >= kLeastInterleaveRow;
  });
  return can;
}

bool LaunchNormInterleave(const NormInterleaveTask& task, cudaStream_t stream) {
  if (!CanNormInterleave(task.count, task.width, task.dtype)) return false;
  if (task.rows == 0 || task.width == 0) return true;
  const InterleaveParts& parts = task.parts;
  for (int i = 0; i < task.count; ++i) {
    if (!IsAligned16(parts.of[i])) return false;
  }
  const dim3 grid(static_cast<unsigned>((task.rows + kWarps - 1) / kWarps),
                  static_cast<unsigned>(task.count));
  bool launched = false;
  DispatchElement(task.dtype, [&](auto zero) {
    using T = decltype(zero);
    FactorKernel<T><<<grid, kMapThreads, 0, stream>>>(
        parts, task.rows, static_cast<int>(task.width), task.epsilon, task.factors);
    launched = LaunchInterleaveTiles(parts, task.count, task.rows * task.width,
                                     Scaled<T>{task.factors, task.rows, task.width},
                                     static_cast<T*>(task.to), stream);
  });
  return launched;
}

}  // namespace ltx::cuda
