#ifndef LTX_KERNELS_CUDA_ELEMENTWISE_H_
#define LTX_KERNELS_CUDA_ELEMENTWISE_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/dtype.h"
#include "kernels/op_enums.h"

namespace ltx::cuda {

/// Kernels of the elementwise operations in kernels/device.h. Operands are dense, `dtype` is f32 or
/// bf16 for all of them unless said otherwise, and every formula rounds as written there.

void LaunchApply(DType dtype, Activation activation, const void* x, void* y, int64_t count,
                 cudaStream_t stream);
void LaunchLeakyRelu(DType dtype, float slope, const void* x, void* y, int64_t count,
                     cudaStream_t stream);
/// NaN stays.
void LaunchClamp(DType dtype, float low, float high, const void* x, void* y, int64_t count,
                 cudaStream_t stream);
void LaunchSoftCap(DType dtype, float cap, const void* x, void* y, int64_t count,
                   cudaStream_t stream);
void LaunchLogFloor(DType dtype, float floor, const void* x, void* y, int64_t count,
                    cudaStream_t stream);
void LaunchScale(DType dtype, float factor, const void* x, void* y, int64_t count,
                 cudaStream_t stream);
void LaunchAdd(DType dtype, const void* a, const void* b, void* y, int64_t count,
               cudaStream_t stream);
void LaunchGeluTanhMul(DType dtype, const void* gate, const void* up, void* y, int64_t count,
                       cudaStream_t stream);
/// x [rows, 2 bins] -> y [rows, bins].
void LaunchMagnitude(DType dtype, const void* x, void* y, int64_t rows, int64_t bins,
                     cudaStream_t stream);
/// a [outer, width] with rows `a_pitch` elements apart, b [inner, width] -> y [outer, inner,
/// width].
void LaunchOuterSum(DType dtype, const void* a, int64_t a_pitch, const void* b, void* y,
                    int64_t outer, int64_t inner, int64_t width, cudaStream_t stream);
/// x [rows, channels]; `scale` and `shift` may be null.
void LaunchScaleShiftChannels(DType dtype, const void* x, const void* scale, const void* shift,
                              void* y, int64_t rows, int64_t channels, cudaStream_t stream);
void LaunchNormalizeChannels(DType dtype, const void* x, const void* mean, const void* std, void* y,
                             int64_t rows, int64_t channels, cudaStream_t stream);
/// x [rows, channels] with rows in the order of `positions` draws, over and over.
void LaunchAddSpatialNoise(DType dtype, const void* x, const void* draw, const void* channel_scale,
                           void* y, int64_t rows, int64_t positions, int64_t channels,
                           cudaStream_t stream);
/// y [rows, channels] of `dtype` = activation(sums + bias); sums are f32 and may be y where that is
/// f32 too, `bias` [channels] of `dtype` may be null.
void LaunchBiasActivation(DType dtype, Activation activation, const float* sums, const void* bias,
                          void* y, int64_t rows, int64_t channels, cudaStream_t stream);

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_ELEMENTWISE_H_
