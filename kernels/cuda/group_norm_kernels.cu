#include <algorithm>

#include "kernels/cuda/element.cuh"
#include "kernels/cuda/group_norm_kernels.h"
#include "kernels/cuda/row_team.h"

// Three launches: partial sums per chunk of positions and group, their total, the result. Sums are
// taken about the group's first element, so that a large mean does not cancel, in f32 over few
// elements and in f64 beyond; every sum has one order, so that results do not vary.

namespace ltx::cuda {
namespace {

constexpr int kThreads = 256;
/// Positions per chunk: bounds what a thread adds up in f32 (a chunk's positions times a pack).
constexpr int64_t kChunkPositions = 128;

struct Sums {
  double first;   // of (x - shift)
  double second;  // of (x - shift)^2
};

struct Scratch {
  Sums* chunks;     // [batch, chunks, groups]
  float2* moments;  // [batch, groups]: mean, inverse standard deviation
};

int64_t ChunksOf(const GroupNormTask& task) {
  return (task.positions + kChunkPositions - 1) / kChunkPositions;
}

Scratch Place(const GroupNormTask& task, void* workspace) {
  auto* chunks = static_cast<Sums*>(workspace);
  return {chunks, reinterpret_cast<float2*>(chunks + task.batch * ChunksOf(task) * task.groups)};
}

/// The element about which a group's sums are taken.
template <typename T>
__device__ __forceinline__ float ShiftOf(const GroupNormTask& task, int64_t batch, int group) {
  const int64_t width = task.channels / task.groups;
  return ToFloat(
      static_cast<const T*>(task.x)[batch * task.positions * task.channels + group * width]);
}

/// A block per (chunk, group, batch): a group's slice of a chunk is small, and neighbouring blocks
/// read neighbouring slices of the same lines. kCount elements per access, all of one group.
template <typename T, int kCount>
__global__ void __launch_bounds__(kThreads)
    ChunkSums(const __grid_constant__ GroupNormTask task, Sums* sums) {
  const int64_t chunk = blockIdx.x / task.groups;
  const int group = static_cast<int>(blockIdx.x % task.groups);
  const int64_t batch = blockIdx.y;
  const int64_t chunks = gridDim.x / task.groups;
  const int width = static_cast<int>(task.channels / task.groups);
  const int per_row = width / kCount;
  const int64_t begin = chunk * kChunkPositions;
  const int count = static_cast<int>(min(kChunkPositions, task.positions - begin)) * per_row;
  const auto* x = static_cast<const T*>(task.x) + (batch * task.positions + begin) * task.channels +
                  group * width;
  const float shift = ShiftOf<T>(task, batch, group);
  float first = 0.0f;
  float second = 0.0f;
  for (int item = threadIdx.x; item < count; item += kThreads) {
    const int position = item / per_row;
    const T* source = x + position * task.channels + (item - position * per_row) * kCount;
    const auto add = [&](T value) {
      const float v = ToFloat(value) - shift;
      first += v;
      second += v * v;
    };
    if constexpr (kCount == 1) {
      add(*source);
    } else {
      const Pack<T> pack = LoadPack(source);
#pragma unroll
      for (int i = 0; i < kCount; ++i) add(pack.values[i]);
    }
  }
  __shared__ Sums partial[kThreads / 32];
  const Sums warp = {SumLanes(static_cast<double>(first)), SumLanes(static_cast<double>(second))};
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = warp;
  __syncthreads();
  if (threadIdx.x != 0) return;
  Sums total = {0.0, 0.0};
  for (const Sums& part : partial) {
    total.first += part.first;
    total.second += part.second;
  }
  sums[(batch * chunks + chunk) * task.groups + group] = total;
}

/// A warp per (group, batch).
template <typename T>
__global__ void Moments(const __grid_constant__ GroupNormTask task, const Sums* sums,
                        int64_t chunks, float2* moments) {
  const int group = blockIdx.x;
  const int64_t batch = blockIdx.y;
  Sums total = {0.0, 0.0};
  for (int64_t chunk = threadIdx.x; chunk < chunks; chunk += 32) {
    const Sums part = sums[(batch * chunks + chunk) * task.groups + group];
    total.first += part.first;
    total.second += part.second;
  }
  total.first = SumLanes(total.first);
  total.second = SumLanes(total.second);
  if (threadIdx.x != 0) return;
  const double count =
      static_cast<double>(task.positions) * static_cast<double>(task.channels / task.groups);
  const double mean = total.first / count;
  // Rounding can take the difference below zero by as little as makes no difference to epsilon.
  const double variance = fmax(total.second / count - mean * mean, 0.0);
  moments[batch * task.groups + group] =
      make_float2(static_cast<float>(mean + ShiftOf<T>(task, batch, group)),
                  static_cast<float>(1.0 / sqrt(variance + static_cast<double>(task.epsilon))));
}

template <typename T, int kCount>
__global__ void __launch_bounds__(kThreads)
    Normalize(const __grid_constant__ GroupNormTask task, const float2* moments, int64_t items) {
  const int per_row = static_cast<int>(task.channels / kCount);
  const int width = static_cast<int>(task.channels / task.groups);
  const auto* weight = static_cast<const T*>(task.weight);
  const auto* bias = static_cast<const T*>(task.bias);
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; item < items;
       item += static_cast<int64_t>(gridDim.x) * kThreads) {
    const int64_t position = item / per_row;
    const int channel = static_cast<int>(item - position * per_row) * kCount;
    const int64_t batch = position / task.positions;
    const float2 moment = moments[batch * task.groups + channel / width];
    const auto apply = [&](T value, T factor, T term) {
      const float v = (ToFloat(value) - moment.x) * (moment.y * ToFloat(factor)) + ToFloat(term);
      return FromFloat<T>(ActivateAs<T>(v, task.activation));
    };
    const T* source = static_cast<const T*>(task.x) + item * kCount;
    T* target = static_cast<T*>(task.y) + item * kCount;
    if constexpr (kCount == 1) {
      *target = apply(*source, weight[channel], bias[channel]);
    } else {
      const Pack<T> pack = LoadPack(source);
      const Pack<T> factors = LoadPack(weight + channel);
      const Pack<T> terms = LoadPack(bias + channel);
      Pack<T> result;
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        result.values[i] = apply(pack.values[i], factors.values[i], terms.values[i]);
      }
      StorePack(target, result);
    }
  }
}

