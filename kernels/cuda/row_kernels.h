#ifndef LTX_KERNELS_CUDA_ROW_KERNELS_H_
#define LTX_KERNELS_CUDA_ROW_KERNELS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/op_enums.h"

namespace ltx::cuda {

/// RowVectors (kernels/op_types.h) in device memory: the vector of token t begins at
/// rows + stride * index[t], or * (t / tokens_per_row) without an index.
struct RowVectorsView {
  const void* rows = nullptr;  ///< Null: none.
  int64_t count = 0;           ///< Rows there are; an index beyond reads the nearest.
  int64_t stride = 0;
  const int32_t* index = nullptr;
  int64_t tokens_per_row = 0;  ///< 0: all tokens use row 0.
};

/// y = act((x - mean) * inverse * (base + scale) + shift) for each row of `width` elements. `mean`
/// and `inverse` are those of the row as `statistic` says; a null scale stands for base + scale = 1
/// and a null shift for 0. All operands are f32, or all bf16 if `bf16`.
struct RowNormTask {
  enum class Statistic : uint8_t {
    kNone,   ///< mean 0, inverse 1
    kRms,    ///< mean 0, inverse 1 / sqrt(mean(x^2) + epsilon)
    kLayer,  ///< inverse 1 / sqrt(mean((x - mean)^2) + epsilon)
  };
  const void* x = nullptr;
  void* y = nullptr;
  int64_t rows = 0;
  int64_t width = 0;
  /// Elements from one row to the next.
  int64_t x_stride = 0;
  int64_t y_stride = 0;
  bool bf16 = false;
  Statistic statistic = Statistic::kNone;
  float epsilon = 0.0f;
  float base = 1.0f;
  RowVectorsView scale;
  RowVectorsView shift;
  Activation activation = Activation::kNone;
};
cudaError_t LaunchRowNorm(const RowNormTask& task, cudaStream_t stream);

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_ROW_KERNELS_H_
