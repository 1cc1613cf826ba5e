#include "kernels/cuda/element.cuh"
#include "kernels/cuda/residual_norm.h"
#include "kernels/cuda/row_pack.cuh"
#include "kernels/cuda/row_team.h"
#include "kernels/cuda/row_vectors.cuh"

// A team of threads owns a row and keeps it in registers, so that the state is read and written
// once whatever is made of it. Rows that are not made of whole 16-byte packs, or do not fit the
// registers, are read again from memory for each reading.

namespace ltx::cuda {
namespace {

/// Most packs of a row that a thread holds.
constexpr int kMostPacks = 4;

/// x + update * gate, rounded; a null gate stands for 1.
template <typename T>
__device__ __forceinline__ Pack<T> Updated(const Pack<T>& x, const Pack<T>& update, const T* gate) {
  constexpr int kCount = kPacketSize<T>;
  float sum[kCount];
  float added[kCount];
  Unpack(x, sum);
  Unpack(update, added);
  if (gate == nullptr) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) sum[i] += added[i];
  } else {
    float factor[kCount];
    Unpack(LoadPack(gate), factor);
#pragma unroll
    for (int i = 0; i < kCount; ++i) sum[i] += added[i] * factor[i];
  }
  return MakePack(sum);
}

/// x * inverse * (1 + scale) + shift, rounded; a null scale leaves x * inverse.
template <typename T>
__device__ __forceinline__ Pack<T> Modulated(const Pack<T>& x, float inverse, const T* scale,
                                             const T* shift) {
  constexpr int kCount = kPacketSize<T>;
  float value[kCount];
  Unpack(x, value);
#pragma unroll
  for (int i = 0; i < kCount; ++i) value[i] *= inverse;
  if (scale != nullptr) {
    float factor[kCount];
    float term[kCount];
    Unpack(LoadPack(scale), factor);
    Unpack(LoadPack(shift), term);
#pragma unroll
    for (int i = 0; i < kCount; ++i) value[i] = value[i] * (1.0f + factor[i]) + term[i];
  }
  return MakePack(value);
}

/// `kTeam` threads a row, which hold exactly its packs: the widths of the model.
template <typename T, int kTeam, int kPacks>
__global__ void __launch_bounds__(kRowThreads, 4)
    ResidualNormExact(const __grid_constant__ ResidualNormTask task) {
  constexpr int kCount = kPacketSize<T>;
  constexpr int kWidth = kTeam * kPacks * kCount;
  __shared__ float partial[kRowWarps];
  const int row = static_cast<int>(blockIdx.x) * (kRowThreads / kTeam) + threadIdx.x / kTeam;
  const bool inside = row < static_cast<int>(task.rows);
  const int lane = threadIdx.x % kTeam * kCount;
  T* const x = static_cast<T*>(task.x) + static_cast<int64_t>(row) * kWidth + lane;
  Pack<T> held[kPacks];
  if (inside) {
#pragma unroll
    for (int j = 0; j < kPacks; ++j) held[j] = LoadPack(x + j * kTeam * kCount);
    if (row >= static_cast<int>(task.first) && row < static_cast<int>(task.last)) {
      const int64_t from = row - task.first;
      const T* const update = static_cast<const T*>(task.update) + from * kWidth + lane;
      Pack<T> added[kPacks];
#pragma unroll
      for (int j = 0; j < kPacks; ++j) added[j] = LoadPack(update + j * kTeam * kCount);
      const T* gate = task.gate.rows == nullptr ? nullptr : RowOf<T>(task.gate, from) + lane;
#pragma unroll
      for (int j = 0; j < kPacks; ++j) {
        held[j] = Updated(held[j], added[j], gate == nullptr ? gate : gate + j * kTeam * kCount);
        StorePack(x + j * kTeam * kCount, held[j]);
      }
    }
  }
  if (task.readings == 0) return;
  float sum = 0.0f;
#pragma unroll
  for (int j = 0; j < kPacks; ++j) {
    if (inside) sum += SumOfSquares(held[j]);
  }
  sum = SumTeam(sum, kTeam, partial);
  if (!inside) return;
  const float inverse = 1.0f / sqrtf(sum * (1.0f / kWidth) + task.epsilon);
#pragma unroll
  for (int r = 0; r < ResidualNormTask::kMaxReadings; ++r) {
    if (r >= task.readings) break;
    const ResidualNormTask::Reading& reading = task.reading[r];
    T* const y = static_cast<T*>(reading.y) + static_cast<int64_t>(row) * kWidth + lane;
    if (reading.scale.rows == nullptr) {
#pragma unroll
      for (int j = 0; j < kPacks; ++j) {
        StorePack(y + j * kTeam * kCount, Modulated<T>(held[j], inverse, nullptr, nullptr));
      }
      continue;
    }
    const T* const scale = RowOf<T>(reading.scale, row) + lane;
    const T* const shift = RowOf<T>(reading.shift, row) + lane;
#pragma unroll
    for (int j = 0; j < kPacks; ++j) {
      const int at = j * kTeam * kCount;
      StorePack(y + at, Modulated(held[j], inverse, scale + at, shift + at));
    }
  }
}

