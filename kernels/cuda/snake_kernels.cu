#include <algorithm>

#include "kernels/cuda/snake_kernels.h"

namespace ltx::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kTaps = 12;
/// Output samples and most channels of a tile. The tile's input and its up-sampled, activated
/// signal take 28 KB of shared memory: several blocks per multiprocessor.
constexpr int kSamples = 64;
constexpr int kChannels = 32;
/// Up-sampled samples that an output reaches back and forth, and samples of x that an up-sampled
/// pair reaches to either side.
constexpr int kDownBefore = 5;
constexpr int kDownAfter = 6;
constexpr int kUpReach = 3;
constexpr int kActivated = 2 * (kSamples - 1) + kDownBefore + kDownAfter + 1;
constexpr int kInputs = kSamples + 2 * kUpReach + (kDownBefore + 1) / 2 + (kDownAfter + 1) / 2;

__global__ void __launch_bounds__(kThreads) SnakeTiles(const __grid_constant__ SnakeTask task) {
  __shared__ float inputs[kInputs * kChannels];
  __shared__ float activated[kActivated * kChannels];
  __shared__ float up[kTaps];
  __shared__ float down[kTaps];
  if (threadIdx.x < kTaps) {
    // Zeros are stuffed between the samples, which halves the mean.
    up[threadIdx.x] = 2.0f * task.up[threadIdx.x];
    down[threadIdx.x] = task.down[threadIdx.x];
  }
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * kSamples;
  const int first_channel = blockIdx.y * kChannels;
  const int channels = min(kChannels, static_cast<int>(task.channels) - first_channel);
  const int64_t plane = blockIdx.z * task.length * task.channels + first_channel;
  const float* x = task.x + plane;
  float* y = task.y + plane;

  const int64_t input_first = begin - kUpReach - (kDownBefore + 1) / 2;
  for (int item = threadIdx.x; item < kInputs * channels; item += kThreads) {
    const int sample = item / channels;
    const int64_t t = min(max(input_first + sample, int64_t{0}), task.length - 1);
    inputs[item] = x[t * task.channels + (item - sample * channels)];
  }
  __syncthreads();

  const int64_t activated_first = 2 * begin - kDownBefore;
  for (int item = threadIdx.x; item < kActivated * channels; item += kThreads) {
    const int sample = item / channels;
    const int c = item - sample * channels;
    // Beyond its ends the activated signal repeats its last sample.
    const int64_t at = min(max(activated_first + sample, int64_t{0}), 2 * task.length - 1);
    // u[2i] = sum over e = -3..2 of f[5 - 2e] x[i + e]; u[2i + 1] = sum over e = -2..3 of
    // f[6 - 2e] x[i + e].
    const bool odd = at % 2 != 0;
    const int64_t lowest = at / 2 - kUpReach + (odd ? 1 : 0);
    const float* around = inputs + (lowest - input_first) * channels + c;
    float u = 0.0f;
#pragma unroll
    for (int e = 0; e < kTaps / 2; ++e) {
      u = fmaf(odd ? up[10 - 2 * e] : up[11 - 2 * e], around[e * channels], u);
    }
    const float sine = sinf(task.alpha[first_channel + c] * u);
    activated[item] = fmaf(sine * sine, task.inverse_beta[first_channel + c], u);
  }
  __syncthreads();

  const int samples = static_cast<int>(min(int64_t{kSamples}, task.length - begin));
  for (int item = threadIdx.x; item < samples * channels; item += kThreads) {
    const int sample = item / channels;
    const int c = item - sample * channels;
    const float* window = activated + 2 * sample * channels + c;
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < kTaps; ++k) sum = fmaf(down[k], window[k * channels], sum);
    y[(begin + sample) * task.channels + c] = sum;
  }
}

}  // namespace

cudaError_t LaunchSnake(const SnakeTask& task, cudaStream_t stream) {
  if (task.batch * task.length * task.channels == 0) return cudaSuccess;
  const dim3 grid(static_cast<unsigned>((task.length + kSamples - 1) / kSamples),
                  static_cast<unsigned>((task.channels + kChannels - 1) / kChannels),
                  static_cast<unsigned>(task.batch));
  SnakeTiles<<<grid, kThreads, 0, stream>>>(task);
  return cudaGetLastError();
}

}  // namespace ltx::cuda
