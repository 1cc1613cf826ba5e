#include "kernels/cuda/element.cuh"
#include "kernels/cuda/row_kernels.h"
#include "kernels/cuda/row_team.h"

// A team of threads owns a row and keeps it in registers: one pass over memory. Narrow rows share a
// block, wide ones take it whole. Rows that are not made of whole 16-byte packs, or do not fit the
// registers, are read again from memory for each statistic.

namespace ltx::cuda {
namespace {

using Statistic = RowNormTask::Statistic;

/// Most packs of a row that a thread holds: 8 packs of bf16 are 64 registers of floats.
constexpr int kMostPacks = 8;

template <typename T>
__device__ __forceinline__ const T* RowOf(const RowVectorsView& view, int64_t token) {
  if (view.rows == nullptr) return nullptr;
  int64_t row = 0;
  if (view.index != nullptr) {
    row = min(max(int64_t{view.index[token]}, int64_t{0}), view.count - 1);
  } else if (view.tokens_per_row != 0) {
    row = token / view.tokens_per_row;
  }
  return static_cast<const T*>(view.rows) + row * view.stride;
}

template <typename T, int kPacks>
__global__ void __launch_bounds__(kRowThreads)
    RowNormInRegisters(const __grid_constant__ RowNormTask task, int team) {
  constexpr int kCount = kPacketSize<T>;
  __shared__ float sums[kRowWarps];
  __shared__ float squares[kRowWarps];
  const int lane = threadIdx.x % team;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (kRowThreads / team) + threadIdx.x / team;
  const bool inside = row < task.rows;
  const int packs = static_cast<int>(task.width) / kCount;
  const auto* x = static_cast<const T*>(task.x) + row * task.x_stride;
  Pack<T> held[kPacks];
#pragma unroll
  for (int j = 0; j < kPacks; ++j) {
    const int pack = j * team + lane;
    if (inside && pack < packs) held[j] = LoadPack(x + pack * kCount);
  }
  float mean = 0.0f;
  float inverse = 1.0f;
  if (task.statistic != Statistic::kNone) {
    const float count = static_cast<float>(task.width);
    const auto sum_of = [&](bool squared, float centre, float* partial) {
      float sum = 0.0f;
#pragma unroll
      for (int j = 0; j < kPacks; ++j) {
        if (!inside || j * team + lane >= packs) continue;
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
          const float v = ToFloat(held[j].values[i]) - centre;
          sum += squared ? v * v : v;
        }
      }
      return SumTeam(sum, team, partial);
    };
    if (task.statistic == Statistic::kLayer) mean = sum_of(false, 0.0f, sums) / count;
    inverse = 1.0f / sqrtf(sum_of(true, mean, squares) / count + task.epsilon);
  }
  if (!inside) return;
  const T* scale = RowOf<T>(task.scale, row);
  const T* shift = RowOf<T>(task.shift, row);
  auto* y = static_cast<T*>(task.y) + row * task.y_stride;
#pragma unroll
  for (int j = 0; j < kPacks; ++j) {
    const int pack = j * team + lane;
    if (pack >= packs) continue;
    Pack<T> factors;
    Pack<T> terms;
    if (scale != nullptr) factors = LoadPack(scale + pack * kCount);
    if (shift != nullptr) terms = LoadPack(shift + pack * kCount);
    Pack<T> result;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      float v = (ToFloat(held[j].values[i]) - mean) * inverse;
      if (scale != nullptr) v *= task.base + ToFloat(factors.values[i]);
      if (shift != nullptr) v += ToFloat(terms.values[i]);
      result.values[i] = FromFloat<T>(ActivateAs<T>(v, task.activation));
    }
    StorePack(y + pack * kCount, result);
  }
}

template <typename T>
__global__ void __launch_bounds__(kRowThreads)
    RowNormFromMemory(const __grid_constant__ RowNormTask task, int team) {
  __shared__ float sums[kRowWarps];
  __shared__ float squares[kRowWarps];
  const int64_t lane = threadIdx.x % team;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (kRowThreads / team) + threadIdx.x / team;
  const bool inside = row < task.rows;
  const auto* x = static_cast<const T*>(task.x) + row * task.x_stride;
  float mean = 0.0f;
  float inverse = 1.0f;
  if (task.statistic != Statistic::kNone) {
    const float count = static_cast<float>(task.width);
    const auto sum_of = [&](bool squared, float centre, float* partial) {
      float sum = 0.0f;
      for (int64_t i = lane; inside && i < task.width; i += team) {
        const float v = ToFloat(x[i]) - centre;
        sum += squared ? v * v : v;
      }
      return SumTeam(sum, team, partial);
    };
    if (task.statistic == Statistic::kLayer) mean = sum_of(false, 0.0f, sums) / count;
    inverse = 1.0f / sqrtf(sum_of(true, mean, squares) / count + task.epsilon);
  }
  if (!inside) return;
  const T* scale = RowOf<T>(task.scale, row);
  const T* shift = RowOf<T>(task.shift, row);
  auto* y = static_cast<T*>(task.y) + row * task.y_stride;
  for (int64_t i = lane; i < task.width; i += team) {
    float v = (ToFloat(x[i]) - mean) * inverse;
    if (scale != nullptr) v *= task.base + ToFloat(scale[i]);
    if (shift != nullptr) v += ToFloat(shift[i]);
    y[i] = FromFloat<T>(ActivateAs<T>(v, task.activation));
  }
}

