#ifndef LTX_KERNELS_OP_SCRATCH_H_
#define LTX_KERNELS_OP_SCRATCH_H_

#include <array>
#include <cstdint>
#include <optional>

#include "kernels/conv_axis.h"
#include "kernels/dtype.h"
#include "kernels/op_enums.h"
#include "kernels/preparation.h"
#include "kernels/scratch_blocks.h"

namespace ltx {

/// Sizes of operations, as far as their scratch depends on them.
struct LinearSize {
  int64_t rows = 0;
  int64_t in = 0;
  int64_t out = 0;
  DType dtype = DType::kF32;
  bool bias = false;
  Activation activation = Activation::kNone;
};
struct ConvSize {
  int64_t batch = 1;
  /// Missing axes stand in front, one position of one tap. Of a transposed convolution: one phase.
  std::array<ConvAxis, 3> axes;
  int64_t in_channels = 0;
  int64_t out_channels = 0;
  /// Stride of a transposed convolution, else 1.
  int64_t phases = 1;
  DType dtype = DType::kF32;
  Activation activation = Activation::kNone;

  /// Outputs, of a phase where there are several.
  int64_t positions() const { return batch * axes[0].output * axes[1].output * axes[2].output; }
};
struct NormConvSize {
  ConvSize conv;
  /// kNone where no norm goes before.
  Activation norm_activation = Activation::kNone;
  bool residual = false;
  std::array<int, 3> depth_to_space = {1, 1, 1};
  bool drop_first_frame = false;
};
struct AttentionSize {
  int64_t batch = 1;
  int64_t heads = 1;
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t head_dim = 0;
  DType dtype = DType::kF32;
  /// Heads of keys and values, which groups of query heads share.
  int64_t kv_heads = 1;
  int64_t value_dim = 0;
  bool causal = false;
  /// 0: none.
  int64_t window = 0;
  float scale = 1.0f;
  bool key_mask = false;
  bool bias = false;

  /// Where an operand's columns lie in the rows of its tensor, in elements: a library may choose
  /// otherwise for part of a fused product than for a tensor of its own.
  struct Rows {
    int64_t begin = 0;
    /// From one row to the next; 0: the columns are the whole row.
    int64_t pitch = 0;
  };
  Rows q;
  Rows k;
  Rows v;
};
struct GroupNormSize {
  int64_t batch = 1;
  /// Of one batch row.
  int64_t positions = 0;
  int64_t channels = 0;
  int64_t groups = 1;
  DType dtype = DType::kF32;
};

/// What the first use of an operation prepares. Operations of one key share it.
struct FirstUse {
  uint64_t key = 0;
  Preparation preparation;
};

/// Scratch (owner kWorkspace) that the operations of a device take while they run, from sizes
/// alone, so that memory can be projected before anything is computed. Operations that are not
/// named take none, or too little to matter. Where a library chooses, the answer is what it would
/// choose now. Thread-safe.
class OpScratch {
 public:
  virtual ~OpScratch() = default;
  virtual ScratchBlocks Linear(const LinearSize& size) const = 0;
  virtual ScratchBlocks Conv(const ConvSize& size) const = 0;
  /// Of Device::NormConv where the device does all of it at once; none where it does the single
  /// operations.
  virtual std::optional<ScratchBlocks> NormConv(const NormConvSize& /*size*/) const {
    return std::nullopt;
  }
  virtual ScratchBlocks Attention(const AttentionSize& size) const = 0;
  virtual ScratchBlocks GroupNorm(const GroupNormSize& size) const = 0;

  /// What such an operation would prepare if it came now: nothing once it has been there.
  virtual FirstUse FirstUseOf(const AttentionSize& /*size*/) const { return {}; }
};

/// Of a device whose operations take nothing from the ledger while they run (it may hold one
/// workspace for good, which is then part of what is resident).
const OpScratch& NoOpScratch();

}  // namespace ltx

#endif  // LTX_KERNELS_OP_SCRATCH_H_
