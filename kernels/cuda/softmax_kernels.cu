#include <algorithm>
#include <cmath>

#include "kernels/cuda/element.cuh"
#include "kernels/cuda/softmax_kernels.h"

namespace ltx::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

/// Largest value over the block.
__device__ __forceinline__ float MaxBlock(float value, float* partial) {
  value = MaxLanes(value);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  float largest = partial[0];
  for (int i = 1; i < kWarps; ++i) largest = fmaxf(largest, partial[i]);
  return largest;
}

/// Every element is read and written by one and the same thread, so weights may take the scores'
/// place when they are as wide.
template <typename T>
__global__ void __launch_bounds__(kThreads) SoftmaxRows(const __grid_constant__ SoftmaxTask task) {
  __shared__ float maxima[kWarps];
  __shared__ float sums[kWarps];
  const int64_t query = blockIdx.x % task.queries;
  const float* scores = task.scores + blockIdx.x * task.pitch;
  T* weights = static_cast<T*>(task.weights) + blockIdx.x * task.pitch;
  const float* bias = task.bias == nullptr ? nullptr : task.bias + query * task.bias_query_stride;
  const int64_t position = task.first_query + query;
  const int64_t end = task.causal ? min(task.keys, position + 1) : task.keys;
  const int64_t begin = task.window > 0 ? max(int64_t{0}, position - task.window + 1) : 0;
  const auto score_of = [&](int64_t key) {
    if (key < begin || key >= end) return -INFINITY;
    if (task.key_mask != nullptr && task.key_mask[key] == 0) return -INFINITY;
    return bias == nullptr ? scores[key] : scores[key] + bias[key];
  };
  float largest = -INFINITY;
  for (int64_t key = threadIdx.x; key < task.keys; key += kThreads) {
    largest = fmaxf(largest, score_of(key));
  }
  largest = MaxBlock(largest, maxima);
  // Nothing seen: exp(-inf - 0) = 0 everywhere. NaN scores come out as NaN.
  const float shift = largest == -INFINITY ? 0.0f : largest;
  float sum = 0.0f;
  for (int64_t key = threadIdx.x; key < task.keys; key += kThreads) {
    sum += expf(score_of(key) - shift);
  }
  sum = SumTeam(sum, kThreads, sums);
  const float inverse = sum == 0.0f ? 0.0f : 1.0f / sum;
  for (int64_t key = threadIdx.x; key < task.pitch; key += kThreads) {
    const float weight = key < task.keys ? expf(score_of(key) - shift) * inverse : 0.0f;
    weights[key] = FromFloat<T>(weight);
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads) MaskRows(const __grid_constant__ MaskRowsTask task) {
  const int64_t row = blockIdx.x;
  const T* x = static_cast<const T*>(task.x) + row * task.stride;
  T* out = static_cast<T*>(task.out) + row * task.width;
  const bool seen = task.mask[row] != 0;
  for (int64_t i = threadIdx.x; i < task.width; i += kThreads) {
    out[i] = seen ? x[i] : FromFloat<T>(0.0f);
  }
}

}  // namespace

cudaError_t LaunchSoftmax(const SoftmaxTask& task, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(task.heads * task.queries);
  if (blocks == 0) return cudaSuccess;
  if (task.bf16) {
    SoftmaxRows<BF16><<<blocks, kThreads, 0, stream>>>(task);
  } else {
    SoftmaxRows<float><<<blocks, kThreads, 0, stream>>>(task);
  }
  return cudaGetLastError();
}

cudaError_t LaunchMaskRows(const MaskRowsTask& task, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(task.rows);
  if (blocks == 0) return cudaSuccess;
  if (task.bf16) {
    MaskRows<BF16><<<blocks, kThreads, 0, stream>>>(task);
  } else {
    MaskRows<float><<<blocks, kThreads, 0, stream>>>(task);
  }
  return cudaGetLastError();
}

}  // namespace ltx::cuda