/// All rows updated, and every gate, scale and shift one vector for all of them: a block per row,
/// the number of readings known, nothing to look up. The model's usual case.
template <typename T, int kThreads, int kPacks, int kReadings>
__global__ void __launch_bounds__(kThreads, 1024 / kThreads)
    ResidualNormOneLevel(const __grid_constant__ ResidualNormTask task) {
  constexpr int kCount = kPacketSize<T>;
  constexpr int kWidth = kThreads * kPacks * kCount;
  constexpr int kStep = kThreads * kCount;
  __shared__ float partial[kThreads / 32];
  const int lane = threadIdx.x * kCount;
  const int64_t offset = static_cast<int64_t>(blockIdx.x) * kWidth + lane;
  T* const x = static_cast<T*>(task.x) + offset;
  const T* const update = static_cast<const T*>(task.update) + offset;
  const T* const gate = static_cast<const T*>(task.gate.rows) + lane;
  Pack<T> held[kPacks];
  Pack<T> added[kPacks];
#pragma unroll
  for (int j = 0; j < kPacks; ++j) {
    held[j] = LoadPack(x + j * kStep);
    added[j] = LoadPack(update + j * kStep);
  }
  float sum = 0.0f;
#pragma unroll
  for (int j = 0; j < kPacks; ++j) {
    held[j] = Updated(held[j], added[j], gate + j * kStep);
    StorePack(x + j * kStep, held[j]);
    sum += SumOfSquares(held[j]);
  }
  sum = SumTeam(sum, kThreads, partial);
  const float inverse = 1.0f / sqrtf(sum * (1.0f / kWidth) + task.epsilon);
#pragma unroll
  for (int r = 0; r < kReadings; ++r) {
    const ResidualNormTask::Reading& reading = task.reading[r];
    T* const y = static_cast<T*>(reading.y) + offset;
    const T* const scale = static_cast<const T*>(reading.scale.rows) + lane;
    const T* const shift = static_cast<const T*>(reading.shift.rows) + lane;
#pragma unroll
    for (int j = 0; j < kPacks; ++j) {
      const int at = j * kStep;
      StorePack(y + at, Modulated(held[j], inverse, scale + at, shift + at));
    }
  }
}

