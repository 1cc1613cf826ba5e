#include <algorithm>

#include "kernels/cuda/conv_gather.h"
#include "kernels/cuda/element.cuh"
#include "kernels/cuda/pad_source.cuh"

// An implicit matrix product: rows are output positions, columns output channels, and the sum runs
// over (tap, channel). A block gathers slices of both operands into shared memory, the next slice
// already on its way in registers while it multiplies.

namespace ltx::cuda {
namespace {

constexpr int kThreads = 256;
/// Elements of the sum per slice.
constexpr int kDepth = 16;
/// Positions per block and per thread.
constexpr int kRows = 128;
constexpr int kThreadRows = 8;
constexpr int kRowGroups = kRows / kThreadRows;
constexpr int kColumnGroups = kThreads / kRowGroups;
/// Keeps the columns of a slice in different banks when it is written.
constexpr int kPad = 4;

struct Axis {
  int input;
  int output;
  int kernel;
  int stride;
  int dilation;
  int pad_before;
  PadMode pad_mode;
};

struct Arguments {
  const void* x;
  const void* weight;
  const float* bias;
  const void* residual;
  void* y;
  int64_t rows;  // batch x output positions of one phase
  int channels;
  int out_channels;
  Axis axes[3];
  Activation activation;
  int phases;
  int crop;
  int phase_taps;
  int phase_output;
};

/// Where a row of the product lies.
struct Place {
  int64_t batch;
  int t;
  int h;
  int w;
};

__device__ __forceinline__ Place PlaceRow(const Arguments& arguments, int64_t row) {
  Place place;
  place.w = static_cast<int>(row % arguments.axes[2].output);
  row /= arguments.axes[2].output;
  place.h = static_cast<int>(row % arguments.axes[1].output);
  row /= arguments.axes[1].output;
  place.t = static_cast<int>(row % arguments.axes[0].output);
  place.batch = row / arguments.axes[0].output;
  return place;
}

/// kCount channels of the input that `tap` of the row at `place` reads, as floats.
template <typename T, int kCount>
__device__ __forceinline__ void GatherInput(const Arguments& arguments, const Place& place, int tap,
                                            int channel, float* values) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i] = 0.0f;
  const Axis* axes = arguments.axes;
  const int kw = tap % axes[2].kernel;
  const int rest = tap / axes[2].kernel;
  const int kh = rest % axes[1].kernel;
  const int kt = rest / axes[1].kernel;
  const int t = PadSource(place.t * axes[0].stride + kt * axes[0].dilation - axes[0].pad_before,
                          axes[0].input, axes[0].pad_mode);
  const int h = PadSource(place.h * axes[1].stride + kh * axes[1].dilation - axes[1].pad_before,
                          axes[1].input, axes[1].pad_mode);
  const int w = PadSource(place.w * axes[2].stride + kw * axes[2].dilation - axes[2].pad_before,
                          axes[2].input, axes[2].pad_mode);
  if ((t | h | w) < 0) return;
  const int64_t position =
      ((place.batch * axes[0].input + t) * axes[1].input + h) * axes[2].input + w;
  const T* source = static_cast<const T*>(arguments.x) + position * arguments.channels + channel;
  if constexpr (kCount == 1) {
    values[0] = ToFloat(*source);
  } else {
    const auto packet = *reinterpret_cast<const Packet<T, kCount>*>(source);
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = ToFloat(packet.values[i]);
  }
}

/// kCount channels of one tap of one output channel.
template <typename T, int kCount>
__device__ __forceinline__ void GatherWeight(const Arguments& arguments, int weight_tap, int column,
                                             int channel, float* values) {
  const T* source =
      static_cast<const T*>(arguments.weight) +
      (static_cast<int64_t>(weight_tap) * arguments.out_channels + column) * arguments.channels +
      channel;
  if constexpr (kCount == 1) {
    values[0] = ToFloat(*source);
  } else {
    const auto packet = *reinterpret_cast<const Packet<T, kCount>*>(source);
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = ToFloat(packet.values[i]);
  }
}

/// The part of a block's operands that lies in shared memory, transposed: sums of products read a
/// row of each.
template <int kColumns>
struct Slices {
  float rows[2][kDepth][kRows + kPad];
  float columns[2][kDepth][kColumns + kPad];
};

/// Which slice elements a thread fetches: kCount neighbouring channels of every kStep-th row and
/// column.
template <typename T, int kColumns, int kCount>
class SliceFetcher {
 public:
  __device__ __forceinline__ SliceFetcher(const Arguments& arguments, int64_t first_row,
                                          int first_column, int phase, int depth)
      : arguments_(arguments),
        depth_(depth),
        phase_(phase),
        line_(threadIdx.x / kPerLine),
        offset_(threadIdx.x % kPerLine * kCount),
        column_(first_column + line_) {
#pragma unroll
    for (int i = 0; i < kRowLoads; ++i) {
      places_[i] = PlaceRow(arguments, min(first_row + line_ + i * kStep, arguments.rows - 1));
    }
  }

