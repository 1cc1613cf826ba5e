#ifndef LTX_ENGINE_DIT_ATTENTION_BIAS_H_
#define LTX_ENGINE_DIT_ATTENTION_BIAS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/device.h"

namespace ltx::dit {

/// How much of each key a query of the same stream sees.
struct AttentionMask {
  /// 1 if all batch rows share the mask.
  int64_t batch = 1;
  /// 1 if all queries share the mask.
  int64_t queries = 1;
  int64_t keys = 0;
  /// [batch, queries, keys], each in [0, 1]: 1 full attention, 0 none, between: attenuated.
  std::vector<float> values;

  friend bool operator==(const AttentionMask& a, const AttentionMask& b) {
    return a.batch == b.batch && a.queries == b.queries && a.keys == b.keys && a.values == b.values;
  }
};

/// Which text tokens a stream sees.
struct ContextMask {
  enum class Kind : uint8_t {
    /// 1 shows the token, 0 hides it.
    kKeep,
    /// Added to the attention scores as it is.
    kAdditive,
  };
  Kind kind = Kind::kKeep;
  int64_t batch = 1;
  int64_t queries = 1;
  int64_t keys = 0;
  /// [batch, queries, keys].
  std::vector<float> values;
};

/// ln(m) for m > 0, else the lowest number of `dtype`; rounded to `dtype` like every value the
/// reference adds to scores of that dtype.
std::vector<float> LogSpaceBias(absl::Span<const float> mask, DType dtype);

/// (m - 1) * the largest number of `dtype`.
std::vector<float> KeepMaskBias(absl::Span<const float> mask, DType dtype);

/// The bias of a mask over a stream of [batch, tokens], f32 [B or 1, 1, N or 1, N] owned by kCache.
/// Undefined if the mask hides nothing. INVALID_ARGUMENT naming `name` if the mask does not fit the
/// stream or a value lies outside [0, 1].
absl::StatusOr<Tensor> SelfAttentionBias(Device& device, const AttentionMask& mask, int64_t batch,
                                         int64_t tokens, DType dtype, absl::string_view name);

/// The bias of a mask over `context_tokens` text tokens for `tokens` queries, f32
/// [B or 1, 1, N or 1, S]. Undefined and INVALID_ARGUMENT as above; any finite value is legal.
absl::StatusOr<Tensor> ContextBias(Device& device, const ContextMask& mask, int64_t batch,
                                   int64_t tokens, int64_t context_tokens, DType dtype,
                                   absl::string_view name);

}  // namespace ltx::dit

#endif  // LTX_ENGINE_DIT_ATTENTION_BIAS_H_
