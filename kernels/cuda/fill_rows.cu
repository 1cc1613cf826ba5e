#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/fill_rows.h"

namespace ltx::cuda {
namespace {

constexpr int kThreads = 256;

template <typename T, Activation kActivation>
__global__ void FillRows(const T* row, int64_t columns, int64_t count, T* y) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= count) return;
  const float value = row == nullptr ? 0.0f : ToFloat(row[i % columns]);
  y[i] = FromFloat<T>(Activate<kActivation>(value));
}

}  // namespace

void LaunchFillRows(const void* row, int64_t rows, int64_t columns, DType dtype,
                    Activation activation, void* y, cudaStream_t stream) {
  const int64_t count = rows * columns;
  if (count == 0) return;
  const auto blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
  DispatchElement(dtype, [&](auto zero) {
    using T = decltype(zero);
    DispatchActivation(activation, [&](auto constant) {
      FillRows<T, decltype(constant)::value><<<blocks, kThreads, 0, stream>>>(
          static_cast<const T*>(row), columns, count, static_cast<T*>(y));
    });
  });
}

}  // namespace ltx::cuda