  /// Starts to load the slice that begins at element `begin` of the sums; zeros beyond their end.
  __device__ __forceinline__ void Fetch(int begin) {
    const int at = begin + offset_;
    const bool inside = at < depth_;
    const int tap = inside ? at / arguments_.channels : 0;
    const int channel = at - tap * arguments_.channels;
#pragma unroll
    for (int i = 0; i < kRowLoads; ++i) {
      if (inside) {
        GatherInput<T, kCount>(arguments_, places_[i], tap, channel, rows_[i]);
      } else {
        Clear(rows_[i]);
      }
    }
#pragma unroll
    for (int i = 0; i < kColumnLoads; ++i) {
      const int column = column_ + i * kStep;
      if (inside && line_ + i * kStep < kColumns && column < arguments_.out_channels) {
        GatherWeight<T, kCount>(arguments_, phase_ + tap * arguments_.phases, column, channel,
                                columns_[i]);
      } else {
        Clear(columns_[i]);
      }
    }
  }

  __device__ __forceinline__ void Put(Slices<kColumns>& slices, int buffer) const {
#pragma unroll
    for (int i = 0; i < kRowLoads; ++i) {
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        slices.rows[buffer][offset_ + j][line_ + i * kStep] = rows_[i][j];
      }
    }
#pragma unroll
    for (int i = 0; i < kColumnLoads; ++i) {
      if (line_ + i * kStep >= kColumns) continue;
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        slices.columns[buffer][offset_ + j][line_ + i * kStep] = columns_[i][j];
      }
    }
  }

 private:
  static constexpr int kPerLine = kDepth / kCount;  // threads that fetch a row of a slice
  static constexpr int kStep = kThreads / kPerLine;
  static constexpr int kRowLoads = kRows / kStep;
  static constexpr int kColumnLoads = (kColumns + kStep - 1) / kStep;

  static __device__ __forceinline__ void Clear(float (&values)[kCount]) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = 0.0f;
  }

  const Arguments& arguments_;
  const int depth_;
  const int phase_;
  const int line_;
  const int offset_;
  const int column_;
  Place places_[kRowLoads];
  float rows_[kRowLoads][kCount];
  float columns_[kColumnLoads][kCount];
};

/// Adds the products of one slice to a thread's sums.
template <int kColumns, int kThreadColumns>
__device__ __forceinline__ void MultiplySlice(const Slices<kColumns>& slices, int buffer,
                                              int first_row, int first_column,
                                              float (&sums)[kThreadRows][kThreadColumns]) {
#pragma unroll
  for (int k = 0; k < kDepth; ++k) {
    float rows[kThreadRows];
    float columns[kThreadColumns];
#pragma unroll
    for (int i = 0; i < kThreadRows; ++i) rows[i] = slices.rows[buffer][k][first_row + i];
#pragma unroll
    for (int j = 0; j < kThreadColumns; ++j) {
      columns[j] = slices.columns[buffer][k][first_column + j];
    }
#pragma unroll
    for (int i = 0; i < kThreadRows; ++i) {
#pragma unroll
      for (int j = 0; j < kThreadColumns; ++j) sums[i][j] += rows[i] * columns[j];
    }
  }
}

/// Index in the output of a row of the product, or -1 if a transposed convolution cuts it off.
__device__ __forceinline__ int64_t OutputPosition(const Arguments& arguments, int64_t row,
                                                  int phase) {
  if (arguments.phases == 1) return row;
  const int64_t batch = row / arguments.axes[2].output;
  const int64_t at =
      (row - batch * arguments.axes[2].output) * arguments.phases + phase - arguments.crop;
  if (at < 0 || at >= arguments.phase_output) return -1;
  return batch * arguments.phase_output + at;
}

/// Adds bias and residual to a thread's sums, activates, rounds and stores them.
template <typename T, int kThreadColumns>
__device__ __forceinline__ void StoreSums(const Arguments& arguments, int64_t first_row,
                                          int first_column, int phase,
                                          const float (&sums)[kThreadRows][kThreadColumns]) {
  const auto* residual = static_cast<const T*>(arguments.residual);
  auto* y = static_cast<T*>(arguments.y);
#pragma unroll
  for (int i = 0; i < kThreadRows; ++i) {
    if (first_row + i >= arguments.rows) break;
    const int64_t position = OutputPosition(arguments, first_row + i, phase);
    if (position < 0) continue;
#pragma unroll
    for (int j = 0; j < kThreadColumns; ++j) {
      const int column = first_column + j;
      if (column >= arguments.out_channels) continue;
      const int64_t at = position * arguments.out_channels + column;
      float value = sums[i][j];
      if (arguments.bias != nullptr) value += arguments.bias[column];
      if (residual != nullptr) value += ToFloat(residual[at]);
      y[at] = FromFloat<T>(ActivateAs<T>(value, arguments.activation));
    }
  }
}