template <typename T>
__global__ void __launch_bounds__(kRowThreads)
    AddGatedPacks(const __grid_constant__ AddGatedTask task, int team) {
  constexpr int kCount = kPacketSize<T>;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (kRowThreads / team) + threadIdx.x / team;
  if (row >= task.rows) return;
  const int64_t begin = row * task.width;
  const T* gate = RowOf<T>(task.gate, row);
  const auto* x = static_cast<const T*>(task.x) + begin;
  const auto* y = static_cast<const T*>(task.y) + begin;
  auto* out = static_cast<T*>(task.out) + begin;
#pragma unroll 2
  for (int64_t at = threadIdx.x % team * kCount; at < task.width; at += team * kCount) {
    const Pack<T> base = LoadPack(x + at);
    const Pack<T> update = LoadPack(y + at);
    const Pack<T> factor = LoadPack(gate + at);
    Pack<T> result;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      result.values[i] = FromFloat<T>(ToFloat(base.values[i]) +
                                      ToFloat(update.values[i]) * ToFloat(factor.values[i]));
    }
    StorePack(out + at, result);
  }
}

template <typename T>
__global__ void __launch_bounds__(kRowThreads)
    AddGatedElements(const __grid_constant__ AddGatedTask task, int team) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (kRowThreads / team) + threadIdx.x / team;
  if (row >= task.rows) return;
  const int64_t begin = row * task.width;
  const T* gate = RowOf<T>(task.gate, row);
  const auto* x = static_cast<const T*>(task.x) + begin;
  const auto* y = static_cast<const T*>(task.y) + begin;
  auto* out = static_cast<T*>(task.out) + begin;
  for (int64_t i = threadIdx.x % team; i < task.width; i += team) {
    out[i] = FromFloat<T>(ToFloat(x[i]) + ToFloat(y[i]) * ToFloat(gate[i]));
  }
}

template <typename T>
bool ArePacked(const RowVectorsView& view) {
  return IsAligned16(view.rows) && view.stride % kPacketSize<T> == 0;
}

template <typename T>
cudaError_t LaunchRowNormOf(const RowNormTask& task, cudaStream_t stream) {
  constexpr int kCount = kPacketSize<T>;
  const bool packed = task.width % kCount == 0 && task.x_stride % kCount == 0 &&
                      task.y_stride % kCount == 0 && IsAligned16(task.x) && IsAligned16(task.y) &&
                      ArePacked<T>(task.scale) && ArePacked<T>(task.shift);
  const int64_t packs = task.width / kCount;
  if (!packed || packs > int64_t{kRowThreads} * kMostPacks) {
    const int team = TeamFor(task.width, 4);
    RowNormFromMemory<T><<<BlocksFor(task.rows, team), kRowThreads, 0, stream>>>(task, team);
    return cudaGetLastError();
  }
  // Two packs per thread as long as the block suffices: enough loads in flight, and a warp's access
  // covers whole lines.
  const int team = TeamFor(packs, 2);
  const unsigned blocks = BlocksFor(task.rows, team);
  if (packs <= team * 2) {
    RowNormInRegisters<T, 2><<<blocks, kRowThreads, 0, stream>>>(task, team);
  } else if (packs <= team * 4) {
    RowNormInRegisters<T, 4><<<blocks, kRowThreads, 0, stream>>>(task, team);
  } else {
    RowNormInRegisters<T, kMostPacks><<<blocks, kRowThreads, 0, stream>>>(task, team);
  }
  return cudaGetLastError();
}

template <typename T>
cudaError_t LaunchAddGatedOf(const AddGatedTask& task, cudaStream_t stream) {
  constexpr int kCount = kPacketSize<T>;
  const bool packed = task.width % kCount == 0 && IsAligned16(task.x) && IsAligned16(task.y) &&
                      IsAligned16(task.out) && ArePacked<T>(task.gate);
  if (packed) {
    const int team = TeamFor(task.width / kCount, 2);
    AddGatedPacks<T><<<BlocksFor(task.rows, team), kRowThreads, 0, stream>>>(task, team);
  } else {
    const int team = TeamFor(task.width, 4);
    AddGatedElements<T><<<BlocksFor(task.rows, team), kRowThreads, 0, stream>>>(task, team);
  }
  return cudaGetLastError();
}

}  // namespace

cudaError_t LaunchRowNorm(const RowNormTask& task, cudaStream_t stream) {
  if (task.rows == 0 || task.width == 0) return cudaSuccess;
  return task.bf16 ? LaunchRowNormOf<BF16>(task, stream)
                   : LaunchRowNormOf<float>(task, stream);
}

cudaError_t LaunchAddGated(const AddGatedTask& task, cudaStream_t stream) {
  if (task.rows == 0 || task.width == 0) return cudaSuccess;
  return task.bf16 ? LaunchAddGatedOf<BF16>(task, stream)
                   : LaunchAddGatedOf<float>(task, stream);
}

}  // namespace ltx::cuda
