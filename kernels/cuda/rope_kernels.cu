#include "kernels/cuda/element.cuh"
#include "kernels/cuda/rope_kernels.h"
#include "kernels/cuda/row_pack.cuh"
#include "kernels/cuda/row_team.h"
#include "kernels/cuda/whole_row_rope.h"

// A row is taken in units of two packs that a rotation mixes: the packs at j and j + d/2 of a head,
// or two that follow each other. A team of threads owns a row and holds its units in registers.
// The rows of the transformer, of known widths, have a kernel of their own (whole_row_rope.cu).

namespace ltx::cuda {
namespace {

using Norm = NormRopeTask::Norm;
using Kind = RopeView::Kind;

/// Most units of a row that a thread holds: 4 units of bf16 are 64 registers of floats.
constexpr int kMostUnits = 4;

/// Where a unit lies.
struct UnitPlace {
  int head;
  int in_head;  // of its first pack, in the head
  int second;   // distance of the two packs
};

template <typename T>
__device__ __forceinline__ UnitPlace PlaceUnit(int unit, int head_width, bool split) {
  constexpr int kCount = kPacketSize<T>;
  const int units_per_head = head_width / (2 * kCount);
  UnitPlace place;
  place.head = unit / units_per_head;
  const int index = unit - place.head * units_per_head;
  place.in_head = index * (split ? kCount : 2 * kCount);
  place.second = split ? head_width / 2 : kCount;
  return place;
}

/// Rotates the two packs a and b of a unit and stores them.
template <typename T>
__device__ __forceinline__ void RotateUnit(const RopeView& rope, const UnitPlace& place,
                                           int64_t table, int64_t offset_in_row, const float* a,
                                           const float* b, T* y) {
  constexpr int kCount = kPacketSize<T>;
  Pack<T> first;
  Pack<T> second;
  const auto* cos = static_cast<const T*>(rope.cos) + table;
  const auto* sin = static_cast<const T*>(rope.sin) + table;
  if (rope.kind == Kind::kSplit) {
    const int64_t at = place.head * rope.head_stride + place.in_head;
    const Pack<T> c = LoadPack(cos + at);
    const Pack<T> s = LoadPack(sin + at);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      first.values[i] = FromFloat<T>(a[i] * ToFloat(c.values[i]) - b[i] * ToFloat(s.values[i]));
      second.values[i] = FromFloat<T>(b[i] * ToFloat(c.values[i]) + a[i] * ToFloat(s.values[i]));
    }
  } else if (rope.kind == Kind::kInterleaved) {
    const Pack<T> c0 = LoadPack(cos + offset_in_row);
    const Pack<T> s0 = LoadPack(sin + offset_in_row);
    const Pack<T> c1 = LoadPack(cos + offset_in_row + kCount);
    const Pack<T> s1 = LoadPack(sin + offset_in_row + kCount);
#pragma unroll
    for (int i = 0; i < kCount; i += 2) {
      const int o = i + 1;
      first.values[i] = FromFloat<T>(a[i] * ToFloat(c0.values[i]) - a[o] * ToFloat(s0.values[i]));
      first.values[o] = FromFloat<T>(a[o] * ToFloat(c0.values[o]) + a[i] * ToFloat(s0.values[o]));
      second.values[i] = FromFloat<T>(b[i] * ToFloat(c1.values[i]) - b[o] * ToFloat(s1.values[i]));
      second.values[o] = FromFloat<T>(b[o] * ToFloat(c1.values[o]) + b[i] * ToFloat(s1.values[o]));
    }
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      first.values[i] = FromFloat<T>(a[i]);
      second.values[i] = FromFloat<T>(b[i]);
    }
  }
  StorePack(y + offset_in_row, first);
  StorePack(y + offset_in_row + place.second, second);
}

