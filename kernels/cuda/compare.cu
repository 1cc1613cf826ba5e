#include "kernels/cuda/compare.h"

namespace ltx::cuda {
namespace {

constexpr int kThreads = 256;
/// Enough to fill the largest GPU several times over.
constexpr int64_t kMaxBlocks = 2048;

__global__ void FindDifferenceKernel(const uint16_t* a, const uint16_t* b, int64_t count,
                                     int32_t* flag) {
  bool found = false;
  const int64_t stride = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += stride) {
    found = found || a[i] != b[i];
  }
  if (found) *flag = 1;
}

}  // namespace

void LaunchFindDifference(const void* a, const void* b, int64_t bytes, int32_t* flag,
                          cudaStream_t stream) {
  const int64_t count = bytes / 2;
  if (count == 0) return;
  const int64_t blocks = (count + kThreads - 1) / kThreads;
  FindDifferenceKernel<<<static_cast<unsigned>(blocks < kMaxBlocks ? blocks : kMaxBlocks), kThreads,
                         0, stream>>>(static_cast<const uint16_t*>(a),
                                      static_cast<const uint16_t*>(b), count, flag);
}

}  // namespace ltx::cuda
