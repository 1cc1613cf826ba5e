#ifndef LTX_KERNELS_CUDA_GUIDANCE_H_
#define LTX_KERNELS_CUDA_GUIDANCE_H_

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>

#include "kernels/dtype.h"

namespace ltx::cuda {

/// Kernels of WeightedSum, Guide and BatchDot in kernels/device.h. Sums are formed in an order that
/// the sizes alone decide.

/// One term of a weighted sum: `weights` on the device, one per token, or null for `weight`.
struct SumTerm {
  const void* x = nullptr;
  DType dtype = DType::kF32;
  const double* weights = nullptr;
  double weight = 0.0;
};
inline constexpr int kMaxSumTerms = 5;

/// y [tokens, channels] of `dtype`: f32, bf16 or f64, like those of the first `count` terms.
void LaunchWeightedSum(const std::array<SumTerm, kMaxSumTerms>& terms, int count, DType dtype,
                       void* y, int64_t tokens, int64_t channels, cudaStream_t stream);

/// Predictions of the passes of a step and their factors; a null pass contributes nothing.
struct GuidedPasses {
  const void* cond = nullptr;
  const void* uncond = nullptr;
  const void* perturbed = nullptr;
  const void* isolated = nullptr;
  float cfg = 0.0f;
  float stg = 0.0f;
  float modality = 0.0f;
};

/// Doubles of scratch that the factors of `rows` rows of `count` elements need.
int64_t GuideScratchDoubles(int64_t rows, int64_t count);
/// factors [rows] f32: rescale * std(cond) / std(guided) + (1 - rescale) of every row.
void LaunchGuideFactors(DType dtype, const GuidedPasses& passes, float rescale, int64_t rows,
                        int64_t count, double* scratch, float* factors, cudaStream_t stream);
/// y [rows, count]: the guided prediction, times its row's factor unless `factors` is null.
void LaunchGuide(DType dtype, const GuidedPasses& passes, const float* factors, void* y,
                 int64_t rows, int64_t count, cudaStream_t stream);

/// dots [rows] from scratch as for the factors.
void LaunchBatchDot(DType dtype, const void* a, const void* b, int64_t rows, int64_t count,
                    double* scratch, double* dots, cudaStream_t stream);

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_GUIDANCE_H_