template <typename T, int kCount>
cudaError_t LaunchGroupNormOf(const GroupNormTask& task, const Scratch& scratch,
                              cudaStream_t stream) {
  const int64_t chunks = ChunksOf(task);
  const auto batch = static_cast<unsigned>(task.batch);
  ChunkSums<T, kCount>
      <<<dim3(static_cast<unsigned>(chunks * task.groups), batch), kThreads, 0, stream>>>(
          task, scratch.chunks);
  Moments<T><<<dim3(static_cast<unsigned>(task.groups), batch), 32, 0, stream>>>(
      task, scratch.chunks, chunks, scratch.moments);
  const int64_t items = task.batch * task.positions * task.channels / kCount;
  constexpr int64_t kMostBlocks = 1 << 16;
  const auto blocks =
      static_cast<unsigned>(std::min((items + kThreads - 1) / kThreads, kMostBlocks));
  Normalize<T, kCount><<<blocks, kThreads, 0, stream>>>(task, scratch.moments, items);
  return cudaGetLastError();
}

template <typename T>
cudaError_t LaunchGroupNormOf(const GroupNormTask& task, void* workspace, cudaStream_t stream) {
  const Scratch scratch = Place(task, workspace);
  constexpr int kCount = kPacketSize<T>;
  const bool packed = task.channels / task.groups % kCount == 0 && IsAligned16(task.x) &&
                      IsAligned16(task.y) && IsAligned16(task.weight) && IsAligned16(task.bias);
  return packed ? LaunchGroupNormOf<T, kCount>(task, scratch, stream)
                : LaunchGroupNormOf<T, 1>(task, scratch, stream);
}

}  // namespace

int64_t GroupNormWorkspaceBytes(const GroupNormTask& task) {
  return task.batch * task.groups *
         (ChunksOf(task) * static_cast<int64_t>(sizeof(Sums)) +
          static_cast<int64_t>(sizeof(float2)));
}

cudaError_t LaunchGroupNorm(const GroupNormTask& task, void* workspace, cudaStream_t stream) {
  if (task.batch * task.positions * task.channels == 0) return cudaSuccess;
  return task.bf16 ? LaunchGroupNormOf<BF16>(task, workspace, stream)
                   : LaunchGroupNormOf<float>(task, workspace, stream);
}

}  // namespace ltx::cuda
