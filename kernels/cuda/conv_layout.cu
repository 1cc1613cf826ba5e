#include <algorithm>

#include "kernels/cuda/conv_layout.h"
#include "kernels/cuda/element.cuh"
#include "kernels/cuda/pad_source.cuh"

namespace ltx::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostBlocks = 1 << 16;

unsigned BlocksOf(int64_t items) {
  return static_cast<unsigned>(std::min((items + kThreads - 1) / kThreads, kMostBlocks));
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    PackConvWeight(const __grid_constant__ PackConvWeightTask task, int64_t items) {
  const auto* weight = static_cast<const T*>(task.weight);
  auto* out = static_cast<T*>(task.out);
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; item < items;
       item += static_cast<int64_t>(gridDim.x) * kThreads) {
    const int64_t c = item % task.channels;
    const int64_t rest = item / task.channels;
    const int64_t n = rest % task.out_channels;
    const int64_t tap = rest / task.out_channels;
    out[item] = weight[n * task.out_stride + c * task.in_stride + tap];
  }
}

__global__ void __launch_bounds__(kThreads)
    PadImages(const __grid_constant__ PadImagesTask task, int64_t items) {
  const auto* x = static_cast<const BF16*>(task.x);
  auto* out = static_cast<BF16*>(task.out);
  constexpr int kCount = kPacketSize<BF16>;
  const int64_t packs = task.channels / kCount;
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; item < items;
       item += static_cast<int64_t>(gridDim.x) * kThreads) {
    const int64_t channel = item % packs * kCount;
    int64_t rest = item / packs;
    const auto w = static_cast<int>(rest % task.output[1]);
    rest /= task.output[1];
    const auto h = static_cast<int>(rest % task.output[0]);
    const int64_t image = rest / task.output[0];
    const int from_h = PadSource(h - static_cast<int>(task.before[0]),
                                 static_cast<int>(task.input[0]), task.mode[0]);
    const int from_w = PadSource(w - static_cast<int>(task.before[1]),
                                 static_cast<int>(task.input[1]), task.mode[1]);
    Pack<BF16> pack{};
    if (from_h >= 0 && from_w >= 0) {
      const int64_t pixel = (image * task.input[0] + from_h) * task.input[1] + from_w;
      pack = LoadPack(x + pixel * task.channels + channel);
    }
    StorePack(out + item * kCount, pack);
  }
}

}  // namespace

cudaError_t LaunchPackConvWeight(const PackConvWeightTask& task, cudaStream_t stream) {
  const int64_t items = task.taps * task.out_channels * task.channels;
  if (items == 0) return cudaSuccess;
  if (task.bf16) {
    PackConvWeight<BF16><<<BlocksOf(items), kThreads, 0, stream>>>(task, items);
  } else {
    PackConvWeight<float><<<BlocksOf(items), kThreads, 0, stream>>>(task, items);
  }
  return cudaGetLastError();
}

cudaError_t LaunchPadImages(const PadImagesTask& task, cudaStream_t stream) {
  const int64_t items =
      task.images * task.output[0] * task.output[1] * task.channels / kPacketSize<BF16>;
  if (items == 0) return cudaSuccess;
  PadImages<<<BlocksOf(items), kThreads, 0, stream>>>(task, items);
  return cudaGetLastError();
}

}  // namespace ltx::cuda