/// Any row of whole packs that fits.
template <typename T, int kPacks>
__global__ void __launch_bounds__(kRowThreads)
    ResidualNormInRegisters(const __grid_constant__ ResidualNormTask task, int team) {
  constexpr int kCount = kPacketSize<T>;
  __shared__ float partial[kRowWarps];
  const int lane = threadIdx.x % team;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (kRowThreads / team) + threadIdx.x / team;
  const int packs = row < task.rows ? static_cast<int>(task.width) / kCount : 0;
  auto* const x = static_cast<T*>(task.x) + row * task.width;
  Pack<T> held[kPacks];
  const bool updated = packs > 0 && row >= task.first && row < task.last;
  const auto* update = static_cast<const T*>(task.update) + (row - task.first) * task.width;
  const T* gate =
      updated && task.gate.rows != nullptr ? RowOf<T>(task.gate, row - task.first) : nullptr;
  float sum = 0.0f;
#pragma unroll
  for (int j = 0; j < kPacks; ++j) {
    const int at = (j * team + lane) * kCount;
    if (j * team + lane >= packs) continue;
    held[j] = LoadPack(x + at);
    if (updated) {
      held[j] = Updated(held[j], LoadPack(update + at), gate == nullptr ? nullptr : gate + at);
      StorePack(x + at, held[j]);
    }
    sum += SumOfSquares(held[j]);
  }
  if (task.readings == 0) return;
  sum = SumTeam(sum, team, partial);
  if (packs == 0) return;
  const float inverse = 1.0f / sqrtf(sum / static_cast<float>(task.width) + task.epsilon);
#pragma unroll 1
  for (int r = 0; r < task.readings; ++r) {
    const ResidualNormTask::Reading& reading = task.reading[r];
    const bool plain = reading.scale.rows == nullptr;
    const T* scale = plain ? nullptr : RowOf<T>(reading.scale, row);
    const T* shift = plain ? nullptr : RowOf<T>(reading.shift, row);
    auto* const y = static_cast<T*>(reading.y) + row * task.width;
#pragma unroll
    for (int j = 0; j < kPacks; ++j) {
      const int at = (j * team + lane) * kCount;
      if (j * team + lane >= packs) continue;
      StorePack(y + at, Modulated(held[j], inverse, plain ? nullptr : scale + at,
                                  plain ? nullptr : shift + at));
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(kRowThreads)
    ResidualNormFromMemory(const __grid_constant__ ResidualNormTask task, int team) {
  __shared__ float partial[kRowWarps];
  const int lane = threadIdx.x % team;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (kRowThreads / team) + threadIdx.x / team;
  const bool inside = row < task.rows;
  const bool updated = inside && row >= task.first && row < task.last;
  auto* const x = static_cast<T*>(task.x) + row * task.width;
  const auto* update = static_cast<const T*>(task.update) + (row - task.first) * task.width;
  const T* gate =
      updated && task.gate.rows != nullptr ? RowOf<T>(task.gate, row - task.first) : nullptr;
  float sum = 0.0f;
  for (int64_t i = lane; inside && i < task.width; i += team) {
    if (updated) {
      const float factor = gate == nullptr ? 1.0f : ToFloat(gate[i]);
      x[i] = FromFloat<T>(ToFloat(x[i]) + ToFloat(update[i]) * factor);
    }
    const float v = ToFloat(x[i]);
    sum += v * v;
  }
  if (task.readings == 0) return;
  sum = SumTeam(sum, team, partial);
  if (!inside) return;
  const float inverse = 1.0f / sqrtf(sum / static_cast<float>(task.width) + task.epsilon);
  for (int r = 0; r < task.readings; ++r) {
    const ResidualNormTask::Reading& reading = task.reading[r];
    const bool plain = reading.scale.rows == nullptr;
    const T* scale = plain ? nullptr : RowOf<T>(reading.scale, row);
    const T* shift = plain ? nullptr : RowOf<T>(reading.shift, row);
    auto* const y = static_cast<T*>(reading.y) + row * task.width;
    for (int64_t i = lane; i < task.width; i += team) {
      float v = ToFloat(x[i]) * inverse;
      if (scale != nullptr) v = v * (1.0f + ToFloat(scale[i])) + ToFloat(shift[i]);
      y[i] = FromFloat<T>(v);
    }
  }
}

template <typename T>
bool ArePacked(const RowVectorsView& view) {
  return IsAligned16(view.rows) && view.stride % kPacketSize<T> == 0;
}

bool IsOneVector(const RowVectorsView& view) {
  return view.rows != nullptr && view.index == nullptr && view.tokens_per_row == 0;
}

/// Most readings that ResidualNormOneLevel is compiled for.
constexpr int kMostOneLevelReadings = 2;

bool IsOneLevel(const ResidualNormTask& task) {
  bool one = task.first == 0 && task.last == task.rows && IsOneVector(task.gate) &&
             task.readings > 0 && task.readings <= kMostOneLevelReadings;
  for (int r = 0; r < task.readings; ++r) {
    one = one && IsOneVector(task.reading[r].scale) && IsOneVector(task.reading[r].shift);
  }
  return one;
}

template <typename T, int kThreads>
cudaError_t LaunchOneLevel(const ResidualNormTask& task, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(task.rows);
  if (task.readings == 1) {
    ResidualNormOneLevel<T, kThreads, 2, 1><<<blocks, kThreads, 0, stream>>>(task);
  } else {
    ResidualNormOneLevel<T, kThreads, 2, 2><<<blocks, kThreads, 0, stream>>>(task);
  }
  return cudaGetLastError();
}

template <typename T>
cudaError_t LaunchOf(const ResidualNormTask& task, cudaStream_t stream) {
  constexpr int kCount = kPacketSize<T>;
  bool packed = task.width % kCount == 0 && IsAligned16(task.x) && IsAligned16(task.update) &&
                ArePacked<T>(task.gate);
  for (int r = 0; r < task.readings; ++r) {
    const ResidualNormTask::Reading& reading = task.reading[r];
    packed = packed && IsAligned16(reading.y) && ArePacked<T>(reading.scale) &&
             ArePacked<T>(reading.shift);
  }
  const int64_t packs = task.width / kCount;
  if (!packed || packs > int64_t{kRowThreads} * kMostPacks) {
    const int team = TeamFor(task.width, 4);
    ResidualNormFromMemory<T><<<BlocksFor(task.rows, team), kRowThreads, 0, stream>>>(task, team);
    return cudaGetLastError();
  }
  if (packs == 512 && IsOneLevel(task)) return LaunchOneLevel<T, 256>(task, stream);
  if (packs == 256 && IsOneLevel(task)) return LaunchOneLevel<T, 128>(task, stream);
  // Two packs per thread as long as the block suffices: enough loads in flight, and a warp's access
  // covers whole lines.
  const int team = TeamFor(packs, 2);
  const unsigned blocks = BlocksFor(task.rows, team);
  if (packs == 512) {
    ResidualNormExact<T, 256, 2><<<blocks, kRowThreads, 0, stream>>>(task);
  } else if (packs == 256) {
    ResidualNormExact<T, 128, 2><<<blocks, kRowThreads, 0, stream>>>(task);
  } else if (packs <= team * 2) {
    ResidualNormInRegisters<T, 2><<<blocks, kRowThreads, 0, stream>>>(task, team);
  } else {
    ResidualNormInRegisters<T, kMostPacks><<<blocks, kRowThreads, 0, stream>>>(task, team);
  }
  return cudaGetLastError();
}

}  // namespace

cudaError_t LaunchResidualNorm(const ResidualNormTask& task, cudaStream_t stream) {
  if (task.rows == 0 || task.width == 0) return cudaSuccess;
  return task.bf16 ? LaunchOf<BF16>(task, stream) : LaunchOf<float>(task, stream);
}

}  // namespace ltx::cuda
