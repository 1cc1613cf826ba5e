#ifndef LTX_KERNELS_CUDA_ATTENTION_TASK_H_
#define LTX_KERNELS_CUDA_ATTENTION_TASK_H_

#include <cstdint>

namespace ltx::cuda {

/// Device::Attention on checked operands in device memory. A row of q holds heads * width elements,
/// rows lie `q_stride` elements apart, batch rows follow each other; k, v and out likewise.
struct AttentionTask {
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  void* out = nullptr;
  int64_t batch = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t width = 0;        ///< of a head of q and k
  int64_t value_width = 0;  ///< of a head of v
  int64_t q_stride = 0;
  int64_t k_stride = 0;
  int64_t v_stride = 0;
  int64_t out_stride = 0;
  bool bf16 = false;
  float scale = 1.0f;
  bool causal = false;
  int64_t window = 0;                 ///< 0: none.
  const uint8_t* key_mask = nullptr;  ///< [batch, keys]; null: none.
  const float* bias = nullptr;        ///< Null: none.
  int64_t bias_batch_stride = 0;
  int64_t bias_query_stride = 0;
};

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_ATTENTION_TASK_H_
