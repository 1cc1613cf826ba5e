#include <cmath>

#include "absl/status/status.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/fast_math.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/vector.h"
#include "kernels/operand_check.h"
#include "kernels/status_macros.h"

namespace ltx::cpu {
namespace {

/// y = f(x), element by element.
template <typename Function>
void Map(int threads, int64_t grain, const Tensor& x, const Tensor& y, const Function& f) {
  DispatchFloat(x.dtype(), [&](auto element) {
    using T = decltype(element);
    const T* source = x.data<T>();
    T* target = y.data<T>();
    ParallelFor(threads, x.num_elements(), grain, [&](int64_t begin, int64_t end) {
      ForEachGroup(end - begin, [&](int64_t i, auto lanes) {
        lanes.Store(target + begin + i, f(lanes.Load(source + begin + i)));
      });
    });
  });
}

/// y = f(a, b), element by element.
template <typename Function>
void Map(int threads, int64_t grain, const Tensor& a, const Tensor& b, const Tensor& y,
         const Function& f) {
  DispatchFloat(a.dtype(), [&](auto element) {
    using T = decltype(element);
    const T* left = a.data<T>();
    const T* right = b.data<T>();
    T* target = y.data<T>();
    ParallelFor(threads, a.num_elements(), grain, [&](int64_t begin, int64_t end) {
      ForEachGroup(end - begin, [&](int64_t i, auto lanes) {
        lanes.Store(target + begin + i,
                    f(lanes.Load(left + begin + i), lanes.Load(right + begin + i)));
      });
    });
  });
}

/// Calls body(row, channel, lanes) for every group of channels of every row of x.
template <typename Body>
void ForEachChannelGroup(int threads, const Tensor& x, const Body& body) {
  const int64_t channels = x.dim(-1);
  ParallelFor(threads, x.shape().num_rows(), RowGrain(kCheapGrain, channels),
              [&](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) {
                  ForEachGroup(channels, [&](int64_t c, auto lanes) { body(row, c, lanes); });
                }
              });
}

}  // namespace

absl::StatusOr<Tensor> CpuDevice::Apply(const Tensor& x, Activation activation) {
  LTX_RETURN_IF_ERROR(CheckFloat("Apply", x));
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(x.shape(), x.dtype(), MemoryOwner::kActivations));
  DispatchActivation(activation, [&](auto f) { Map(threads_, kCostlyGrain, x, y, f); });
  return y;
}

absl::StatusOr<Tensor> CpuDevice::LeakyRelu(const Tensor& x, float slope) {
  LTX_RETURN_IF_ERROR(CheckFloat("LeakyRelu", x));
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(x.shape(), x.dtype(), MemoryOwner::kActivations));
  Map(threads_, kCheapGrain, x, y, [factor = Broadcast(slope)](Vec v) {
    return Select(_mm256_cmp_ps(v, Zero(), _CMP_GT_OQ), v, factor * v);
  });
  return y;
}

absl::StatusOr<Tensor> CpuDevice::Clamp(const Tensor& x, float low, float high) {
  LTX_RETURN_IF_ERROR(CheckFloat("Clamp", x));
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(x.shape(), x.dtype(), MemoryOwner::kActivations));
  // The operand order lets NaN through, so that AllFinite still sees it.
  Map(threads_, kCheapGrain, x, y, [lower = Broadcast(low), upper = Broadcast(high)](Vec v) {
    return _mm256_min_ps(upper, _mm256_max_ps(lower, v));
  });
  return y;
}

absl::StatusOr<Tensor> CpuDevice::SoftCap(const Tensor& x, float cap) {
  LTX_RETURN_IF_ERROR(CheckFloat("SoftCap", x));
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(x.shape(), x.dtype(), MemoryOwner::kActivations));
  Map(threads_, kCostlyGrain, x, y,
      [limit = Broadcast(cap)](Vec v) { return limit * Tanh(v / limit); });
  return y;
}

absl::StatusOr<Tensor> CpuDevice::LogFloor(const Tensor& x, float floor) {
  LTX_RETURN_IF_ERROR(CheckFloat("LogFloor", x));
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(x.shape(), x.dtype(), MemoryOwner::kActivations));
  // The C library's logarithm: only mel spectra pass here, a few ten thousand values.
  Map(threads_, kCostlyGrain, x, y, [least = Broadcast(floor)](Vec v) {
    alignas(32) float values[kLanes];
    _mm256_store_ps(values, _mm256_max_ps(least, v));
    for (float& value : values) value = std::log(value);
    return _mm256_load_ps(values);
  });
  return y;
}

absl::StatusOr<Tensor> CpuDevice::Magnitude(const Tensor& x) {
  LTX_ASSIGN_OR_RETURN(const Shape shape, MagnitudeShape(x));
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(shape, x.dtype(), MemoryOwner::kActivations));
  const int64_t bins = y.dim(-1);
  DispatchFloat(x.dtype(), [&](auto element) {
    using T = decltype(element);
    ForEachChannelGroup(threads_, y, [&](int64_t row, int64_t k, auto lanes) {
      const Vec real = lanes.Load(x.data<T>() + row * 2 * bins + k);
      const Vec imaginary = lanes.Load(x.data<T>() + (row * 2 + 1) * bins + k);
      lanes.Store(y.data<T>() + row * bins + k,
                  _mm256_sqrt_ps(real * real + imaginary * imaginary));
    });
  });
  return y;
}

absl::StatusOr<Tensor> CpuDevice::Add(const Tensor& a, const Tensor& b) {
  LTX_RETURN_IF_ERROR(CheckSame("Add", a, b));
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(a.shape(), a.dtype(), MemoryOwner::kActivations));
  Map(threads_, kCheapGrain, a, b, y, [](Vec left, Vec right) { return left + right; });
  return y;
}

