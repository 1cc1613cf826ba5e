#include "engine/checkpoint/element_decode.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"

namespace ltx::checkpoint {
namespace {

/// Sign, exponent and fraction fields of a small float as its value; no special codes.
float FromFields(uint32_t sign, int exponent, int fraction, int fraction_bits, int bias) {
  const float magnitude = exponent == 0
                              ? std::ldexp(static_cast<float>(fraction), 1 - bias - fraction_bits)
                              : std::ldexp(static_cast<float>((1 << fraction_bits) + fraction),
                                           exponent - bias - fraction_bits);
  return sign != 0 ? -magnitude : magnitude;
}

template <typename Stored, typename Out, typename Convert>
void DecodeAs(absl::Span<const uint8_t> bytes, absl::Span<Out> out, const Convert& convert) {
  for (size_t i = 0; i < out.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, bytes.data() + i * sizeof(Stored), sizeof(Stored));
    out[i] = static_cast<Out>(convert(stored));
  }
}

template <typename Out>
void Decode(const SafetensorsFile::Entry& entry, absl::Span<Out> out) {
  const auto same = [](auto value) { return value; };
  switch (entry.dtype) {
    case DType::kF32:
      return DecodeAs<float>(entry.bytes, out, same);
    case DType::kF64:
      return DecodeAs<double>(entry.bytes, out, same);
    case DType::kBF16:
      return DecodeAs<BFloat16>(entry.bytes, out, [](BFloat16 x) { return static_cast<float>(x); });
    case DType::kF16:
      return DecodeAs<uint16_t>(entry.bytes, out, HalfToFloat);
    case DType::kF8E4M3:
      return DecodeAs<uint8_t>(entry.bytes, out, F8E4M3ToFloat);
    case DType::kF8E5M2:
      return DecodeAs<uint8_t>(entry.bytes, out, F8E5M2ToFloat);
    case DType::kU8:
      return DecodeAs<uint8_t>(entry.bytes, out, same);
    case DType::kI8:
      return DecodeAs<int8_t>(entry.bytes, out, same);
    case DType::kI16:
      return DecodeAs<int16_t>(entry.bytes, out, same);
    case DType::kI32:
      return DecodeAs<int32_t>(entry.bytes, out, same);
    case DType::kI64:
      return DecodeAs<int64_t>(entry.bytes, out, same);
    case DType::kBool:
      return DecodeAs<uint8_t>(entry.bytes, out, [](uint8_t x) { return x != 0; });
  }
}

}  // namespace

float HalfToFloat(uint16_t bits) {
  const uint32_t sign = bits >> 15;
  const int exponent = (bits >> 10) & 0x1f;
  const int fraction = bits & 0x3ff;
  if (exponent == 0x1f) {
    if (fraction != 0) return std::numeric_limits<float>::quiet_NaN();
    return sign != 0 ? -std::numeric_limits<float>::infinity()
                     : std::numeric_limits<float>::infinity();
  }
  return FromFields(sign, exponent, fraction, 10, 15);
}

float F8E4M3ToFloat(uint8_t code) {
  if ((code & 0x7f) == 0x7f) return std::numeric_limits<float>::quiet_NaN();
  return FromFields(code >> 7, (code >> 3) & 0xf, code & 0x7, 3, 7);
}

float F8E5M2ToFloat(uint8_t code) {
  // The upper half of a binary16 pattern.
  return HalfToFloat(static_cast<uint16_t>(code << 8));
}

void DecodeFloats(const SafetensorsFile::Entry& entry, absl::Span<float> out) {
  Decode(entry, out);
}

std::vector<float> DecodeFloats(const SafetensorsFile::Entry& entry) {
  std::vector<float> values(entry.shape.num_elements());
  Decode(entry, absl::MakeSpan(values));
  return values;
}

std::vector<double> DecodeDoubles(const SafetensorsFile::Entry& entry) {
  std::vector<double> values(entry.shape.num_elements());
  Decode(entry, absl::MakeSpan(values));
  return values;
}

absl::StatusOr<std::vector<int64_t>> DecodeInts(const SafetensorsFile::Entry& entry) {
  if (IsFloat(entry.dtype)) {
    return absl::InvalidArgumentError(absl::StrCat("dtype is ", DTypeName(entry.dtype),
                                                   ", legal are U8, I8, I16, I32, I64, BOOL"));
  }
  std::vector<int64_t> values(entry.shape.num_elements());
  Decode(entry, absl::MakeSpan(values));
  return values;
}

}  // namespace ltx::checkpoint
