#ifndef LTX_KERNELS_CUDA_OP_SCRATCH_H_
#define LTX_KERNELS_CUDA_OP_SCRATCH_H_

#include <cstdint>
#include <optional>

#include "kernels/cuda/batched_product.h"
#include "kernels/cuda/context.h"
#include "kernels/cuda/cudnn_attention.h"
#include "kernels/cuda/linear_plans.h"
#include "kernels/op_scratch.h"

namespace ltx::cuda {

/// Scratch of the GPU's operations. Each method stands beside its operation and shares what decides
/// about the size with it. The libraries are asked what they would choose, which costs some tens of
/// microseconds for each new size and no device memory; tensors count as aligned.
class CudaOpScratch final : public OpScratch {
 public:
  /// All must outlive this.
  CudaOpScratch(CudaContext* context, LinearPlans* linear_plans, BatchedProducts* batched_products,
                const CudnnAttention* cudnn_attention)
      : context_(context),
        linear_plans_(linear_plans),
        batched_products_(batched_products),
        cudnn_attention_(cudnn_attention) {}

  ScratchBlocks Linear(const LinearSize& size) const override;
  ScratchBlocks Conv(const ConvSize& size) const override;
  std::optional<ScratchBlocks> NormConv(const NormConvSize& size) const override;
  /// Of attention by cuDNN, the most that any plan so far has needed: only a plan knows, and plans
  /// are slow to make.
  ScratchBlocks Attention(const AttentionSize& size) const override;
  ScratchBlocks GroupNorm(const GroupNormSize& size) const override;

  FirstUse FirstUseOf(const AttentionSize& size) const override;

 private:
  CudaContext* const context_;
  LinearPlans* const linear_plans_;
  BatchedProducts* const batched_products_;
  const CudnnAttention* const cudnn_attention_;
};

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_OP_SCRATCH_H_