template <typename T, int kUnits>
__global__ void __launch_bounds__(kRowThreads)
    NormRopeInRegisters(const __grid_constant__ NormRopeTask task, int team) {
  constexpr int kCount = kPacketSize<T>;
  __shared__ float partial[kRowWarps];
  const int lane = threadIdx.x % team;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (kRowThreads / team) + threadIdx.x / team;
  const bool inside = row < task.batch * task.tokens;
  const int head_width = static_cast<int>(task.head_width);
  const int width = static_cast<int>(task.heads) * head_width;
  const int units = width / (2 * kCount);
  const bool split = task.rope.kind == Kind::kSplit;
  const auto* x = static_cast<const T*>(task.x) + row * task.x_stride;
  auto* y = static_cast<T*>(task.y) + row * task.y_stride;
  Pack<T> first[kUnits];
  Pack<T> second[kUnits];
#pragma unroll
  for (int j = 0; j < kUnits; ++j) {
    const int unit = j * team + lane;
    if (!inside || unit >= units) continue;
    const UnitPlace place = PlaceUnit<T>(unit, head_width, split);
    const T* source = x + place.head * head_width + place.in_head;
    first[j] = LoadPack(source);
    second[j] = LoadPack(source + place.second);
  }
  float inverse[kUnits];
#pragma unroll
  for (int j = 0; j < kUnits; ++j) inverse[j] = 1.0f;
  if (task.norm != Norm::kNone) {
    float total = 0.0f;
#pragma unroll
    for (int j = 0; j < kUnits; ++j) {
      float sum = 0.0f;
      if (inside && j * team + lane < units) sum = SumOfSquares(first[j]) + SumOfSquares(second[j]);
      if (task.norm == Norm::kPerHead) {
        // The units of a head are neighbouring lanes.
        sum = SumLanes(sum, head_width / (2 * kCount));
        inverse[j] = 1.0f / sqrtf(sum / static_cast<float>(head_width) + task.epsilon);
      } else {
        total += sum;
      }
    }
    if (task.norm == Norm::kFullWidth) {
      total = SumTeam(total, team, partial);
      const float all = 1.0f / sqrtf(total / static_cast<float>(width) + task.epsilon);
#pragma unroll
      for (int j = 0; j < kUnits; ++j) inverse[j] = all;
    }
  }
  if (!inside) return;
  const int64_t batch = row / task.tokens;
  const int64_t token = row - batch * task.tokens;
  const int64_t table = batch * task.rope.batch_stride + token * task.rope.token_stride;
  const auto* weight = static_cast<const T*>(task.weight);
#pragma unroll
  for (int j = 0; j < kUnits; ++j) {
    const int unit = j * team + lane;
    if (unit >= units) continue;
    const UnitPlace place = PlaceUnit<T>(unit, head_width, split);
    const int64_t offset = place.head * head_width + place.in_head;
    const T* factors = weight == nullptr
                           ? nullptr
                           : weight + (task.norm == Norm::kPerHead ? place.in_head : offset);
    float a[kCount];
    float b[kCount];
    ScalePack(first[j], inverse[j], factors, task.base, a);
    ScalePack(second[j], inverse[j], factors == nullptr ? nullptr : factors + place.second,
              task.base, b);
    RotateUnit(task.rope, place, table, offset, a, b, y);
  }
}

