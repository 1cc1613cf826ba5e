#include <algorithm>

#include "kernels/cuda/element.cuh"
#include "kernels/cuda/pad_source.cuh"
#include "kernels/cuda/row_team.h"
#include "kernels/cuda/winograd_transform.h"

namespace ltx::cuda {
namespace {

constexpr int kCount = kPacketSize<BF16>;
constexpr int kTaps = 3;
/// Most packs of a position that a thread holds, in four frames: 4 packs are 128 registers.
constexpr int kMostPacks = 4;
constexpr int kMostTeam = 32;
/// Threads that keep enough loads in flight on the largest GPUs: 2048 on each of 132 processors.
constexpr int64_t kEnoughThreads = 132 * 2048;
/// A segment of time reads two frames more than it has; of this many pairs that is an eighth.
constexpr int64_t kLeastSegment = 8;

/// Elements of a block of the weight that a block of threads transforms.
constexpr int64_t kWeightElements = int64_t{kRowThreads} * kCount;

__device__ __forceinline__ void TransformWeight(const WinogradWeightTask& task, int64_t part) {
  const int64_t item = part * kWeightElements + threadIdx.x * kCount;
  if (item >= task.block) return;
  const auto* from = static_cast<const BF16*>(task.weight) + item;
  auto* to = static_cast<BF16*>(task.sums) + item;
  float taps[kTaps][kCount];
#pragma unroll
  for (int tap = 0; tap < kTaps; ++tap) Unpack(LoadPack(from + tap * task.block), taps[tap]);
  float sums[kWinogradSums][kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const float outer = taps[0][i] + taps[2][i];
    sums[0][i] = 0.5f * (outer + taps[1][i]);
    sums[1][i] = 0.5f * (outer - taps[1][i]);
  }
#pragma unroll
  for (int sum = 0; sum < kWinogradSums; ++sum) {
    StorePack(to + sum * task.block, MakePack(sums[sum]));
  }
}

/// What a thread has of a position in one frame.
template <int kPacks>
struct Held {
  float values[kPacks][kCount];
};

/// A team of lanes walks along time at one position, so that every frame is read once.
template <int kPacks>
class Walk {
 public:
  __device__ Walk(const WinogradInputTask& task, int team)
      : task_(task),
        team_(team),
        last_(static_cast<int>(task.output_frames + kTaps - 2 - task.pad_before)) {
    const int64_t position =
        static_cast<int64_t>(blockIdx.x) * (kRowThreads / team) + threadIdx.x / team;
    const int lane = threadIdx.x % team;
    first_ = position * task.channels + lane * kCount;
    if (position < task.positions) packs_ = static_cast<int>(task.channels) / kCount - lane;
  }

  /// Starts to read the frame that stands at `time`; of times behind the last that counts, the
  /// last.
  __device__ __forceinline__ void Fetch(int time, Pack<BF16> (&raw)[kPacks]) const {
    const int frame = PadSource(min(time, last_), static_cast<int>(task_.frames), task_.pad_mode);
    const auto* from =
        static_cast<const BF16*>(task_.x) + frame * (task_.positions * task_.channels) + first_;
#pragma unroll
    for (int j = 0; j < kPacks; ++j) {
      raw[j] = Pack<BF16>{};
      if (frame >= 0 && j * team_ < packs_) raw[j] = LoadPack(from + j * team_ * kCount);
    }
  }

  __device__ __forceinline__ void Prepare(const Pack<BF16> (&raw)[kPacks],
                                          Held<kPacks>* held) const {
#pragma unroll
    for (int j = 0; j < kPacks; ++j) Unpack(raw[j], held->values[j]);
    if (task_.normalizes) {
      float sum = 0.0f;
#pragma unroll
      for (int j = 0; j < kPacks; ++j) {
#pragma unroll
        for (int i = 0; i < kCount; ++i) sum += held->values[j][i] * held->values[j][i];
      }
      sum = SumLanes(sum, team_);
      const float inverse = 1.0f / sqrtf(sum / static_cast<float>(task_.channels) + task_.epsilon);
#pragma unroll
      for (int j = 0; j < kPacks; ++j) {
#pragma unroll
        for (int i = 0; i < kCount; ++i) held->values[j][i] *= inverse;
      }
    }
    if (!task_.silu) return;
#pragma unroll
    for (int j = 0; j < kPacks; ++j) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) held->values[j][i] *= SigmoidAs<BF16>(held->values[j][i]);
    }
  }