/// kColumns channels per block. kCount: neighbouring channels that are read together, 4 if the
/// channels are a multiple of 4.
template <typename T, int kColumns, int kCount>
__global__ void __launch_bounds__(kThreads)
    ConvGather(const __grid_constant__ Arguments arguments) {
  constexpr int kThreadColumns = kColumns / kColumnGroups;
  __shared__ alignas(16) Slices<kColumns> slices;
  const int phase = blockIdx.z;
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) * kRows;
  const int first_column = blockIdx.y * kColumns;
  // Taps of this phase: a transposed convolution's last ones may be missing.
  const int kernel_taps =
      arguments.axes[0].kernel * arguments.axes[1].kernel * arguments.axes[2].kernel;
  const int taps = arguments.phases == 1
                       ? kernel_taps
                       : (arguments.phase_taps - phase + arguments.phases - 1) / arguments.phases;
  const int depth = taps * arguments.channels;

  SliceFetcher<T, kColumns, kCount> fetcher(arguments, first_row, first_column, phase, depth);
  const int thread_row = threadIdx.x / kColumnGroups * kThreadRows;
  const int thread_column = threadIdx.x % kColumnGroups * kThreadColumns;
  float sums[kThreadRows][kThreadColumns] = {};
  if (depth > 0) {
    fetcher.Fetch(0);
    fetcher.Put(slices, 0);
  }
  __syncthreads();
  for (int begin = 0, buffer = 0; begin < depth; begin += kDepth, buffer ^= 1) {
    const bool more = begin + kDepth < depth;
    if (more) fetcher.Fetch(begin + kDepth);
    MultiplySlice(slices, buffer, thread_row, thread_column, sums);
    if (more) fetcher.Put(slices, buffer ^ 1);
    __syncthreads();
  }
  StoreSums<T>(arguments, first_row + thread_row, first_column + thread_column, phase, sums);
}

Axis ToAxis(const ConvAxis& axis) {
  return {static_cast<int>(axis.input),
          static_cast<int>(axis.output),
          static_cast<int>(axis.kernel),
          static_cast<int>(axis.stride),
          static_cast<int>(axis.dilation),
          static_cast<int>(axis.pad_before),
          axis.pad_mode};
}

template <typename T, int kColumns>
cudaError_t LaunchOf(const Arguments& arguments, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((arguments.rows + kRows - 1) / kRows),
                  static_cast<unsigned>((arguments.out_channels + kColumns - 1) / kColumns),
                  static_cast<unsigned>(arguments.phases));
  const bool packed =
      arguments.channels % 4 == 0 && IsAligned16(arguments.x) && IsAligned16(arguments.weight);
  if (packed) {
    ConvGather<T, kColumns, 4><<<grid, kThreads, 0, stream>>>(arguments);
  } else {
    ConvGather<T, kColumns, 1><<<grid, kThreads, 0, stream>>>(arguments);
  }
  return cudaGetLastError();
}

template <typename T>
cudaError_t LaunchOf(const Arguments& arguments, cudaStream_t stream) {
  // A narrow block multiplies fewer zeros where few channels are left; on full ones widths of 64
  // and 128 are about as fast, and 96 is slower.
  const int rest = arguments.out_channels % 128;
  if (arguments.out_channels <= 32) return LaunchOf<T, 32>(arguments, stream);
  if (arguments.out_channels > 64 && arguments.out_channels <= 96) {
    return LaunchOf<T, 96>(arguments, stream);
  }
  if (rest > 0 && rest <= 64) return LaunchOf<T, 64>(arguments, stream);
  return LaunchOf<T, 128>(arguments, stream);
}

}  // namespace

cudaError_t LaunchConvGather(const ConvGatherTask& task, cudaStream_t stream) {
  Arguments arguments{};
  arguments.x = task.x;
  arguments.weight = task.weight;
  arguments.bias = task.bias;
  arguments.residual = task.residual;
  arguments.y = task.y;
  arguments.rows = task.batch * task.axes[0].output * task.axes[1].output * task.axes[2].output;
  arguments.channels = static_cast<int>(task.channels);
  arguments.out_channels = static_cast<int>(task.out_channels);
  for (int i = 0; i < 3; ++i) arguments.axes[i] = ToAxis(task.axes[i]);
  arguments.activation = task.activation;
  arguments.phases = static_cast<int>(task.phases);
  arguments.crop = static_cast<int>(task.crop);
  arguments.phase_taps = static_cast<int>(task.phase_taps);
  arguments.phase_output = static_cast<int>(task.phase_output);
  if (arguments.rows == 0 || arguments.out_channels == 0) return cudaSuccess;
  return task.bf16 ? LaunchOf<BF16>(arguments, stream) : LaunchOf<float>(arguments, stream);
}

}  // namespace ltx::cuda
