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

/// `vectors` of the batch rows [begin, end) out of `batch`.
absl::StatusOr<RowVectors> OfBatchRows(const RowVectors& vectors, int64_t batch, int64_t begin,
                                       int64_t end);

/// One modulation with the learned tables of all blocks added to it. For a usual number of distinct
/// timesteps the sums of all blocks are made at once, which saves a small operation per block;
/// beyond it block by block, which saves memory.
class BlockModulations {
 public:
  BlockModulations() = default;
  /// `tables` [blocks, k * width]. An undefined `shared` counts as zero.
  static absl::StatusOr<BlockModulations> Make(Device& device, const Modulation& shared,
                                               const Columns& tables, int64_t width);

  absl::StatusOr<Modulation> Of(Device& device, int64_t block) const;

 private:
  Modulation shared_;
  Columns tables_;
  /// [blocks, U, k * width], or undefined if blocks are summed one by one.
  Tensor sums_;
};

}  // namespace ltx::dit

#endif  // LTX_ENGINE_DIT_MODULATION_H_
