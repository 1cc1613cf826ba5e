#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/map.cuh"

// Compiled without contraction to fused multiply-adds: results round as the formulas are written,
// as on every other device.

namespace ltx::cuda {
namespace {

/// Calls f(v, row, channel) for element `index` of rows of `channels`.
template <typename Function>
struct ByChannel {
  int64_t channels;
  Function f;
  __device__ float operator()(const float* v, int64_t index) const {
    const Division at = Divide(index, channels);
    return f(v, at.quotient, at.remainder);
  }
};

struct LeakyReluFn {
  float slope;
  __device__ float operator()(const float* v, int64_t) const {
    return v[0] > 0.0f ? v[0] : slope * v[0];
  }
};

struct ClampFn {
  float low;
  float high;
  __device__ float operator()(const float* v, int64_t) const {
    if (v[0] < low) return low;
    return v[0] > high ? high : v[0];
  }
};

struct SoftCapFn {
  float cap;
  __device__ float operator()(const float* v, int64_t) const { return cap * tanhf(v[0] / cap); }
};

struct LogFloorFn {
  float floor;
  __device__ float operator()(const float* v, int64_t) const {
    return logf(v[0] < floor ? floor : v[0]);
  }
};

struct ScaleFn {
  float factor;
  __device__ float operator()(const float* v, int64_t) const { return factor * v[0]; }
};

struct AddFn {
  __device__ float operator()(const float* v, int64_t) const { return v[0] + v[1]; }
};

template <typename T>
struct GeluTanhMulFn {
  __device__ float operator()(const float* v, int64_t) const {
    return ToFloat(FromFloat<T>(GeluTanh(v[0]))) * v[1];
  }
};

template <Activation kActivation>
struct ApplyFn {
  __device__ float operator()(const float* v, int64_t) const { return Activate<kActivation>(v[0]); }
};

template <typename T>
struct ScaleShiftFn {
  const T* scale;
  const T* shift;
  __device__ float operator()(const float* v, int64_t, int64_t channel) const {
    float value = v[0];
    if (scale != nullptr) value = value * ToFloat(scale[channel]);
    if (shift != nullptr) value = value + ToFloat(shift[channel]);
    return value;
  }
};

template <typename T>
struct NormalizeFn {
  const T* mean;
  const T* std;
  __device__ float operator()(const float* v, int64_t, int64_t channel) const {
    return (v[0] - ToFloat(mean[channel])) / ToFloat(std[channel]);
  }
};

template <typename T>
struct SpatialNoiseFn {
  const T* draw;
  const T* channel_scale;
  int64_t positions;
  __device__ float operator()(const float* v, int64_t row, int64_t channel) const {
    return v[0] + ToFloat(draw[Divide(row, positions).remainder]) * ToFloat(channel_scale[channel]);
  }
};

/// Reads through pointers of its own, so it maps over no inputs.
template <typename T, typename Function>
__global__ void GenerateKernel(T* y, int64_t count, Function f) {
  const int64_t i = int64_t{blockIdx.x} * kMapThreads + threadIdx.x;
  if (i < count) y[i] = FromFloat<T>(f(i));
}

template <typename T, typename Function>
void LaunchGenerate(T* y, int64_t count, const Function& f, cudaStream_t stream) {
  if (count == 0) return;
  const auto blocks = static_cast<unsigned>((count + kMapThreads - 1) / kMapThreads);
  GenerateKernel<<<blocks, kMapThreads, 0, stream>>>(y, count, f);
}

template <typename T>
struct MagnitudeFn {
  const T* x;
  int64_t bins;
  __device__ float operator()(int64_t index) const {
    const Division at = Divide(index, bins);
    const T* row = x + at.quotient * 2 * bins;
    const float real = ToFloat(row[at.remainder]);
    const float imaginary = ToFloat(row[bins + at.remainder]);
    return sqrtf(real * real + imaginary * imaginary);
  }
};

template <typename T>
struct OuterSumFn {
  const T* a;
  int64_t a_pitch;
  const T* b;
  int64_t inner;
  int64_t width;
  __device__ float operator()(int64_t index) const {
    const Division at = Divide(index, width);
    const Division row = Divide(at.quotient, inner);
    return ToFloat(a[row.quotient * a_pitch + at.remainder]) +
           ToFloat(b[row.remainder * width + at.remainder]);
  }
};

template <typename T, Activation kActivation>
struct BiasActivationFn {
  const float* sums;
  const T* bias;
  int64_t channels;
  __device__ float operator()(int64_t index) const {
    float value = sums[index];
    if (bias != nullptr) value = value + ToFloat(bias[Divide(index, channels).remainder]);
    return Activate<kActivation>(value);
  }
};

template <typename T, typename Function>
void LaunchByChannel(const void* x, void* y, int64_t rows, int64_t channels, const Function& f,
                     cudaStream_t stream) {
  LaunchMap(MapInputs<T, 1>{{static_cast<const T*>(x)}}, static_cast<T*>(y), rows * channels,
            ByChannel<Function>{channels, f}, stream);
}

}  // namespace

void LaunchApply(DType dtype, Activation activation, const void* x, void* y, int64_t count,
                 cudaStream_t stream) {
  DispatchActivation(activation, [&](auto constant) {
    LaunchMap(dtype, x, y, count, ApplyFn<decltype(constant)::value>{}, stream);
  });
}

void LaunchLeakyRelu(DType dtype, float slope, const void* x, void* y, int64_t count,
                     cudaStream_t stream) {
  LaunchMap(dtype, x, y, count, LeakyReluFn{slope}, stream);
}

void LaunchClamp(DType dtype, float low, float high, const void* x, void* y, int64_t count,
                 cudaStream_t stream) {
  LaunchMap(dtype, x, y, count, ClampFn{low, high}, stream);
}

void LaunchSoftCap(DType dtype, float cap, const void* x, void* y, int64_t count,
                   cudaStream_t stream) {
  LaunchMap(dtype, x, y, count, SoftCapFn{cap}, stream);
}

void LaunchLogFloor(DType dtype, float floor, const void* x, void* y, int64_t count,
                    cudaStream_t stream) {
  LaunchMap(dtype, x, y, count, LogFloorFn{floor}, stream);
}

void LaunchScale(DType dtype, float factor, const void* x, void* y, int64_t count,
                 cudaStream_t stream) {
  LaunchMap(dtype, x, y, count, ScaleFn{factor}, stream);
}

void LaunchAdd(DType dtype, const void* a, const void* b, void* y, int64_t count,
               cudaStream_t stream) {
  LaunchMap(dtype, a, b, y, count, AddFn{}, stream);
}

void LaunchGeluTanhMul(DType dtype, const void* gate, const void* up, void* y, int64_t count,
                       cudaStream_t stream) {
  DispatchElement(dtype, [&](auto zero) {
    using T = decltype(zero);
    LaunchMap(MapInputs<T, 2>{{static_cast<const T*>(gate), static_cast<const T*>(up)}},
              static_cast<T*>(y), count, GeluTanhMulFn<T>{}, stream);
  });
}

void LaunchMagnitude(DType dtype, const void* x, void* y, int64_t rows, int64_t bins,
                     cudaStream_t stream) {
  DispatchElement(dtype, [&](auto zero) {
    using T = decltype(zero);
    LaunchGenerate(static_cast<T*>(y), rows * bins, MagnitudeFn<T>{static_cast<const T*>(x), bins},
                   stream);
  });
}

void LaunchOuterSum(DType dtype, const void* a, int64_t a_pitch, const void* b, void* y,
                    int64_t outer, int64_t inner, int64_t width, cudaStream_t stream) {
  DispatchElement(dtype, [&](auto zero) {
    using T = decltype(zero);
    LaunchGenerate(
        static_cast<T*>(y), outer * inner * width,
        OuterSumFn<T>{static_cast<const T*>(a), a_pitch, static_cast<const T*>(b), inner, width},
        stream);
  });
}

void LaunchScaleShiftChannels(DType dtype, const void* x, const void* scale, const void* shift,
                              void* y, int64_t rows, int64_t channels, cudaStream_t stream) {
  DispatchElement(dtype, [&](auto zero) {
    using T = decltype(zero);
    LaunchByChannel<T>(x, y, rows, channels,
                       ScaleShiftFn<T>{static_cast<const T*>(scale), static_cast<const T*>(shift)},
                       stream);
  });
}

void LaunchNormalizeChannels(DType dtype, const void* x, const void* mean, const void* std, void* y,
                             int64_t rows, int64_t channels, cudaStream_t stream) {
  DispatchElement(dtype, [&](auto zero) {
    using T = decltype(zero);
    LaunchByChannel<T>(x, y, rows, channels,
                       NormalizeFn<T>{static_cast<const T*>(mean), static_cast<const T*>(std)},
                       stream);
  });
}

void LaunchAddSpatialNoise(DType dtype, const void* x, const void* draw, const void* channel_scale,
                           void* y, int64_t rows, int64_t positions, int64_t channels,
                           cudaStream_t stream) {
  DispatchElement(dtype, [&](auto zero) {
    using T = decltype(zero);
    LaunchByChannel<T>(x, y, rows, channels,
                       SpatialNoiseFn<T>{static_cast<const T*>(draw),
                                         static_cast<const T*>(channel_scale), positions},
                       stream);
  });
}

void LaunchBiasActivation(DType dtype, Activation activation, const float* sums, const void* bias,
                          void* y, int64_t rows, int64_t channels, cudaStream_t stream) {
  DispatchElement(dtype, [&](auto zero) {
    using T = decltype(zero);
    DispatchActivation(activation, [&](auto constant) {
      LaunchGenerate(static_cast<T*>(y), rows * channels,
                     BiasActivationFn<T, decltype(constant)::value>{
                         sums, static_cast<const T*>(bias), channels},
                     stream);
    });
  });
}

}  // namespace ltx::cuda
