#ifndef LTX_KERNELS_DTYPE_H_
#define LTX_KERNELS_DTYPE_H_

#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"

namespace ltx {

/// Element types of tensors. The names are those of the safetensors format.
enum class DType : uint8_t {
  kF32,
  kBF16,
  kF16,
  kF64,
  kF8E4M3,
  kF8E5M2,
  kU8,
  kI8,
  kI32,
  kI64,
  kBool,
  /// PCM samples in files; no operation takes it.
  kI16,
};

/// Bytes of one element.
constexpr int64_t SizeOf(DType dtype) {
  switch (dtype) {
    case DType::kF64:
    case DType::kI64:
      return 8;
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kBF16:
    case DType::kF16:
    case DType::kI16:
      return 2;
    case DType::kF8E4M3:
    case DType::kF8E5M2:
    case DType::kU8:
    case DType::kI8:
    case DType::kBool:
      return 1;
  }
  return 0;
}

/// The safetensors spelling, e.g. "BF16".
absl::string_view DTypeName(DType dtype);

/// True for the types that hold real numbers (quantised 8-bit floats included).
constexpr bool IsFloat(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16 ||
         dtype == DType::kF64 || dtype == DType::kF8E4M3 || dtype == DType::kF8E5M2;
}

/// bfloat16 storage: the upper half of a float. Arithmetic happens in float.
struct BFloat16 {
  uint16_t bits = 0;

  BFloat16() = default;
  /// Rounds to nearest, ties to even; NaN stays NaN.
  explicit BFloat16(float value) {
    uint32_t word;
    std::memcpy(&word, &value, sizeof(word));
    if ((word & 0x7fffffffu) > 0x7f800000u) {
      bits = static_cast<uint16_t>((word >> 16) | 0x40u);
    } else {
      bits = static_cast<uint16_t>((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
    }
  }
  explicit operator float() const {
    const uint32_t word = static_cast<uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &word, sizeof(value));
    return value;
  }
};

/// `value` rounded once to bfloat16 and widened again.
inline float RoundToBFloat16(float value) { return static_cast<float>(BFloat16(value)); }

}  // namespace ltx

#endif  // LTX_KERNELS_DTYPE_H_
