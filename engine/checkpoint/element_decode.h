#ifndef LTX_ENGINE_CHECKPOINT_ELEMENT_DECODE_H_
#define LTX_ENGINE_CHECKPOINT_ELEMENT_DECODE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/checkpoint/safetensors.h"

namespace ltx::checkpoint {

/// Stored elements as host numbers. Reads are safe at any alignment. 8-bit floats give the value of
/// their code, without any scale that may stand beside them.

/// The value of an IEEE binary16 bit pattern.
float HalfToFloat(uint16_t bits);
/// The value of an FP8 E4M3 code (the variant without infinities: bias 7, largest 448).
float F8E4M3ToFloat(uint8_t code);
/// The value of an FP8 E5M2 code (bias 15, with infinities).
float F8E5M2ToFloat(uint8_t code);

/// Any dtype, rounded to float where it is wider. `out` has as many elements as the entry.
void DecodeFloats(const SafetensorsFile::Entry& entry, absl::Span<float> out);
std::vector<float> DecodeFloats(const SafetensorsFile::Entry& entry);
/// Any dtype. I64 values beyond 2^53 round.
std::vector<double> DecodeDoubles(const SafetensorsFile::Entry& entry);
/// U8, I8, I16, I32, I64 and BOOL (0 or 1); INVALID_ARGUMENT for a float dtype.
absl::StatusOr<std::vector<int64_t>> DecodeInts(const SafetensorsFile::Entry& entry);

}  // namespace ltx::checkpoint

#endif  // LTX_ENGINE_CHECKPOINT_ELEMENT_DECODE_H_
