#include <algorithm>
#include <cmath>
#include <type_traits>

#include "absl/status/status.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/vector.h"
#include "kernels/operand_check.h"
#include "kernels/status_macros.h"

// Samplers compare states bit by bit: every step below rounds as written, nothing fuses.

namespace ltx::cpu {
namespace {

/// y[i] = f(a[i], b[i]).
template <typename Function>
void Combine(int threads, const Tensor& a, const Tensor& b, const Tensor& y, const Function& f) {
  DispatchFloat(a.dtype(), [&](auto element) {
    using T = decltype(element);
    ParallelFor(threads, a.num_elements(), kCheapGrain, [&](int64_t begin, int64_t end) {
      ForEachGroup(end - begin, [&](int64_t i, auto lanes) {
        const int64_t at = begin + i;
        lanes.Store(y.data<T>() + at,
                    f(lanes.Load(a.data<T>() + at), lanes.Load(b.data<T>() + at)));
      });
    });
  });
}

/// y[t, c] = f(a[t, c], b[t, c], per_token[t]).
template <typename Function>
void CombineTokens(int threads, const Tensor& a, const Tensor& b, const Tensor& per_token,
                   const Tensor& y, const Function& f) {
  const int64_t channels = a.dim(-1);
  DispatchFloat(a.dtype(), [&](auto element) {
    using T = decltype(element);
    ParallelFor(threads, a.shape().num_rows(), RowGrain(kCheapGrain, channels),
                [&](int64_t begin, int64_t end) {
                  for (int64_t token = begin; token < end; ++token) {
                    const float value = per_token.data<float>()[token];
                    ForEachGroup(channels, [&](int64_t c, auto lanes) {
                      const int64_t at = token * channels + c;
                      lanes.Store(y.data<T>() + at, f(lanes.Load(a.data<T>() + at),
                                                      lanes.Load(b.data<T>() + at), value));
                    });
                  }
                });
  });
}

/// The two-sided form hits a at weight 0 and b at weight 1 exactly.
Vec Interpolate(Vec a, Vec b, float weight) {
  const Vec difference = b - a;
  if (std::fabs(weight) < 0.5f) return a + Broadcast(weight) * difference;
  return b - difference * Broadcast(1.0f - weight);
}

/// Elements of a row summed at a time: a few cache lines of doubles.
constexpr int64_t kSumWidth = 64;

/// DispatchFloat with f64 among the types.
template <typename Body>
void DispatchWide(DType dtype, const Body& body) {
  if (dtype == DType::kF64) return body(double{});
  DispatchFloat(dtype, body);
}

template <typename T>
T RoundTo(double value) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return BFloat16(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

template <typename T>
void AddWeighted(double weight, const T* x, int64_t count, double* sums) {
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<T, BFloat16>) {
      sums[i] += weight * static_cast<double>(static_cast<float>(x[i]));
    } else {
      sums[i] += weight * static_cast<double>(x[i]);
    }
  }
}

}  // namespace

absl::StatusOr<Tensor> CpuDevice::Lerp(const Tensor& a, const Tensor& b, float weight) {
  LTX_RETURN_IF_ERROR(CheckSame("Lerp", a, b));
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(a.shape(), a.dtype(), MemoryOwner::kActivations));
  Combine(threads_, a, b, y, [weight](Vec from, Vec to) { return Interpolate(from, to, weight); });
  return y;
}

absl::StatusOr<Tensor> CpuDevice::LerpTokens(const Tensor& a, const Tensor& b,
                                             const Tensor& weights) {
  LTX_RETURN_IF_ERROR(CheckTokens("LerpTokens", a, b, weights));
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(a.shape(), a.dtype(), MemoryOwner::kActivations));
  CombineTokens(threads_, a, b, weights, y,
                [](Vec from, Vec to, float weight) { return Interpolate(from, to, weight); });
  return y;
}

absl::StatusOr<Tensor> CpuDevice::VelocityToDenoised(const Tensor& latent, const Tensor& velocity,
                                                     const Tensor& timesteps) {
  LTX_RETURN_IF_ERROR(CheckTokens("VelocityToDenoised", latent, velocity, timesteps));
  LTX_ASSIGN_OR_RETURN(Tensor y,
                       Allocate(latent.shape(), latent.dtype(), MemoryOwner::kActivations));
  CombineTokens(threads_, latent, velocity, timesteps, y,
                [](Vec x, Vec v, float timestep) { return x - v * Broadcast(timestep); });
  return y;
}

