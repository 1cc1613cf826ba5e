#ifndef LTX_TOOLS_RANDOM_MODEL_RANDOM_VALUES_H_
#define LTX_TOOLS_RANDOM_MODEL_RANDOM_VALUES_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/dtype.h"
#include "kernels/shape.h"

namespace ltx::random_model {

/// Values of a made-up tensor lie evenly in centre +- spread.
struct ValueRange {
  float centre = 0.0f;
  float spread = 0.0f;

  friend bool operator<(const ValueRange& a, const ValueRange& b) {
    return a.centre != b.centre ? a.centre < b.centre : a.spread < b.spread;
  }
};

/// A range with which activations stay finite and of the size of one: weights of products keep the
/// variance of their input (but for those that make the picture, which is of low contrast); factors
/// (weights of norms, deviations of channels, scalars of layers) lie around 1; low-pass filters
/// pass a constant; all else, biases and tables, is small.
ValueRange RangeOf(absl::string_view name, const Shape& shape);

/// Elements [begin, begin + values.size()) of an endless sequence that `seed` names. Each is a
/// function of its position alone, so parts may be made anywhere in any order. `begin` is a
/// multiple of kRandomBlock.
void FillRandom(const ValueRange& range, uint64_t seed, int64_t begin, absl::Span<BFloat16> values);
inline constexpr int64_t kRandomBlock = 8;

}  // namespace ltx::random_model

#endif  // LTX_TOOLS_RANDOM_MODEL_RANDOM_VALUES_H_
