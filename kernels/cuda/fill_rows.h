#ifndef LTX_KERNELS_CUDA_FILL_ROWS_H_
#define LTX_KERNELS_CUDA_FILL_ROWS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/dtype.h"
#include "kernels/op_enums.h"

namespace ltx::cuda {

/// Every row of y [rows, columns] becomes activation(row), or activation(0) with a null row: what
/// a linear over no inputs yields.
void LaunchFillRows(const void* row, int64_t rows, int64_t columns, DType dtype,
                    Activation activation, void* y, cudaStream_t stream);

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_FILL_ROWS_H_