/// Any widths and alignments: a block per row, which lies in shared memory as floats.
template <typename T>
__global__ void __launch_bounds__(kRowThreads)
    NormRopeFromMemory(const __grid_constant__ NormRopeTask task) {
  extern __shared__ float scaled[];
  __shared__ float partial[kRowWarps];
  const int64_t row = blockIdx.x;
  const int head_width = static_cast<int>(task.head_width);
  const int heads = static_cast<int>(task.heads);
  const int width = heads * head_width;
  const auto* x = static_cast<const T*>(task.x) + row * task.x_stride;
  auto* y = static_cast<T*>(task.y) + row * task.y_stride;
  const auto* weight = static_cast<const T*>(task.weight);
  for (int i = threadIdx.x; i < width; i += kRowThreads) scaled[i] = ToFloat(x[i]);
  __syncthreads();
  if (task.norm == Norm::kFullWidth) {
    float sum = 0.0f;
    for (int i = threadIdx.x; i < width; i += kRowThreads) sum += scaled[i] * scaled[i];
    sum = SumTeam(sum, kRowThreads, partial);
    const float inverse = 1.0f / sqrtf(sum / static_cast<float>(width) + task.epsilon);
    for (int i = threadIdx.x; i < width; i += kRowThreads) {
      const float factor = weight == nullptr ? 1.0f : task.base + ToFloat(weight[i]);
      scaled[i] *= inverse * factor;
    }
  } else if (task.norm == Norm::kPerHead) {
    for (int head = threadIdx.x / 32; head < heads; head += kRowWarps) {
      float* values = scaled + head * head_width;
      float sum = 0.0f;
      for (int i = threadIdx.x % 32; i < head_width; i += 32) sum += values[i] * values[i];
      const float inverse =
          1.0f / sqrtf(SumLanes(sum) / static_cast<float>(head_width) + task.epsilon);
      for (int i = threadIdx.x % 32; i < head_width; i += 32) {
        const float factor = weight == nullptr ? 1.0f : task.base + ToFloat(weight[i]);
        values[i] *= inverse * factor;
      }
    }
  }
  __syncthreads();
  const int64_t batch = row / task.tokens;
  const int64_t token = row - batch * task.tokens;
  const int64_t table = batch * task.rope.batch_stride + token * task.rope.token_stride;
  const auto* cos = static_cast<const T*>(task.rope.cos) + table;
  const auto* sin = static_cast<const T*>(task.rope.sin) + table;
  for (int i = threadIdx.x; i < width; i += kRowThreads) {
    float v = scaled[i];
    if (task.rope.kind == Kind::kSplit) {
      const int head = i / head_width;
      const int in_head = i - head * head_width;
      const int half = head_width / 2;
      const bool low = in_head < half;
      const int64_t at = head * task.rope.head_stride + (low ? in_head : in_head - half);
      const float other = scaled[low ? i + half : i - half];
      const float rotated = other * ToFloat(sin[at]);
      v = v * ToFloat(cos[at]) + (low ? -rotated : rotated);
    } else if (task.rope.kind == Kind::kInterleaved) {
      const float rotated = scaled[i ^ 1] * ToFloat(sin[i]);
      v = v * ToFloat(cos[i]) + (i % 2 == 0 ? -rotated : rotated);
    }
    y[i] = FromFloat<T>(v);
  }
}

template <typename T>
__global__ void __launch_bounds__(kRowThreads)
    HeadGateRows(const __grid_constant__ HeadGateTask task, int team, bool packed) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (kRowThreads / team) + threadIdx.x / team;
  if (row >= task.rows) return;
  const int head_width = static_cast<int>(task.head_width);
  const int width = static_cast<int>(task.heads) * head_width;
  const auto* x = static_cast<const T*>(task.x) + row * task.x_stride;
  auto* y = static_cast<T*>(task.y) + row * task.y_stride;
  const auto* logits = static_cast<const T*>(task.logits) + row * task.logit_stride;
  if (packed) {
    constexpr int kCount = kPacketSize<T>;
#pragma unroll 2
    for (int at = threadIdx.x % team * kCount; at < width; at += team * kCount) {
      Pack<T> pack = LoadPack(x + at);
      const float gate = 2.0f * SigmoidAs<T>(ToFloat(logits[at / head_width]));
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        pack.values[i] = FromFloat<T>(ToFloat(pack.values[i]) * gate);
      }
      StorePack(y + at, pack);
    }
    return;
  }
  for (int i = threadIdx.x % team; i < width; i += team) {
    const float gate = 2.0f * SigmoidAs<T>(ToFloat(logits[i / head_width]));
    y[i] = FromFloat<T>(ToFloat(x[i]) * gate);
  }
}

