#include <cmath>

#include "kernels/cuda/diffusion.h"
#include "kernels/cuda/map.cuh"

// Compiled without contraction to fused multiply-adds: samplers compare states bit by bit.

namespace ltx::cuda {
namespace {

/// The two-sided form hits a at weight 0 and b at weight 1 exactly.
__device__ float Interpolate(float a, float b, float weight) {
  const float difference = b - a;
  if (fabsf(weight) < 0.5f) return a + weight * difference;
  return b - difference * (1.0f - weight);
}

struct LerpFn {
  float weight;
  __device__ float operator()(const float* v, int64_t) const {
    return Interpolate(v[0], v[1], weight);
  }
};

struct InterpolateFn {
  __device__ float operator()(float a, float b, float weight) const {
    return Interpolate(a, b, weight);
  }
};

struct DenoisedFn {
  __device__ float operator()(float x, float v, float timestep) const { return x - v * timestep; }
};

struct BlendCleanFn {
  __device__ float operator()(float x, float clean, float weight) const {
    return x * weight + clean * (1.0f - weight);
  }
};

/// f(a, b, value of the token).
template <typename Function>
struct ByToken {
  const float* per_token;
  int64_t channels;
  Function f;
  __device__ float operator()(const float* v, int64_t index) const {
    return f(v[0], v[1], per_token[Divide(index, channels).quotient]);
  }
};

template <typename T>
struct EulerStepFn {
  float sigma;
  float step;
  __device__ float operator()(const float* v, int64_t) const {
    const float velocity = ToFloat(FromFloat<T>((v[0] - v[1]) / sigma));
    return v[0] + velocity * step;
  }
};

struct CombineTwoFn {
  float a;
  float b;
  __device__ float operator()(const float* v, int64_t) const { return a * v[0] + b * v[1]; }
};

struct CombineThreeFn {
  float a;
  float b;
  float c;
  __device__ float operator()(const float* v, int64_t) const {
    return a * v[0] + b * v[1] + c * v[2];
  }
};

template <typename T>
__global__ void FindNonFiniteKernel(const T* x, int64_t count, int32_t* flag) {
  bool found = false;
  const int64_t stride = int64_t{gridDim.x} * kMapThreads;
  for (int64_t i = int64_t{blockIdx.x} * kMapThreads + threadIdx.x; i < count; i += stride) {
    found = found || !isfinite(ToFloat(x[i]));
  }
  if (found) *flag = 1;
}

}  // namespace

void LaunchLerp(DType dtype, const void* a, const void* b, float weight, void* y, int64_t count,
                cudaStream_t stream) {
  LaunchMap(dtype, a, b, y, count, LerpFn{weight}, stream);
}

void LaunchLerpTokens(DType dtype, const void* a, const void* b, const float* weights, void* y,
                      int64_t tokens, int64_t channels, cudaStream_t stream) {
  LaunchMap(dtype, a, b, y, tokens * channels, ByToken<InterpolateFn>{weights, channels, {}},
            stream);
}

void LaunchVelocityToDenoised(DType dtype, const void* latent, const void* velocity,
                              const float* timesteps, void* y, int64_t tokens, int64_t channels,
                              cudaStream_t stream) {
  LaunchMap(dtype, latent, velocity, y, tokens * channels,
            ByToken<DenoisedFn>{timesteps, channels, {}}, stream);
}

void LaunchBlendClean(DType dtype, const void* denoised, const void* clean, const float* mask,
                      void* y, int64_t tokens, int64_t channels, cudaStream_t stream) {
  LaunchMap(dtype, denoised, clean, y, tokens * channels, ByToken<BlendCleanFn>{mask, channels, {}},
            stream);
}

void LaunchEulerStep(DType dtype, const void* x, const void* denoised, float sigma,
                     float sigma_next, void* y, int64_t count, cudaStream_t stream) {
  DispatchElement(dtype, [&](auto zero) {
    using T = decltype(zero);
    LaunchMap(MapInputs<T, 2>{{static_cast<const T*>(x), static_cast<const T*>(denoised)}},
              static_cast<T*>(y), count, EulerStepFn<T>{sigma, sigma_next - sigma}, stream);
  });
}

void LaunchLinearCombination(DType dtype, float a, const void* x, float b, const void* y, float c,
                             const void* z, void* result, int64_t count, cudaStream_t stream) {
  if (z == nullptr) {
    LaunchMap(dtype, x, y, result, count, CombineTwoFn{a, b}, stream);
    return;
  }
  DispatchElement(dtype, [&](auto zero) {
    using T = decltype(zero);
    LaunchMap(MapInputs<T, 3>{{static_cast<const T*>(x), static_cast<const T*>(y),
                               static_cast<const T*>(z)}},
              static_cast<T*>(result), count, CombineThreeFn{a, b, c}, stream);
  });
}

void LaunchFindNonFinite(DType dtype, const void* x, int64_t count, int32_t* flag,
                         cudaStream_t stream) {
  if (count == 0) return;
  // Enough blocks to fill the largest GPU several times over.
  constexpr int64_t kMaxBlocks = 2048;
  const int64_t blocks = (count + kMapThreads - 1) / kMapThreads;
  DispatchElement(dtype, [&](auto zero) {
    using T = decltype(zero);
    FindNonFiniteKernel<<<static_cast<unsigned>(blocks < kMaxBlocks ? blocks : kMaxBlocks),
                          kMapThreads, 0, stream>>>(static_cast<const T*>(x), count, flag);
  });
}

}  // namespace ltx::cuda
