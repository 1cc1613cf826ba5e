#ifndef LTX_KERNELS_CUDA_CAST_H_
#define LTX_KERNELS_CUDA_CAST_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/dtype.h"

namespace ltx::cuda {

/// Converts `count` elements, each rounded once to nearest even. False, and nothing is launched, if
/// there is no such conversion: results are F32, F64, BF16 or F16, operands those and U8, BOOL, I8,
/// I32, I64 (the last not to 16 bits).
bool LaunchCast(const void* x, DType from, void* y, DType to, int64_t count, cudaStream_t stream);

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_CAST_H_
