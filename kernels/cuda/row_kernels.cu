#include "kernels/cuda/element.cuh"
#include "kernels/cuda/row_kernels.h"
#include "kernels/cuda/row_team.h"
#include "kernels/cuda/row_vectors.cuh"

// A team of threads owns a row and keeps it in registers: one pass over memory, with the vectors
// that modulate the row already on their way while its statistic is taken. Narrow rows share a
// block, wide ones take it whole. Rows that are not made of whole 16-byte packs, or do not fit the
// registers, are read again from memory for each statistic.

namespace ltx::cuda {
namespace {

using Statistic = RowNormTask::Statistic;

/// Most packs of a row that a thread holds: 8 packs of bf16 are 64 registers of floats.
constexpr int kMostPacks = 8;

/// What is compiled apart, so that the usual forms carry nothing of the others.
template <Statistic kStatisticValue, bool kScaleValue, bool kShiftValue, bool kActivateValue>
struct Form {
  static constexpr Statistic kStatistic = kStatisticValue;
  static constexpr bool kScale = kScaleValue;
  static constexpr bool kShift = kShiftValue;
  static constexpr bool kActivate = kActivateValue;
};

template <typename T>
__device__ __forceinline__ float ActivateValue(float x, Activation activation) {
  // The branch that is taken nearly always, first.
  return activation == Activation::kSilu ? ActivateAs<T>(x, Activation::kSilu)
                                         : ActivateAs<T>(x, activation);
}

template <typename T, int kPacks, typename F>
__global__ void __launch_bounds__(kRowThreads)
    RowNormInRegisters(const __grid_constant__ RowNormTask task, int team) {
  constexpr int kCount = kPacketSize<T>;
  __shared__ float sums[kRowWarps];
  __shared__ float squares[kRowWarps];
  const int lane = threadIdx.x % team;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (kRowThreads / team) + threadIdx.x / team;
  const bool inside = row < task.rows;
  const int packs = inside ? static_cast<int>(task.width) / kCount : 0;
  const auto* x = static_cast<const T*>(task.x) + row * task.x_stride;
  Pack<T> held[kPacks];
#pragma unroll
  for (int j = 0; j < kPacks; ++j) {
    const int pack = j * team + lane;
    if (pack < packs) held[j] = LoadPack(x + pack * kCount);
  }
  Pack<T> factors[F::kScale ? kPacks : 1];
  Pack<T> terms[F::kShift ? kPacks : 1];
  if (F::kScale && inside) {
    const T* scale = RowOf<T>(task.scale, row);
#pragma unroll
    for (int j = 0; j < kPacks; ++j) {
      const int pack = j * team + lane;
      if (pack < packs) factors[F::kScale ? j : 0] = LoadPack(scale + pack * kCount);
    }
  }
  if (F::kShift && inside) {
    const T* shift = RowOf<T>(task.shift, row);
#pragma unroll
    for (int j = 0; j < kPacks; ++j) {
      const int pack = j * team + lane;
      if (pack < packs) terms[F::kShift ? j : 0] = LoadPack(shift + pack * kCount);
    }
  }
  float mean = 0.0f;
  float inverse = 1.0f;
  if constexpr (F::kStatistic != Statistic::kNone) {
    const float count = static_cast<float>(task.width);
    const auto sum_of = [&](auto function, float* partial) {
      float sum = 0.0f;
#pragma unroll
      for (int j = 0; j < kPacks; ++j) {
        if (j * team + lane >= packs) continue;
#pragma unroll
        for (int i = 0; i < kCount; ++i) sum += function(ToFloat(held[j].values[i]));
      }
      return SumTeam(sum, team, partial);
    };
    if constexpr (F::kStatistic == Statistic::kLayer) {
      mean = sum_of([](float v) { return v; }, sums) / count;
    }
    const float sum = sum_of(
        [mean](float v) {
          const float centred = F::kStatistic == Statistic::kLayer ? v - mean : v;
          return centred * centred;
        },
        squares);
    inverse = 1.0f / sqrtf(sum / count + task.epsilon);
  }
  auto* y = static_cast<T*>(task.y) + row * task.y_stride;
#pragma unroll
  for (int j = 0; j < kPacks; ++j) {
    const int pack = j * team + lane;
    if (pack >= packs) continue;
    float result[kCount];
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      float v = ToFloat(held[j].values[i]);
      if constexpr (F::kStatistic == Statistic::kLayer) v -= mean;
      if constexpr (F::kStatistic != Statistic::kNone) v *= inverse;
      if constexpr (F::kScale) v *= task.base + ToFloat(factors[j].values[i]);
      if constexpr (F::kShift) v += ToFloat(terms[j].values[i]);
      if constexpr (F::kActivate) v = ActivateValue<T>(v, task.activation);
      result[i] = v;
    }
    StorePack(y + pack * kCount, MakePack(result));
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
  const T* scale = task.scale.rows == nullptr ? nullptr : RowOf<T>(task.scale, row);
  const T* shift = task.shift.rows == nullptr ? nullptr : RowOf<T>(task.shift, row);
  auto* y = static_cast<T*>(task.y) + row * task.y_stride;
  for (int64_t i = lane; i < task.width; i += team) {
    float v = (ToFloat(x[i]) - mean) * inverse;
    if (scale != nullptr) v *= task.base + ToFloat(scale[i]);
    if (shift != nullptr) v += ToFloat(shift[i]);
    y[i] = FromFloat<T>(ActivateAs<T>(v, task.activation));
  }
}

template <typename T>
bool ArePacked(const RowVectorsView& view) {
  return IsAligned16(view.rows) && view.stride % kPacketSize<T> == 0;
}

template <typename T>
bool HasPackedRows(const RowNormTask& task) {
  constexpr int kCount = kPacketSize<T>;
  return task.width % kCount == 0 && task.x_stride % kCount == 0 && task.y_stride % kCount == 0 &&
         IsAligned16(task.x) && IsAligned16(task.y) && ArePacked<T>(task.scale) &&
         ArePacked<T>(task.shift);
}

template <typename T, typename F>
void LaunchInRegisters(const RowNormTask& task, cudaStream_t stream) {
  const int64_t packs = task.width / kPacketSize<T>;
  // Two packs per thread as long as the block suffices: enough loads in flight, and a warp's access
  // covers whole lines.
  const int team = TeamFor(packs, 2);
  const unsigned blocks = BlocksFor(task.rows, team);
  if (packs <= team * 2) {
    RowNormInRegisters<T, 2, F><<<blocks, kRowThreads, 0, stream>>>(task, team);
  } else if (packs <= team * 4) {
    RowNormInRegisters<T, 4, F><<<blocks, kRowThreads, 0, stream>>>(task, team);
  } else {
    RowNormInRegisters<T, kMostPacks, F><<<blocks, kRowThreads, 0, stream>>>(task, team);
  }
}

/// The forms that operations have: an RMS norm with or without a weight, and both modulations,
/// activated or not. False if the task has another.
template <typename T>
bool LaunchForm(const RowNormTask& task, cudaStream_t stream) {
  const bool scale = task.scale.rows != nullptr;
  const bool shift = task.shift.rows != nullptr;
  const bool activate = task.activation != Activation::kNone;
  if (task.statistic == Statistic::kRms && !scale && !shift) {
    activate ? LaunchInRegisters<T, Form<Statistic::kRms, false, false, true>>(task, stream)
             : LaunchInRegisters<T, Form<Statistic::kRms, false, false, false>>(task, stream);
    return true;
  }
  if (task.statistic == Statistic::kRms && scale && !shift) {
    activate ? LaunchInRegisters<T, Form<Statistic::kRms, true, false, true>>(task, stream)
             : LaunchInRegisters<T, Form<Statistic::kRms, true, false, false>>(task, stream);
    return true;
  }
  if (task.statistic == Statistic::kLayer && scale && shift && !activate) {
    LaunchInRegisters<T, Form<Statistic::kLayer, true, true, false>>(task, stream);
    return true;
  }
  if (task.statistic == Statistic::kNone && scale && shift) {
    activate ? LaunchInRegisters<T, Form<Statistic::kNone, true, true, true>>(task, stream)
             : LaunchInRegisters<T, Form<Statistic::kNone, true, true, false>>(task, stream);
    return true;
  }
  return false;
}

template <typename T>
void LaunchRowNormOf(const RowNormTask& task, cudaStream_t stream) {
  const bool fits = task.width / kPacketSize<T> <= int64_t{kRowThreads} * kMostPacks;
  if (fits && HasPackedRows<T>(task) && LaunchForm<T>(task, stream)) return;
  const int team = TeamFor(task.width, 4);
  RowNormFromMemory<T><<<BlocksFor(task.rows, team), kRowThreads, 0, stream>>>(task, team);
}

}  // namespace

cudaError_t LaunchRowNorm(const RowNormTask& task, cudaStream_t stream) {
  if (task.rows == 0 || task.width == 0) return cudaSuccess;
  if (task.bf16) {
    LaunchRowNormOf<BF16>(task, stream);
  } else {
    LaunchRowNormOf<float>(task, stream);
  }
  return cudaGetLastError();
}

}  // namespace ltx::cuda