  __device__ __forceinline__ void Store(int64_t pair, const Held<kPacks> (&d)[4]) const {
    const int64_t step = task_.positions * task_.channels;
    auto* to = static_cast<BF16*>(task_.out) + pair * kWinogradProducts * step + first_;
#pragma unroll
    for (int j = 0; j < kPacks; ++j) {
      if (j * team_ >= packs_) continue;
      float factors[kWinogradProducts][kCount];
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        factors[0][i] = d[0].values[j][i] - d[2].values[j][i];
        factors[1][i] = d[1].values[j][i] + d[2].values[j][i];
        factors[2][i] = d[2].values[j][i] - d[1].values[j][i];
        factors[3][i] = d[3].values[j][i] - d[1].values[j][i];
      }
#pragma unroll
      for (int p = 0; p < kWinogradProducts; ++p) {
        StorePack(to + p * step + j * team_ * kCount, MakePack(factors[p]));
      }
    }
  }

 private:
  const WinogradInputTask& task_;
  const int team_;
  /// The last position in time that an output reads.
  const int last_;
  /// Of the lane's first pack in a frame.
  int64_t first_;
  /// Packs from there to the end of the position's channels; none behind the last position.
  int packs_ = 0;
};

/// blockIdx.y counts segments of `segment` pairs; the blocks from blockIdx.x = `blocks` on
/// transform the weight. Four blocks with a pack each, two with two of them, have the loads in
/// flight that fill the memory's latency.
template <int kPacks>
__global__ void __launch_bounds__(kRowThreads, kPacks < kMostPacks ? 4 / kPacks : 1)
    Transform(const __grid_constant__ WinogradInputTask task,
              const __grid_constant__ WinogradWeightTask weight, unsigned blocks, int team,
              int segment) {
  if (blockIdx.x >= blocks) {
    TransformWeight(weight, int64_t{blockIdx.x - blocks} * gridDim.y + blockIdx.y);
    return;
  }
  const Walk<kPacks> walk(task, team);
  const int first = static_cast<int>(blockIdx.y) * segment;
  const int end = min(first + segment, static_cast<int>(task.pairs));
  int time = static_cast<int>(2 * (task.first_pair + first) - task.pad_before);
  Pack<BF16> raw[2][kPacks];
  Held<kPacks> d[4];
  walk.Fetch(time, raw[0]);
  walk.Fetch(time + 1, raw[1]);
  walk.Prepare(raw[0], &d[0]);
  walk.Prepare(raw[1], &d[1]);
  walk.Fetch(time + 2, raw[0]);
  walk.Fetch(time + 3, raw[1]);
  for (int pair = first; pair < end; ++pair) {
    walk.Prepare(raw[0], &d[2]);
    walk.Prepare(raw[1], &d[3]);
    // The next pair is on its way while this one is stored.
    time += 2;
    if (pair + 1 < end) {
      walk.Fetch(time + 2, raw[0]);
      walk.Fetch(time + 3, raw[1]);
    }
    walk.Store(pair, d);
    d[0] = d[2];
    d[1] = d[3];
  }
}

template <int kPacks>
void Launch(const WinogradInputTask& task, const WinogradWeightTask& weight, int team,
            cudaStream_t stream) {
  const unsigned blocks = BlocksFor(task.positions, team);
  const int64_t threads = int64_t{blocks} * kRowThreads;
  const int64_t wanted = (kEnoughThreads + threads - 1) / threads;
  const int64_t segment =
      std::min(task.pairs, std::max((task.pairs + wanted - 1) / wanted, kLeastSegment));
  const auto segments = static_cast<unsigned>((task.pairs + segment - 1) / segment);
  const int64_t parts = (weight.block + kWeightElements - 1) / kWeightElements;
  const auto weight_blocks = static_cast<unsigned>((parts + segments - 1) / segments);
  Transform<kPacks><<<dim3(blocks + weight_blocks, segments), kRowThreads, 0, stream>>>(
      task, weight, blocks, team, static_cast<int>(segment));
}

}  // namespace

bool FitsWinogradInput(int64_t channels) {
  return channels % kCount == 0 && channels <= int64_t{kMostTeam} * kMostPacks * kCount;
}

cudaError_t LaunchWinogradTransforms(const WinogradInputTask& input,
                                     const WinogradWeightTask& weight, cudaStream_t stream) {
  if (input.pairs == 0 || input.positions == 0) return cudaSuccess;
  const int64_t packs = input.channels / kCount;
  const int team = std::min(TeamFor(packs, 1), kMostTeam);
  if (packs <= team) {
    Launch<1>(input, weight, team, stream);
  } else if (packs <= 2 * team) {
    Launch<2>(input, weight, team, stream);
  } else {
    Launch<kMostPacks>(input, weight, team, stream);
  }
  return cudaGetLastError();
}

}  // namespace ltx::cuda
