#ifndef LTX_KERNELS_CUDA_ROPE_KERNELS_H_
#define LTX_KERNELS_CUDA_ROPE_KERNELS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/norm_rope_task.h"

namespace ltx::cuda {

cudaError_t LaunchNormRope(const NormRopeTask& task, cudaStream_t stream);
/// Both, at best in one launch that reads common tables once. They must not overlap.
cudaError_t LaunchNormRopePair(const NormRopeTask& queries, const NormRopeTask& keys,
                               cudaStream_t stream);

/// y = x * 2 sigmoid(logit) per head; logits are [rows, heads] at `logit_stride` per row. y may be
/// x.
struct HeadGateTask {
  const void* x = nullptr;
  const void* logits = nullptr;
  void* y = nullptr;
  int64_t rows = 0;
  int64_t heads = 1;
  int64_t head_width = 0;
  int64_t x_stride = 0;
  int64_t y_stride = 0;
  int64_t logit_stride = 0;
  bool bf16 = false;
};
cudaError_t LaunchHeadGate(const HeadGateTask& task, cudaStream_t stream);

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_ROPE_KERNELS_H_
