#include <immintrin.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/vector.h"
#include "kernels/operand_check.h"
#include "kernels/status_macros.h"

namespace ltx::cpu {
namespace {

/// IEEE half precision.
struct Float16 {
  uint16_t bits;
};

/// What an element is on the way from its type to another: float if that holds it exactly, else
/// double or the integer itself.
inline float Widened(float value) { return value; }
inline float Widened(BFloat16 value) { return static_cast<float>(value); }
inline float Widened(Float16 value) { return _cvtsh_ss(value.bits); }
inline float Widened(uint8_t value) { return value; }
inline float Widened(int8_t value) { return value; }
inline double Widened(double value) { return value; }
inline double Widened(int32_t value) { return value; }
inline int64_t Widened(int64_t value) { return value; }

/// `value` as a float rounded to odd: a later rounding to fewer bits then gives what rounding
/// `value` once would.
inline float RoundToOdd(double value) {
  const auto nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || !std::isfinite(nearest)) return nearest;
  uint32_t bits;
  std::memcpy(&bits, &nearest, sizeof(bits));
  if (std::abs(static_cast<double>(nearest)) > std::abs(value)) --bits;
  bits |= 1;
  float odd;
  std::memcpy(&odd, &bits, sizeof(odd));
  return odd;
}

inline void Narrow(float value, float* to) { *to = value; }
inline void Narrow(float value, double* to) { *to = value; }
inline void Narrow(float value, BFloat16* to) { *to = BFloat16(value); }
inline void Narrow(float value, Float16* to) {
  to->bits = _cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT);
}
inline void Narrow(double value, float* to) { *to = static_cast<float>(value); }
inline void Narrow(double value, double* to) { *to = value; }
inline void Narrow(double value, BFloat16* to) { *to = BFloat16(RoundToOdd(value)); }
inline void Narrow(double value, Float16* to) { Narrow(RoundToOdd(value), to); }
inline void Narrow(int64_t value, float* to) { *to = static_cast<float>(value); }
inline void Narrow(int64_t value, double* to) { *to = static_cast<double>(value); }

template <typename From, typename To>
void ConvertRange(const From* from, int64_t count, To* to) {
  for (int64_t i = 0; i < count; ++i) Narrow(Widened(from[i]), to + i);
}
/// The two conversions of every bf16 run, in vectors.
void ConvertRange(const BFloat16* from, int64_t count, float* to) {
  ForEachGroup(count, [&](int64_t i, auto lanes) { lanes.Store(to + i, lanes.Load(from + i)); });
}
void ConvertRange(const float* from, int64_t count, BFloat16* to) {
  ForEachGroup(count, [&](int64_t i, auto lanes) { lanes.Store(to + i, lanes.Load(from + i)); });
}

/// False if there is no conversion between the two. A 64-bit integer would round twice on its way
/// to 16 bits.
template <typename From, typename To>
bool Convert(int threads, const Tensor& x, const Tensor& y) {
  if constexpr (std::is_same_v<From, int64_t> && sizeof(To) == 2) {
    return false;
  } else {
    ParallelFor(threads, x.num_elements(), kCheapGrain, [&](int64_t begin, int64_t end) {
      ConvertRange(x.data<From>() + begin, end - begin, y.data<To>() + begin);
    });
    return true;
  }
}

template <typename From>
bool ConvertFrom(int threads, const Tensor& x, const Tensor& y) {
  switch (y.dtype()) {
    case DType::kF32:
      return Convert<From, float>(threads, x, y);
    case DType::kF64:
      return Convert<From, double>(threads, x, y);
    case DType::kBF16:
      return Convert<From, BFloat16>(threads, x, y);
    case DType::kF16:
      return Convert<From, Float16>(threads, x, y);
    default:
      return false;
  }
}

bool ConvertAny(int threads, const Tensor& x, const Tensor& y) {
  switch (x.dtype()) {
    case DType::kF32:
      return ConvertFrom<float>(threads, x, y);
    case DType::kF64:
      return ConvertFrom<double>(threads, x, y);
    case DType::kBF16:
      return ConvertFrom<BFloat16>(threads, x, y);
    case DType::kF16:
      return ConvertFrom<Float16>(threads, x, y);
    case DType::kU8:
    case DType::kBool:
      return ConvertFrom<uint8_t>(threads, x, y);
    case DType::kI8:
      return ConvertFrom<int8_t>(threads, x, y);
    case DType::kI32:
      return ConvertFrom<int32_t>(threads, x, y);
    case DType::kI64:
      return ConvertFrom<int64_t>(threads, x, y);
    default:
      return false;
  }
}

}  // namespace

absl::StatusOr<Tensor> CpuDevice::Cast(const Tensor& x, DType dtype) {
  if (!x.defined()) return OperandError("Cast", "needs its operand", {&x});
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(x.shape(), dtype, MemoryOwner::kActivations));
  if (x.dtype() == dtype) {
    if (y.num_bytes() > 0) {
      std::memcpy(y.raw(), x.raw(), static_cast<size_t>(y.num_bytes()));
    }
    return y;
  }
  if (!ConvertAny(threads_, x, y)) {
    return absl::UnimplementedError(
        absl::StrCat("Cast: from ", DTypeName(x.dtype()), " to ", DTypeName(dtype)));
  }
  return y;
}

}  // namespace ltx::cpu
