#ifndef LTX_KERNELS_CUDA_DIFFUSION_H_
#define LTX_KERNELS_CUDA_DIFFUSION_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/dtype.h"

namespace ltx::cuda {

/// Kernels of the operations on diffusion states in kernels/device.h; bit for bit what the formulas
/// there give in f32. `dtype` is f32 or bf16; per-token values are f32, one for each `channels`
/// elements.

void LaunchLerp(DType dtype, const void* a, const void* b, float weight, void* y, int64_t count,
                cudaStream_t stream);
void LaunchLerpTokens(DType dtype, const void* a, const void* b, const float* weights, void* y,
                      int64_t tokens, int64_t channels, cudaStream_t stream);
void LaunchVelocityToDenoised(DType dtype, const void* latent, const void* velocity,
                              const float* timesteps, void* y, int64_t tokens, int64_t channels,
                              cudaStream_t stream);
void LaunchBlendClean(DType dtype, const void* denoised, const void* clean, const float* mask,
                      void* y, int64_t tokens, int64_t channels, cudaStream_t stream);
void LaunchEulerStep(DType dtype, const void* x, const void* denoised, float sigma,
                     float sigma_next, void* y, int64_t count, cudaStream_t stream);
/// `z` may be null.
void LaunchLinearCombination(DType dtype, float a, const void* x, float b, const void* y, float c,
                             const void* z, void* result, int64_t count, cudaStream_t stream);
/// *flag becomes 1 if any element is infinite or NaN; the caller has set it to 0.
void LaunchFindNonFinite(DType dtype, const void* x, int64_t count, int32_t* flag,
                         cudaStream_t stream);

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_DIFFUSION_H_
