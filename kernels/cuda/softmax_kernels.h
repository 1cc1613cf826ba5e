#ifndef LTX_KERNELS_CUDA_SOFTMAX_KERNELS_H_
#define LTX_KERNELS_CUDA_SOFTMAX_KERNELS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace ltx::cuda {

/// weights = softmax(scores + bias) over the keys that a query sees, 0 for the others; a query that
/// sees none has weights 0. Rows are [heads, queries] with `pitch` elements from one to the next;
/// the weights are f32 or bf16 and may overwrite the scores.
struct SoftmaxTask {
  const float* scores = nullptr;
  void* weights = nullptr;
  int64_t heads = 0;
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t pitch = 0;
  bool bf16 = false;
  int64_t first_query = 0;  ///< Position of query 0 in the sequence.
  bool causal = false;
  int64_t window = 0;
  const uint8_t* key_mask = nullptr;  ///< [keys]; null: none.
  const float* bias = nullptr;        ///< Row of query 0; null: none.
  int64_t bias_query_stride = 0;
};
cudaError_t LaunchSoftmax(const SoftmaxTask& task, cudaStream_t stream);

/// out [rows, width] = the rows of x, `stride` elements apart, with those that `mask` hides made
/// zero: what they hold must not matter.
struct MaskRowsTask {
  const void* x = nullptr;
  void* out = nullptr;
  const uint8_t* mask = nullptr;  ///< [rows]
  int64_t rows = 0;
  int64_t width = 0;
  int64_t stride = 0;
  bool bf16 = false;
};
cudaError_t LaunchMaskRows(const MaskRowsTask& task, cudaStream_t stream);

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_SOFTMAX_KERNELS_H_
