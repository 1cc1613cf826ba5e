#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/guidance.h"

// Compiled without contraction to fused multiply-adds: samplers compare states bit by bit.

namespace ltx::cuda {
namespace {

constexpr int kThreads = 256;
/// Elements whose sums one block forms; a thread takes every 256th of them.
constexpr int64_t kSumBlock = 4096;

unsigned BlocksOf(int64_t count, int64_t per_block) {
  return static_cast<unsigned>((count + per_block - 1) / per_block);
}

// --- Weighted sums ----------------------------------------------------------------------------

struct SumTerms {
  SumTerm terms[kMaxSumTerms];
};

__device__ double LoadWide(const void* x, DType dtype, int64_t at) {
  switch (dtype) {
    case DType::kF64:
      return static_cast<const double*>(x)[at];
    case DType::kBF16:
      return ToFloat(static_cast<const BF16*>(x)[at]);
    default:
      return static_cast<const float*>(x)[at];
  }
}

__global__ void WeightedSumKernel(SumTerms terms, int count, DType dtype, void* y, int64_t channels,
                                  int64_t elements) {
  const int64_t at = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (at >= elements) return;
  const int64_t token = at / channels;
  double sum = 0.0;
  for (int i = 0; i < count; ++i) {
    const SumTerm& term = terms.terms[i];
    const double weight = term.weights == nullptr ? term.weight : term.weights[token];
    sum += weight * LoadWide(term.x, term.dtype, at);
  }
  switch (dtype) {
    case DType::kF64:
      static_cast<double*>(y)[at] = sum;
      break;
    case DType::kBF16:
      static_cast<BF16*>(y)[at] = FromFloat<BF16>(static_cast<float>(sum));
      break;
    default:
      static_cast<float*>(y)[at] = static_cast<float>(sum);
  }
}

// --- Sums over rows ---------------------------------------------------------------------------

/// The sum of `value` over the threads of a block, in thread 0, by halving.
__device__ double BlockSum(double value) {
  __shared__ double sums[kThreads];
  sums[threadIdx.x] = value;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  const double total = sums[0];
  __syncthreads();
  return total;
}

/// Sum of `stride`-spaced partial results of one row, the same for every block size.
__device__ double RowTotal(const double* partial, int64_t count, int stride) {
  double sum = 0.0;
  for (int64_t i = threadIdx.x; i < count; i += kThreads) sum += partial[i * stride];
  return BlockSum(sum);
}

template <typename T>
__device__ float Guided(const GuidedPasses& passes, int64_t at) {
  const float cond = ToFloat(static_cast<const T*>(passes.cond)[at]);
  const auto load = [&](const void* pass) { return ToFloat(static_cast<const T*>(pass)[at]); };
  float sum = cond;
  if (passes.uncond != nullptr) sum = sum + passes.cfg * (cond - load(passes.uncond));
  if (passes.perturbed != nullptr) sum = sum + passes.stg * (cond - load(passes.perturbed));
  if (passes.isolated != nullptr) sum = sum + passes.modality * (cond - load(passes.isolated));
  return sum;
}

/// Of every block of a row: sum and sum of squares of cond, then of the guided prediction.
constexpr int kMoments = 4;

template <typename T>
__global__ void GuideMoments(GuidedPasses passes, int64_t count, double* moments) {
  const int64_t begin = int64_t{blockIdx.x} * kSumBlock;
  const int64_t end = begin + kSumBlock < count ? begin + kSumBlock : count;
  const int64_t start = int64_t{blockIdx.y} * count;
  double sums[kMoments] = {};
  for (int64_t i = begin + threadIdx.x; i < end; i += kThreads) {
    const double cond = ToFloat(static_cast<const T*>(passes.cond)[start + i]);
    const double guided = Guided<T>(passes, start + i);
    sums[0] += cond;
    sums[1] += cond * cond;
    sums[2] += guided;
    sums[3] += guided * guided;
  }
  double* const row = moments + (int64_t{blockIdx.y} * gridDim.x + blockIdx.x) * kMoments;
  for (int m = 0; m < kMoments; ++m) {
    const double total = BlockSum(sums[m]);
    if (threadIdx.x == 0) row[m] = total;
  }
}

__device__ float Deviation(double sum, double squares, double count) {
  const double variance = (squares - sum * (sum / count)) / (count - 1.0);
  return static_cast<float>(sqrt(variance > 0.0 ? variance : 0.0));
}

__global__ void GuideFactors(const double* moments, int64_t blocks, int64_t count, float rescale,
                             float* factors) {
  const double* const row = moments + int64_t{blockIdx.x} * blocks * kMoments;
  double totals[kMoments];
  for (int m = 0; m < kMoments; ++m) totals[m] = RowTotal(row + m, blocks, kMoments);
  if (threadIdx.x != 0) return;
  const auto size = static_cast<double>(count);
  const float ratio = Deviation(totals[0], totals[1], size) / Deviation(totals[2], totals[3], size);
  factors[blockIdx.x] = rescale * ratio + (1.0f - rescale);
}

template <typename T>
__global__ void GuideKernel(GuidedPasses passes, const float* factors, T* y, int64_t count,
                            int64_t elements) {
  const int64_t at = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (at >= elements) return;
  const float guided = Guided<T>(passes, at);
  y[at] = FromFloat<T>(factors == nullptr ? guided : guided * factors[at / count]);
}

template <typename T>
__global__ void PartialDots(const T* a, const T* b, int64_t count, double* partial) {
  const int64_t begin = int64_t{blockIdx.x} * kSumBlock;
  const int64_t end = begin + kSumBlock < count ? begin + kSumBlock : count;
  const int64_t start = int64_t{blockIdx.y} * count;
  double sum = 0.0;
  for (int64_t i = begin + threadIdx.x; i < end; i += kThreads) {
    sum += static_cast<double>(ToFloat(a[start + i])) * ToFloat(b[start + i]);
  }
  const double total = BlockSum(sum);
  if (threadIdx.x == 0) partial[int64_t{blockIdx.y} * gridDim.x + blockIdx.x] = total;
}

__global__ void TotalDots(const double* partial, int64_t blocks, double* dots) {
  const double total = RowTotal(partial + int64_t{blockIdx.x} * blocks, blocks, 1);
  if (threadIdx.x == 0) dots[blockIdx.x] = total;
}

dim3 RowBlocks(int64_t rows, int64_t count) {
  return {BlocksOf(count, kSumBlock), static_cast<unsigned>(rows), 1};
}

}  // namespace

void LaunchWeightedSum(const std::array<SumTerm, kMaxSumTerms>& terms, int count, DType dtype,
                       void* y, int64_t tokens, int64_t channels, cudaStream_t stream) {
  const int64_t elements = tokens * channels;
  if (elements == 0) return;
  SumTerms copy;
  for (int i = 0; i < kMaxSumTerms; ++i) copy.terms[i] = terms[i];
  WeightedSumKernel<<<BlocksOf(elements, kThreads), kThreads, 0, stream>>>(copy, count, dtype, y,
                                                                           channels, elements);
}

int64_t GuideScratchDoubles(int64_t rows, int64_t count) {
  return rows * BlocksOf(count, kSumBlock) * kMoments;
}

void LaunchGuideFactors(DType dtype, const GuidedPasses& passes, float rescale, int64_t rows,
                        int64_t count, double* scratch, float* factors, cudaStream_t stream) {
  if (rows * count == 0) return;
  DispatchElement(dtype, [&](auto zero) {
    GuideMoments<decltype(zero)>
        <<<RowBlocks(rows, count), kThreads, 0, stream>>>(passes, count, scratch);
  });
  GuideFactors<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(
      scratch, BlocksOf(count, kSumBlock), count, rescale, factors);
}

void LaunchGuide(DType dtype, const GuidedPasses& passes, const float* factors, void* y,
                 int64_t rows, int64_t count, cudaStream_t stream) {
  const int64_t elements = rows * count;
  if (elements == 0) return;
  DispatchElement(dtype, [&](auto zero) {
    using T = decltype(zero);
    GuideKernel<T><<<BlocksOf(elements, kThreads), kThreads, 0, stream>>>(
        passes, factors, static_cast<T*>(y), count, elements);
  });
}

void LaunchBatchDot(DType dtype, const void* a, const void* b, int64_t rows, int64_t count,
                    double* scratch, double* dots, cudaStream_t stream) {
  if (rows * count == 0) return;
  DispatchElement(dtype, [&](auto zero) {
    using T = decltype(zero);
    PartialDots<T><<<RowBlocks(rows, count), kThreads, 0, stream>>>(
        static_cast<const T*>(a), static_cast<const T*>(b), count, scratch);
  });
  TotalDots<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(scratch,
                                                                  BlocksOf(count, kSumBlock), dots);
}

}  // namespace ltx::cuda