bool IsPowerOfTwo(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

template <typename T>
cudaError_t LaunchNormRopeOf(const NormRopeTask& task, cudaStream_t stream) {
  constexpr int kCount = kPacketSize<T>;
  const int64_t rows = task.batch * task.tokens;
  const int64_t width = task.heads * task.head_width;
  const int64_t units_per_head = task.head_width / (2 * kCount);
  const int64_t units = width / (2 * kCount);
  bool packed = task.head_width % (2 * kCount) == 0 && task.x_stride % kCount == 0 &&
                task.y_stride % kCount == 0 && IsAligned16(task.x) && IsAligned16(task.y) &&
                IsAligned16(task.weight) && units <= int64_t{kRowThreads} * kMostUnits &&
                IsPacked(task.rope, kCount);
  if (task.norm == Norm::kPerHead) {
    packed = packed && IsPowerOfTwo(units_per_head) && units_per_head <= 32;
  }
  if (!packed) {
    const int64_t bytes = width * static_cast<int64_t>(sizeof(float));
    auto* kernel = NormRopeFromMemory<T>;
    if (bytes > 48 * 1024) {
      // Beyond the default limit of dynamic shared memory a kernel has to ask.
      const cudaError_t error = cudaFuncSetAttribute(
          kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
      if (error != cudaSuccess) return error;
    }
    kernel<<<static_cast<unsigned>(rows), kRowThreads, bytes, stream>>>(task);
    return cudaGetLastError();
  }
  int team = TeamFor(units, 1);
  // The lanes of a head must lie in one team.
  if (task.norm == Norm::kPerHead && team < units_per_head) team = static_cast<int>(units_per_head);
  const unsigned blocks = BlocksFor(rows, team);
  if (units <= team) {
    NormRopeInRegisters<T, 1><<<blocks, kRowThreads, 0, stream>>>(task, team);
  } else if (units <= team * 2) {
    NormRopeInRegisters<T, 2><<<blocks, kRowThreads, 0, stream>>>(task, team);
  } else {
    NormRopeInRegisters<T, kMostUnits><<<blocks, kRowThreads, 0, stream>>>(task, team);
  }
  return cudaGetLastError();
}

template <typename T>
cudaError_t LaunchHeadGateOf(const HeadGateTask& task, cudaStream_t stream) {
  constexpr int kCount = kPacketSize<T>;
  const int team = TeamFor(task.heads * task.head_width / kCount, 2);
  const bool packed = task.head_width % kCount == 0 && task.x_stride % kCount == 0 &&
                      task.y_stride % kCount == 0 && IsAligned16(task.x) && IsAligned16(task.y);
  HeadGateRows<T><<<BlocksFor(task.rows, team), kRowThreads, 0, stream>>>(task, team, packed);
  return cudaGetLastError();
}

}  // namespace

cudaError_t LaunchNormRope(const NormRopeTask& task, cudaStream_t stream) {
  if (task.batch * task.tokens == 0 || task.heads * task.head_width == 0) return cudaSuccess;
  if (IsWholeRow(task)) return LaunchWholeRow(task, stream);
  return task.bf16 ? LaunchNormRopeOf<BF16>(task, stream) : LaunchNormRopeOf<float>(task, stream);
}

cudaError_t LaunchNormRopePair(const NormRopeTask& queries, const NormRopeTask& keys,
                               cudaStream_t stream) {
  if (IsWholeRow(queries) && IsWholeRow(keys) && CanShareLaunch(queries, keys)) {
    return LaunchWholeRowPair(queries, keys, stream);
  }
  const cudaError_t error = LaunchNormRope(queries, stream);
  return error != cudaSuccess ? error : LaunchNormRope(keys, stream);
}

cudaError_t LaunchHeadGate(const HeadGateTask& task, cudaStream_t stream) {
  if (task.rows == 0 || task.heads * task.head_width == 0) return cudaSuccess;
  return task.bf16 ? LaunchHeadGateOf<BF16>(task, stream) : LaunchHeadGateOf<float>(task, stream);
}

}  // namespace ltx::cuda
