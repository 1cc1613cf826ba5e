#ifndef LTX_KERNELS_CUDA_WHOLE_ROW_ROPE_H_
#define LTX_KERNELS_CUDA_WHOLE_ROW_ROPE_H_

#include <cuda_runtime_api.h>

#include "kernels/cuda/norm_rope_task.h"

namespace ltx::cuda {

/// Whether the kernel of the transformer's queries and keys has the task's form: bf16 in place, 32
/// heads of 128 or 64, one norm over all of them with a weight, no rotation or that of halves of a
/// head, everything aligned.
bool IsWholeRow(const NormRopeTask& task);

/// Whether two such tasks, neither of them empty, can share a launch.
bool CanShareLaunch(const NormRopeTask& a, const NormRopeTask& b);

cudaError_t LaunchWholeRow(const NormRopeTask& task, cudaStream_t stream);

/// Both in one launch. If they lie in the same way and share their tables, these are read once.
cudaError_t LaunchWholeRowPair(const NormRopeTask& first, const NormRopeTask& second,
                               cudaStream_t stream);

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_WHOLE_ROW_ROPE_H_
