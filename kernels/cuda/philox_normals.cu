#include <curand_kernel.h>

#include <algorithm>

#include "kernels/cuda/philox_normals.h"

// The bits are those of PyTorch because cuRAND's device code is compiled here by the same compiler
// with the same contraction, and because threads and elements correspond as in
// ATen/native/cuda/DistributionTemplates.h.

namespace ltx::cuda {
namespace {

constexpr int kThreads = 256;

/// What one counter of the generator gives.
template <typename T>
struct Draws;
template <>
struct Draws<float> {
  static constexpr int kCount = 4;
  float values[kCount];
  __device__ explicit Draws(curandStatePhilox4_32_10_t* state) {
    const float4 four = curand_normal4(state);
    // Adding zero, as PyTorch's mean is added, turns -0 into +0.
    values[0] = four.x + 0.0f;
    values[1] = four.y + 0.0f;
    values[2] = four.z + 0.0f;
    values[3] = four.w + 0.0f;
  }
};
template <>
struct Draws<double> {
  static constexpr int kCount = 2;
  double values[kCount];
  __device__ explicit Draws(curandStatePhilox4_32_10_t* state) {
    const double2 two = curand_normal2_double(state);
    values[0] = two.x + 0.0;
    values[1] = two.y + 0.0;
  }
};

template <typename T>
__global__ void __launch_bounds__(kThreads)
    PhiloxNormals(T* out, int64_t count, uint64_t seed, uint64_t offset) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kThreads;
  curandStatePhilox4_32_10_t state;
  curand_init(seed, thread, offset, &state);
  for (int64_t base = thread; base < count; base += threads * Draws<T>::kCount) {
    const Draws<T> draws(&state);
#pragma unroll
    for (int i = 0; i < Draws<T>::kCount; ++i) {
      const int64_t at = base + threads * i;
      if (at < count) out[at] = draws.values[i];
    }
  }
}

template <typename T>
cudaError_t Launch(const PhiloxTask& task, cudaStream_t stream) {
  const int64_t most = task.multiprocessors * (task.threads_per_multiprocessor / kThreads);
  const int64_t blocks = std::min((task.count + kThreads - 1) / kThreads, most);
  PhiloxNormals<T><<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(
      static_cast<T*>(task.out), task.count, task.seed, task.offset);
  return cudaGetLastError();
}

}  // namespace

cudaError_t LaunchPhiloxNormals(const PhiloxTask& task, cudaStream_t stream) {
  if (task.count == 0) return cudaSuccess;
  return task.f64 ? Launch<double>(task, stream) : Launch<float>(task, stream);
}

}  // namespace ltx::cuda
