#ifndef LTX_KERNELS_OP_SCRATCH_H_
#define LTX_KERNELS_OP_SCRATCH_H_

#include <array>
#include <cstdint>

#include "kernels/dtype.h"

namespace ltx {

/// Sizes of operations, as far as their scratch depends on them.
struct LinearSize {
  int64_t rows = 0;
  int64_t in = 0;
  int64_t out = 0;
  DType dtype = DType::kF32;
  bool activation = false;
};
struct ConvSize {
  int64_t batch = 1;
  /// Output extents; missing axes stand in front as ones.
  std::array<int64_t, 3> output = {1, 1, 1};
  int64_t in_channels = 0;
  int64_t out_channels = 0;
  /// Positions of the kernel.
  int64_t taps = 1;
  /// Stride of a transposed convolution, else 1.
  int64_t phases = 1;
  DType dtype = DType::kF32;

  int64_t positions() const { return batch * output[0] * output[1] * output[2]; }
};
struct AttentionSize {
  int64_t batch = 1;
  int64_t heads = 1;
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t head_dim = 0;
  DType dtype = DType::kF32;
};
struct GroupNormSize {
  int64_t batch = 1;
  /// Of one batch row.
  int64_t positions = 0;
  int64_t channels = 0;
  int64_t groups = 1;
  DType dtype = DType::kF32;
};

/// Scratch (owner kWorkspace) that the operations of a device take while they run, in bytes: pure
/// functions of sizes, so that memory can be projected before anything is computed. Operations that
/// are not named take none.
class OpScratch {
 public:
  virtual ~OpScratch() = default;
  virtual int64_t Linear(const LinearSize& size) const = 0;
  virtual int64_t Conv(const ConvSize& size) const = 0;
  virtual int64_t Attention(const AttentionSize& size) const = 0;
  virtual int64_t GroupNorm(const GroupNormSize& size) const = 0;
};

/// Of a device whose operations take nothing from the ledger while they run (it may hold one
/// workspace for good, which is then part of what is resident).
const OpScratch& NoOpScratch();

}  // namespace ltx

#endif  // LTX_KERNELS_OP_SCRATCH_H_
