#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/fast_math.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/row_lookup.h"
#include "kernels/cpu/statistics.h"
#include "kernels/cpu/vector.h"
#include "kernels/op_check.h"
#include "kernels/operand_check.h"
#include "kernels/status_macros.h"

namespace ltx::cpu {
namespace {

/// Calls body(row) for the rows of x's innermost axis.
template <typename Body>
void ForEachRow(int threads, int64_t grain, const Tensor& x, const Body& body) {
  ParallelFor(threads, x.shape().num_rows(), RowGrain(grain, x.dim(-1)),
              [&](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) body(row);
              });
}

int64_t GrainOf(Activation activation) {
  return activation == Activation::kNone ? kCheapGrain : kCostlyGrain;
}

/// Mean and inverse standard deviation of a row, the variance from centred values.
struct RowMoments {
  float mean;
  float inverse_std;
};

template <typename T>
RowMoments MomentsOf(const T* row, int64_t count, float epsilon) {
  const auto n = static_cast<float>(count);
  const float mean = RowSum(row, count, [](Vec v) { return v; }) / n;
  const Vec centre = Broadcast(mean);
  const float squares = RowSum(row, count, [centre](Vec v) { return (v - centre) * (v - centre); });
  return {mean, 1.0f / std::sqrt(squares / n + epsilon)};
}

/// y = act((x - mean) * inverse_std * (1 + scale) + shift) row by row, with the moments that
/// moments_of(row, width) returns.
template <typename MomentsFunction>
void ModulateRows(int threads, const Tensor& x, const Tensor& y, const RowVectors& scale,
                  const RowVectors& shift, Activation activation,
                  const MomentsFunction& moments_of) {
  const int64_t width = x.dim(-1);
  const Vec one = Broadcast(1.0f);
  DispatchFloat(x.dtype(), [&](auto element) {
    using T = decltype(element);
    const RowLookup<T> scales(scale, x);
    const RowLookup<T> shifts(shift, x);
    DispatchActivation(activation, [&](auto activate) {
      ForEachRow(threads, GrainOf(activation), x, [&](int64_t row) {
        const T* source = x.data<T>() + row * width;
        T* target = y.data<T>() + row * width;
        const T* factors = scales.Row(row);
        const T* terms = shifts.Row(row);
        const RowMoments moments = moments_of(source, width);
        const Vec mean = Broadcast(moments.mean);
        const Vec inverse = Broadcast(moments.inverse_std);
        ForEachGroup(width, [&](int64_t i, auto lanes) {
          const Vec normed = (lanes.Load(source + i) - mean) * inverse;
          lanes.Store(target + i,
                      activate(normed * (one + lanes.Load(factors + i)) + lanes.Load(terms + i)));
        });
      });
    });
  });
}

/// y = act(x * rsqrt(mean of x^2 + epsilon) * (base + weight)) row by row; without a weight that
/// factor is 1.
void RmsNormRows(int threads, const Tensor& x, const Tensor& weight, float base, float epsilon,
                 Activation activation, const Columns& y) {
  const int64_t width = x.dim(-1);
  const Vec base_lanes = Broadcast(base);
  DispatchFloat(x.dtype(), [&](auto element) {
    using T = decltype(element);
    const T* weights = weight.data<T>();
    DispatchActivation(activation, [&](auto activate) {
      ForEachRow(threads, GrainOf(activation), x, [&](int64_t row) {
        const T* source = x.data<T>() + row * width;
        T* target = y.data<T>() + row * y.pitch();
        const Vec inverse = Broadcast(InverseRms(source, width, epsilon));
        ForEachGroup(width, [&](int64_t i, auto lanes) {
          Vec v = lanes.Load(source + i) * inverse;
          if (weights != nullptr) v = v * (base_lanes + lanes.Load(weights + i));
          lanes.Store(target + i, activate(v));
        });
      });
    });
  });
}

}  // namespace

absl::StatusOr<Tensor> CpuDevice::RmsNorm(const Tensor& x, const Tensor& weight, float epsilon,
                                          bool one_plus_weight, Activation activation) {
  LTX_RETURN_IF_ERROR(CheckFloat("RmsNorm", x, 1));
  LTX_RETURN_IF_ERROR(CheckOptionalVector("RmsNorm", x, weight, x.dim(-1)));
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(x.shape(), x.dtype(), MemoryOwner::kActivations));
  RmsNormRows(threads_, x, weight, one_plus_weight ? 1.0f : 0.0f, epsilon, activation, y);
  return y;
}

