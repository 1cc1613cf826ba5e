#include "engine/dit/attention_bias.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::dit {
namespace {

float LargestOf(DType dtype) {
  if (dtype != DType::kBF16) return std::numeric_limits<float>::max();
  BFloat16 largest;
  largest.bits = 0x7f7f;  // The exponent below infinity's with a full mantissa.
  return static_cast<float>(largest);
}

float RoundTo(DType dtype, float value) {
  return dtype == DType::kBF16 ? RoundToBFloat16(value) : value;
}

absl::Status CheckShape(int64_t mask_batch, int64_t mask_queries, int64_t mask_keys,
                        size_t value_count, int64_t batch, int64_t queries, int64_t keys,
                        absl::string_view name) {
  const bool fits = (mask_batch == 1 || mask_batch == batch) &&
                    (mask_queries == 1 || mask_queries == queries) && mask_keys == keys &&
                    static_cast<int64_t>(value_count) == mask_batch * mask_queries * mask_keys;
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s is [%d, %d, %d] with %d values; [%d or 1, %d or 1, %d] would be legal", name, mask_batch,
      mask_queries, mask_keys, value_count, batch, queries, keys));
}

absl::Status CheckRange(absl::Span<const float> values, float low, float high,
                        absl::string_view name) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (!(values[i] >= low && values[i] <= high)) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s[%d] is %g; it must lie in [%g, %g]", name, i, values[i], low, high));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> UploadBias(Device& device, const std::vector<float>& bias, int64_t batch,
                                  int64_t queries, int64_t keys, MemoryOwner owner) {
  if (std::all_of(bias.begin(), bias.end(), [](float b) { return b == 0.0f; })) return Tensor();
  return TensorFromFloats(device, bias, {batch, 1, queries, keys}, DType::kF32, owner);
}

}  // namespace

std::vector<float> LogSpaceBias(absl::Span<const float> mask, DType dtype) {
  // Both dtypes share the exponent range, hence the smallest normal number.
  static constexpr float kTiny = std::numeric_limits<float>::min();
  std::vector<float> bias(mask.size());
  std::transform(mask.begin(), mask.end(), bias.begin(), [dtype](float m) {
    return m > 0.0f ? RoundTo(dtype, std::log(std::max(m, kTiny))) : -LargestOf(dtype);
  });
  return bias;
}

std::vector<float> KeepMaskBias(absl::Span<const float> mask, DType dtype) {
  std::vector<float> bias(mask.size());
  std::transform(mask.begin(), mask.end(), bias.begin(), [dtype](float m) {
    return RoundTo(dtype, RoundTo(dtype, m - 1.0f) * LargestOf(dtype));
  });
  return bias;
}

absl::StatusOr<Tensor> SelfAttentionBias(Device& device, const AttentionMask& mask, int64_t batch,
                                         int64_t tokens, DType dtype, absl::string_view name) {
  LTX_RETURN_IF_ERROR(CheckShape(mask.batch, mask.queries, mask.keys, mask.values.size(), batch,
                                 tokens, tokens, name));
  LTX_RETURN_IF_ERROR(CheckRange(mask.values, 0.0f, 1.0f, name));
  return UploadBias(device, LogSpaceBias(mask.values, dtype), mask.batch, mask.queries, mask.keys,
                    MemoryOwner::kCache);
}

absl::StatusOr<Tensor> ContextBias(Device& device, const ContextMask& mask, int64_t batch,
                                   int64_t tokens, int64_t context_tokens, DType dtype,
                                   absl::string_view name) {
  LTX_RETURN_IF_ERROR(CheckShape(mask.batch, mask.queries, mask.keys, mask.values.size(), batch,
                                 tokens, context_tokens, name));
  constexpr float kLargest = std::numeric_limits<float>::max();
  LTX_RETURN_IF_ERROR(CheckRange(mask.values, -kLargest, kLargest, name));
  std::vector<float> bias;
  if (mask.kind == ContextMask::Kind::kKeep) {
    bias = KeepMaskBias(mask.values, dtype);
  } else {
    for (const float value : mask.values) bias.push_back(RoundTo(dtype, value));
  }
  return UploadBias(device, bias, mask.batch, mask.queries, mask.keys, MemoryOwner::kCache);
}

}  // namespace ltx::dit
