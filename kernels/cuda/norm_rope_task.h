#ifndef LTX_KERNELS_CUDA_NORM_ROPE_TASK_H_
#define LTX_KERNELS_CUDA_NORM_ROPE_TASK_H_

#include <cstdint>

namespace ltx::cuda {

/// Rotary tables (RopeTable in kernels/op_types.h) in device memory, with the strides, in elements,
/// from one batch row, head and token to the next; a stride of 0 shares the table.
struct RopeView {
  enum class Kind : uint8_t { kNone, kSplit, kInterleaved };
  Kind kind = Kind::kNone;
  const void* cos = nullptr;
  const void* sin = nullptr;
  int64_t batch_stride = 0;
  int64_t head_stride = 0;
  int64_t token_stride = 0;
};

/// y = rotate(x * inverse * (base + weight)) for `batch` x `tokens` rows of `heads` x `head_width`
/// elements. Rows may be slices of a wider matrix; y may be x. All operands are f32, or all bf16 if
/// `bf16`.
struct NormRopeTask {
  enum class Norm : uint8_t {
    kNone,       ///< inverse 1, no weight
    kFullWidth,  ///< one root mean square over all heads, weight [heads * head_width]
    kPerHead,    ///< one per head, weight [head_width]
  };
  const void* x = nullptr;
  void* y = nullptr;
  int64_t batch = 0;
  int64_t tokens = 0;
  int64_t heads = 1;
  int64_t head_width = 0;
  /// Elements from one token to the next; batch rows follow each other.
  int64_t x_stride = 0;
  int64_t y_stride = 0;
  bool bf16 = false;
  Norm norm = Norm::kNone;
  const void* weight = nullptr;  ///< Null: none.
  float base = 0.0f;             ///< 1 for (1 + weight).
  float epsilon = 0.0f;
  RopeView rope;
};

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_NORM_ROPE_TASK_H_
