#ifndef LTX_KERNELS_CUDA_PRODUCT_ATTENTION_H_
#define LTX_KERNELS_CUDA_PRODUCT_ATTENTION_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/attention_task.h"
#include "kernels/cuda/batched_product.h"
#include "kernels/cuda/context.h"
#include "kernels/scratch_blocks.h"

namespace ltx::cuda {

/// Attention of any head width and mask as two matrix products with a softmax between them, over
/// blocks of queries whose scores fit a bounded workspace. f32 stays f32.
/// RESOURCE_EXHAUSTED if there is no memory for a block.
absl::Status RunProductAttention(CudaContext& context, BatchedProducts& products,
                                 const AttentionTask& task);

/// The scratch that RunProductAttention takes for such a task; its addresses only
/// tell how they are aligned.
absl::StatusOr<ScratchBlocks> ProductAttentionScratch(CudaContext& context,
                                                      BatchedProducts& products,
                                                      const AttentionTask& task);

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_PRODUCT_ATTENTION_H_