absl::StatusOr<Tensor> CpuDevice::OuterSum(const Columns& a, const Tensor& b) {
  LTX_RETURN_IF_ERROR(CheckOuterSum(a, b));
  const int64_t rows = b.dim(0);
  const int64_t width = b.dim(1);
  const int64_t sums = a.tensor.dim(0) * rows;
  LTX_ASSIGN_OR_RETURN(
      Tensor sum, Allocate({a.tensor.dim(0), rows, width}, b.dtype(), MemoryOwner::kActivations));
  DispatchFloat(b.dtype(), [&](auto element) {
    using T = decltype(element);
    ParallelFor(threads_, sums, RowGrain(kCheapGrain, width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* left = a.data<T>() + row / rows * a.pitch();
        const T* right = b.data<T>() + row % rows * width;
        T* target = sum.data<T>() + row * width;
        ForEachGroup(width, [&](int64_t i, auto lanes) {
          lanes.Store(target + i, lanes.Load(left + i) + lanes.Load(right + i));
        });
      }
    });
  });
  return sum;
}

absl::StatusOr<Tensor> CpuDevice::GeluTanhMul(const Tensor& gate, const Tensor& up) {
  LTX_RETURN_IF_ERROR(CheckSame("GeluTanhMul", gate, up));
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(gate.shape(), gate.dtype(), MemoryOwner::kActivations));
  if (gate.dtype() == DType::kBF16) {
    Map(threads_, kCostlyGrain, gate, up, y,
        [](Vec g, Vec u) { return WidenBFloat16(NarrowToBFloat16(GeluTanh(g))) * u; });
  } else {
    Map(threads_, kCostlyGrain, gate, up, y, [](Vec g, Vec u) { return GeluTanh(g) * u; });
  }
  return y;
}

absl::StatusOr<Tensor> CpuDevice::Scale(const Tensor& x, float factor) {
  LTX_RETURN_IF_ERROR(CheckFloat("Scale", x));
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(x.shape(), x.dtype(), MemoryOwner::kActivations));
  Map(threads_, kCheapGrain, x, y, [f = Broadcast(factor)](Vec v) { return f * v; });
  return y;
}

absl::StatusOr<Tensor> CpuDevice::ScaleShiftChannels(const Tensor& x, const Tensor& scale,
                                                     const Tensor& shift) {
  constexpr absl::string_view kName = "ScaleShiftChannels";
  LTX_RETURN_IF_ERROR(CheckFloat(kName, x, 1));
  LTX_RETURN_IF_ERROR(CheckOptionalVector(kName, x, scale, x.dim(-1)));
  LTX_RETURN_IF_ERROR(CheckOptionalVector(kName, x, shift, x.dim(-1)));
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(x.shape(), x.dtype(), MemoryOwner::kActivations));
  const int64_t channels = x.dim(-1);
  DispatchFloat(x.dtype(), [&](auto element) {
    using T = decltype(element);
    const T* factors = scale.data<T>();
    const T* terms = shift.data<T>();
    ForEachChannelGroup(threads_, x, [&](int64_t row, int64_t c, auto lanes) {
      Vec v = lanes.Load(x.data<T>() + row * channels + c);
      if (factors != nullptr) v = v * lanes.Load(factors + c);
      if (terms != nullptr) v = v + lanes.Load(terms + c);
      lanes.Store(y.data<T>() + row * channels + c, v);
    });
  });
  return y;
}

absl::StatusOr<Tensor> CpuDevice::NormalizeChannels(const Tensor& x, const Tensor& mean,
                                                    const Tensor& std) {
  constexpr absl::string_view kName = "NormalizeChannels";
  LTX_RETURN_IF_ERROR(CheckFloat(kName, x, 1));
  LTX_RETURN_IF_ERROR(CheckVector(kName, x, mean, x.dim(-1)));
  LTX_RETURN_IF_ERROR(CheckVector(kName, x, std, x.dim(-1)));
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(x.shape(), x.dtype(), MemoryOwner::kActivations));
  const int64_t channels = x.dim(-1);
  DispatchFloat(x.dtype(), [&](auto element) {
    using T = decltype(element);
    ForEachChannelGroup(threads_, x, [&](int64_t row, int64_t c, auto lanes) {
      const Vec centred =
          lanes.Load(x.data<T>() + row * channels + c) - lanes.Load(mean.data<T>() + c);
      lanes.Store(y.data<T>() + row * channels + c, centred / lanes.Load(std.data<T>() + c));
    });
  });
  return y;
}

absl::StatusOr<Tensor> CpuDevice::AddSpatialNoise(const Tensor& x, const Tensor& draw,
                                                  const Tensor& channel_scale) {
  LTX_RETURN_IF_ERROR(CheckSpatialNoise(x, draw, channel_scale));
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(x.shape(), x.dtype(), MemoryOwner::kActivations));
  const int64_t channels = x.dim(4);
  const int64_t positions = draw.num_elements();
  DispatchFloat(x.dtype(), [&](auto element) {
    using T = decltype(element);
    ForEachChannelGroup(threads_, x, [&](int64_t row, int64_t c, auto lanes) {
      const Vec noise = Broadcast(static_cast<float>(draw.data<T>()[row % positions]));
      lanes.Store(y.data<T>() + row * channels + c,
                  lanes.Load(x.data<T>() + row * channels + c) +
                      noise * lanes.Load(channel_scale.data<T>() + c));
    });
  });
  return y;
}

}  // namespace ltx::cpu
