#ifndef LTX_ENGINE_DIT_MODULATION_H_
#define LTX_ENGINE_DIT_MODULATION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/device.h"

namespace ltx::dit {

/// Shifts, scales and gates of one adaLN-single: vectors of `width`, several in a row per distinct
/// timestep, and which row each token uses.
struct Modulation {
  /// rows [U, k * width].
  RowVectors vectors;
  int64_t width = 0;

  bool defined() const { return vectors.rows.defined(); }
  /// The k-th vector.
  RowVectors At(int64_t k) const {
    return {vectors.rows, vectors.index, vectors.offset + k * width};
  }
};

/// `modulation` with a learned table [k * width] added to every row; an undefined modulation gives
/// the table alone, the same for all tokens.
absl::StatusOr<Modulation> AddTable(Device& device, const Modulation& modulation,
                                    const Tensor& table, int64_t width);

}  // namespace ltx::dit

#endif  // LTX_ENGINE_DIT_MODULATION_H_