absl::Status CpuDevice::RmsNormInto(const Tensor& x, float epsilon, Columns* columns) {
  LTX_RETURN_IF_ERROR(CheckRmsNormInto(x, *columns));
  RmsNormRows(threads_, x, Tensor(), 0.0f, epsilon, Activation::kNone, *columns);
  return absl::OkStatus();
}

absl::StatusOr<Tensor> CpuDevice::LayerNormModulate(const Tensor& x, float epsilon,
                                                    const RowVectors& scale,
                                                    const RowVectors& shift) {
  LTX_RETURN_IF_ERROR(CheckModulation("LayerNormModulate", x, scale, shift));
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(x.shape(), x.dtype(), MemoryOwner::kActivations));
  ModulateRows(
      threads_, x, y, scale, shift, Activation::kNone,
      [epsilon](const auto* row, int64_t width) { return MomentsOf(row, width, epsilon); });
  return y;
}

absl::StatusOr<Tensor> CpuDevice::Modulate(const Tensor& x, const RowVectors& scale,
                                           const RowVectors& shift, Activation activation) {
  LTX_RETURN_IF_ERROR(CheckModulation("Modulate", x, scale, shift));
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(x.shape(), x.dtype(), MemoryOwner::kActivations));
  // Subtracting 0 and multiplying by 1 are exact.
  ModulateRows(threads_, x, y, scale, shift, activation, [](const auto*, int64_t) {
    return RowMoments{0.0f, 1.0f};
  });
  return y;
}

absl::StatusOr<std::vector<Tensor>> CpuDevice::ResidualNorm(
    Tensor* state, const ResidualUpdate& update, float epsilon,
    absl::Span<const NormReading> readings) {
  LTX_RETURN_IF_ERROR(CheckResidualNorm(*state, update, readings));
  std::vector<Tensor> results;
  for (size_t i = 0; i < readings.size(); ++i) {
    LTX_ASSIGN_OR_RETURN(Tensor result,
                         Allocate(state->shape(), state->dtype(), MemoryOwner::kActivations));
    results.push_back(std::move(result));
  }
  const int64_t width = state->dim(-1);
  DispatchFloat(state->dtype(), [&](auto element) {
    using T = decltype(element);
    struct Reading {
      std::optional<RowLookup<T>> scale;
      std::optional<RowLookup<T>> shift;
      T* target;
    };
    std::vector<Reading> rows_of;
    for (size_t i = 0; i < readings.size(); ++i) {
      Reading reading;
      reading.target = results[i].data<T>();
      if (readings[i].scale.rows.defined()) {
        reading.scale.emplace(readings[i].scale, *state);
        reading.shift.emplace(readings[i].shift, *state);
      }
      rows_of.push_back(reading);
    }
    std::optional<RowLookup<T>> gates;
    if (update.gate.rows.defined()) gates.emplace(update.gate, update.value);
    const int64_t first = update.first_batch * state->dim(1);
    const int64_t last = update.value.defined() ? first + update.value.shape().num_rows() : first;
    const Vec one = Broadcast(1.0f);
    ForEachRow(threads_, kCheapGrain, *state, [&](int64_t row) {
      T* const x = state->data<T>() + row * width;
      if (row >= first && row < last) {
        const T* added = update.value.data<T>() + (row - first) * width;
        const T* factors = gates.has_value() ? gates->Row(row - first) : nullptr;
        ForEachGroup(width, [&](int64_t i, auto lanes) {
          Vec term = lanes.Load(added + i);
          if (factors != nullptr) term = term * lanes.Load(factors + i);
          lanes.Store(x + i, lanes.Load(x + i) + term);
        });
      }
      if (rows_of.empty()) return;
      const Vec inverse = Broadcast(InverseRms(x, width, epsilon));
      for (const Reading& reading : rows_of) {
        T* const target = reading.target + row * width;
        if (!reading.scale.has_value()) {
          ForEachGroup(width, [&](int64_t i, auto lanes) {
            lanes.Store(target + i, lanes.Load(x + i) * inverse);
          });
          continue;
        }
        const T* factors = reading.scale->Row(row);
        const T* terms = reading.shift->Row(row);
        ForEachGroup(width, [&](int64_t i, auto lanes) {
          lanes.Store(target + i, lanes.Load(x + i) * inverse * (one + lanes.Load(factors + i)) +
                                      lanes.Load(terms + i));
        });
      }
    });
  });
  return results;
}

}  // namespace ltx::cpu