absl::StatusOr<Tensor> CpuDevice::BlendClean(const Tensor& denoised, const Tensor& clean,
                                             const Tensor& mask) {
  LTX_RETURN_IF_ERROR(CheckTokens("BlendClean", denoised, clean, mask));
  LTX_ASSIGN_OR_RETURN(Tensor y,
                       Allocate(denoised.shape(), denoised.dtype(), MemoryOwner::kActivations));
  CombineTokens(threads_, denoised, clean, mask, y, [](Vec x, Vec c, float weight) {
    return x * Broadcast(weight) + c * Broadcast(1.0f - weight);
  });
  return y;
}

absl::StatusOr<Tensor> CpuDevice::EulerStep(const Tensor& x, const Tensor& denoised, float sigma,
                                            float sigma_next) {
  LTX_RETURN_IF_ERROR(CheckSame("EulerStep", x, denoised));
  if (sigma == 0.0f) return OperandError("EulerStep", "sigma must not be 0", {&x, &denoised});
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(x.shape(), x.dtype(), MemoryOwner::kActivations));
  const bool narrow = x.dtype() == DType::kBF16;
  const Vec divisor = Broadcast(sigma);
  const Vec step = Broadcast(sigma_next - sigma);
  Combine(threads_, x, denoised, y, [=](Vec state, Vec target) {
    Vec velocity = (state - target) / divisor;
    if (narrow) velocity = WidenBFloat16(NarrowToBFloat16(velocity));
    return state + velocity * step;
  });
  return y;
}

absl::StatusOr<Tensor> CpuDevice::LinearCombination(float a, const Tensor& x, float b,
                                                    const Tensor& y, float c, const Tensor& z) {
  LTX_RETURN_IF_ERROR(CheckSame("LinearCombination", x, y));
  if (z.defined()) LTX_RETURN_IF_ERROR(CheckSame("LinearCombination", x, z));
  LTX_ASSIGN_OR_RETURN(Tensor result, Allocate(x.shape(), x.dtype(), MemoryOwner::kActivations));
  const Vec factor_x = Broadcast(a);
  const Vec factor_y = Broadcast(b);
  if (!z.defined()) {
    Combine(threads_, x, y, result,
            [=](Vec left, Vec right) { return factor_x * left + factor_y * right; });
    return result;
  }
  const Vec factor_z = Broadcast(c);
  DispatchFloat(x.dtype(), [&](auto element) {
    using T = decltype(element);
    ParallelFor(threads_, x.num_elements(), kCheapGrain, [&](int64_t begin, int64_t end) {
      ForEachGroup(end - begin, [&](int64_t i, auto lanes) {
        const int64_t at = begin + i;
        const Vec sum =
            factor_x * lanes.Load(x.data<T>() + at) + factor_y * lanes.Load(y.data<T>() + at);
        lanes.Store(result.data<T>() + at, sum + factor_z * lanes.Load(z.data<T>() + at));
      });
    });
  });
  return result;
}

absl::StatusOr<Tensor> CpuDevice::WeightedSum(absl::Span<const WeightedTerm> terms, DType dtype) {
  LTX_RETURN_IF_ERROR(CheckWeightedSum(terms, dtype));
  const Tensor& first = terms.front().x;
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(first.shape(), dtype, MemoryOwner::kActivations));
  const int64_t channels = first.dim(-1);
  ParallelFor(threads_, first.shape().num_rows(), RowGrain(kCheapGrain, channels),
              [&](int64_t begin, int64_t end) {
                double sums[kSumWidth];
                for (int64_t token = begin; token < end; ++token) {
                  for (int64_t c = 0; c < channels; c += kSumWidth) {
                    const int64_t width = std::min(kSumWidth, channels - c);
                    std::fill_n(sums, width, 0.0);
                    for (const WeightedTerm& term : terms) {
                      const double weight = term.weights[term.weights.size() == 1 ? 0 : token];
                      DispatchWide(term.x.dtype(), [&](auto element) {
                        AddWeighted(weight, term.x.data<decltype(element)>() + token * channels + c,
                                    width, sums);
                      });
                    }
                    DispatchWide(dtype, [&](auto element) {
                      using T = decltype(element);
                      T* const row = y.data<T>() + token * channels + c;
                      for (int64_t i = 0; i < width; ++i) row[i] = RoundTo<T>(sums[i]);
                    });
                  }
                }
              });
  return y;
}

absl::StatusOr<bool> CpuDevice::AllFinite(const Tensor& x) {
  LTX_RETURN_IF_ERROR(CheckFloat("AllFinite", x));
  bool finite = true;
  DispatchFloat(x.dtype(), [&](auto element) {
    using T = decltype(element);
    // x - x is 0 for finite x, else NaN; the sum of those is 0 only if all are.
    Vec sum = Zero();
    ForEachGroup(x.num_elements(), [&](int64_t i, auto lanes) {
      const Vec v = lanes.Load(x.data<T>() + i);
      sum = sum + (v - v);
    });
    finite = SumLanes(sum) == 0.0f;
  });
  return finite;
}

}  // namespace ltx::cpu
