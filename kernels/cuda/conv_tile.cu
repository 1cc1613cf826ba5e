#include <algorithm>

#include "kernels/cuda/conv_tile.h"
#include "kernels/cuda/element.cuh"
#include "kernels/cuda/hopper.cuh"
#include "kernels/cuda/pad_source.cuh"
#include "kernels/cuda/tensor_map.h"

// An implicit matrix product. A block computes a tile of 256 output pixels of one frame by 128 (or
// 64) output channels. For each input frame and each 64 channels the copy engine brings the tile's
// input with its border once; every tap (kh, kw) then is a product with the same rows of shared
// memory, begun at another pixel. Zero padding is what the copy engine yields outside of the
// tensor, and padding in time is another frame index, so no padded copy of the input exists.
//
// The tile consists of four squares of 8 x 8 pixels: eight neighbouring pixels of a line are one
// group of eight rows of a descriptor, the lines of a square lie a constant distance apart.
//
// One warp issues copies, two groups of four warps compute; the kernel is persistent, so that the
// copies of the next tile run during the epilogue of this one.

namespace ltx::cuda {
namespace {

constexpr int kSquare = 8;
/// Channels per stage: 128 bytes, the width of the swizzle.
constexpr int kDepth = 64;
constexpr int kRowBytes = kDepth * 2;
constexpr int kInputStages = 2;
constexpr int kMostWeightStages = 6;
constexpr int kLeastWeightStages = 3;
constexpr int kGroups = 2;
constexpr int kThreads = 128 * (1 + kGroups);
/// A block's limit on Hopper, less the alignment and the barriers.
constexpr int kSharedBytes = 227 * 1024 - 1024 - 256;

struct TilePlan {
  int squares_h;
  int squares_w;
  int box_h;  // input lines and pixels of a tile
  int box_w;
  int tiles_h;
  int tiles_w;
  int tiles_n;
  int64_t tiles;
  int chunks;  // of kDepth channels
  int input_stage_bytes;
  int weight_stages;
};

int CeilDiv(int64_t a, int64_t b) { return static_cast<int>((a + b - 1) / b); }

TilePlan MakePlan(const ConvTileTask& task, int tile_channels) {
  constexpr int kShapes[3][2] = {{2, 2}, {1, 4}, {4, 1}};
  TilePlan best{};
  int64_t least = -1;
  for (const auto& shape : kShapes) {
    TilePlan plan{};
    plan.squares_h = shape[0];
    plan.squares_w = shape[1];
    plan.tiles_h = CeilDiv(task.output[1], kSquare * shape[0]);
    plan.tiles_w = CeilDiv(task.output[2], kSquare * shape[1]);
    plan.box_h = static_cast<int>(kSquare * shape[0] + task.dilation[1] * (task.kernel[1] - 1));
    plan.box_w = static_cast<int>(kSquare * shape[1] + task.dilation[2] * (task.kernel[2] - 1));
    const int64_t area = int64_t{plan.tiles_h} * plan.tiles_w;
    if (least >= 0 && area >= least) continue;
    least = area;
    best = plan;
  }
  best.tiles_n = CeilDiv(task.out_channels, tile_channels);
  best.tiles = least * best.tiles_n * task.output[0] * task.batch;
  best.chunks = CeilDiv(task.channels, kDepth);
  best.input_stage_bytes = CeilDiv(int64_t{best.box_h} * best.box_w * kRowBytes, 1024) * 1024;
  best.weight_stages =
      std::min((kSharedBytes - kInputStages * best.input_stage_bytes) / (tile_channels * kRowBytes),
               kMostWeightStages);
  return best;
}

/// What the kernel needs besides the tensor maps.
struct TileArguments {
  const float* bias;
  const BF16* residual;
  BF16* y;
  TilePlan plan;
  int out_channels;
  int output[3];
  int frames;  // of the input
  int kernel[3];
  int dilation[3];
  int pad_before[3];
  PadMode time_pad;
};

#ifdef LTX_HAS_SM90A

struct TilePlace {
  int n;
  int w;
  int h;
  int t;
  int batch;
};

/// Channel tiles vary fastest, so that blocks that run together share their input in the L2 cache.
__device__ __forceinline__ TilePlace PlaceTile(const TileArguments& arguments, int tile,
                                               int tile_channels) {
  const TilePlan& plan = arguments.plan;
  TilePlace place;
  place.n = tile % plan.tiles_n * tile_channels;
  tile /= plan.tiles_n;
  place.w = tile % plan.tiles_w * plan.squares_w * kSquare;
  tile /= plan.tiles_w;
  place.h = tile % plan.tiles_h * plan.squares_h * kSquare;
  tile /= plan.tiles_h;
  place.t = tile % arguments.output[0];
  place.batch = tile / arguments.output[0];
  return place;
}

/// The frame that stands at `position`; one outside of the tensor, which reads as zeros, for none.
__device__ __forceinline__ int SourceFrame(int position, int frames, PadMode mode) {
  const int frame = PadSource(position, frames, mode);
  return frame < 0 ? frames : frame;
}

/// Barriers and stages in shared memory.
struct TileShared {
  uint32_t input;
  uint32_t weight;
  uint32_t input_full;
  uint32_t input_empty;
  uint32_t weight_full;
  uint32_t weight_empty;
};

template <int kChannels>
__device__ __forceinline__ void ProduceTiles(const TileArguments& arguments,
                                             const CUtensorMap* input_map,
                                             const CUtensorMap* weight_map,
                                             const TileShared& shared) {
  using namespace hopper;
  const TilePlan& plan = arguments.plan;
  const int taps = arguments.kernel[1] * arguments.kernel[2];
  const uint32_t input_bytes = plan.box_h * plan.box_w * kRowBytes;
  constexpr uint32_t kWeightBytes = kChannels * kRowBytes;
  RingPosition input;
  RingPosition weight;
  for (int tile = blockIdx.x; tile < plan.tiles; tile += gridDim.x) {
    const TilePlace place = PlaceTile(arguments, tile, kChannels);
    for (int kt = 0; kt < arguments.kernel[0]; ++kt) {
      const int frame = SourceFrame(place.t + kt * arguments.dilation[0] - arguments.pad_before[0],
                                    arguments.frames, arguments.time_pad);
      for (int chunk = 0; chunk < plan.chunks; ++chunk) {
        const uint32_t input_full = shared.input_full + 8 * input.stage;
        Wait(shared.input_empty + 8 * input.stage, input.phase ^ 1);
        ArriveExpecting(input_full, input_bytes);
        CopyBox(shared.input + input.stage * plan.input_stage_bytes, input_map, input_full,
                chunk * kDepth, place.w - arguments.pad_before[2],
                place.h - arguments.pad_before[1], frame, place.batch);
        input.Advance(kInputStages);
        for (int tap = 0; tap < taps; ++tap) {
          const uint32_t weight_full = shared.weight_full + 8 * weight.stage;
          Wait(shared.weight_empty + 8 * weight.stage, weight.phase ^ 1);
          ArriveExpecting(weight_full, kWeightBytes);
          CopyBox(shared.weight + weight.stage * kWeightBytes, weight_map, weight_full,
                  chunk * kDepth, place.n, kt * taps + tap);
          weight.Advance(plan.weight_stages);
        }
      }
    }
  }
}

/// Lane q of each four gets from lane p its item q as item p.
__device__ __forceinline__ void TransposeQuad(float (&items)[4], int lane) {
  const bool odd = lane & 1;
  const bool high = lane & 2;
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
    const float received = __shfl_xor_sync(0xffffffffu, odd ? items[i] : items[i + 1], 1);
    (odd ? items[i] : items[i + 1]) = received;
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float received = __shfl_xor_sync(0xffffffffu, high ? items[i] : items[i + 2], 2);
    (high ? items[i] : items[i + 2]) = received;
  }
}

/// Index in the output of a row (pixel) of a square, or -1 outside of it.
__device__ __forceinline__ int PixelOf(const TileArguments& arguments, const TilePlace& place,
                                       int square, int row) {
  const int h = place.h + square / arguments.plan.squares_w * kSquare + row / kSquare;
  const int w = place.w + square % arguments.plan.squares_w * kSquare + row % kSquare;
  if (h >= arguments.output[1] || w >= arguments.output[2]) return -1;
  const int frame = place.batch * arguments.output[0] + place.t;
  return (frame * arguments.output[1] + h) * arguments.output[2] + w;
}

/// Brings a tile's residual into the L2 cache while the sums are formed; a pixel per thread.
template <int kChannels>
__device__ __forceinline__ void PrefetchResidual(const TileArguments& arguments,
                                                 const TilePlace& place) {
  constexpr int kLine = 128 / sizeof(BF16);
  const int thread = threadIdx.x;
  const int pixel =
      PixelOf(arguments, place, thread / (kSquare * kSquare), thread % (kSquare * kSquare));
  if (pixel < 0) return;
  const BF16* residual = arguments.residual + int64_t{pixel} * arguments.out_channels;
  for (int channel = place.n; channel < min(place.n + kChannels, arguments.out_channels);
       channel += kLine) {
    hopper::PrefetchLine(residual + channel);
  }
}

/// Rounds eight channels and stores those that exist, with what is to be added to them.
template <bool kSilu>
__device__ __forceinline__ void StoreEight(const TileArguments& arguments, int64_t offset,
                                           int count, const float (&bias)[8],
                                           const Pack<BF16>& residual, float (&values)[8]) {
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    values[i] += bias[i] + ToFloat(residual.values[i]);
    if constexpr (kSilu) values[i] *= SigmoidAs<BF16>(values[i]);
  }
  const Pack<BF16> result = MakePack(values);
  if (arguments.out_channels % 8 == 0) {
    StorePack(arguments.y + offset, result);
    return;
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    if (i < count) arguments.y[offset + i] = result.values[i];
  }
}

__device__ __forceinline__ Pack<BF16> LoadResidual(const TileArguments& arguments, int64_t offset,
                                                   int count) {
  Pack<BF16> residual;
  if (arguments.out_channels % 8 == 0) return LoadPack(arguments.residual + offset);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    residual.values[i] = i < count ? arguments.residual[offset + i] : FromFloat<BF16>(0.0f);
  }
  return residual;
}

/// Stores the sums of a group's two squares. In wgmma's layout a thread holds, of rows r and r + 8,
/// channels 8 j + 2 (lane % 4) and the next. The residual of the next 32 channels is on its way
/// while these are stored.
template <int kChannels, bool kSilu>
__device__ __forceinline__ void StoreSquares(const TileArguments& arguments, const TilePlace& place,
                                             int square, const float (&sums)[2][kChannels / 2]) {
  const int lane = threadIdx.x % 32;
  int pixels[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = threadIdx.x / 32 % 4 * 16 + i % 2 * 8 + lane / 4;
    pixels[i] = PixelOf(arguments, place, square + i / 2, row);
  }
  const bool adds = arguments.residual != nullptr;
  Pack<BF16> zeros{};
  Pack<BF16> residual[4] = {zeros, zeros, zeros, zeros};
  const auto fetch = [&](int channel) {
    if (!adds || channel >= arguments.out_channels) return;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (pixels[i] >= 0) {
        residual[i] = LoadResidual(arguments, int64_t{pixels[i]} * arguments.out_channels + channel,
                                   arguments.out_channels - channel);
      }
    }
  };
  fetch(place.n + lane % 4 * 8);
#pragma unroll
  for (int block = 0; block < kChannels / 8; block += 4) {
    const int channel = place.n + (block + lane % 4) * 8;
    const int count = min(8, arguments.out_channels - channel);
    float bias[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      bias[i] = arguments.bias != nullptr && i < count ? __ldg(arguments.bias + channel + i) : 0.0f;
    }
    Pack<BF16> added[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) added[i] = residual[i];
    if (block + 4 < kChannels / 8) fetch(channel + 32);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float even[4];
      float odd[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        even[j] = sums[i / 2][(block + j) * 4 + i % 2 * 2];
        odd[j] = sums[i / 2][(block + j) * 4 + i % 2 * 2 + 1];
      }
      TransposeQuad(even, lane);
      TransposeQuad(odd, lane);
      if (pixels[i] < 0 || count <= 0) continue;
      float values[8];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        values[2 * j] = even[j];
        values[2 * j + 1] = odd[j];
      }
      StoreEight<kSilu>(arguments, int64_t{pixels[i]} * arguments.out_channels + channel, count,
                        bias, added[i], values);
    }
  }
}

template <int kChannels, bool kSilu>
__device__ __forceinline__ void ConsumeTiles(const TileArguments& arguments,
                                             const TileShared& shared, int group) {
  using namespace hopper;
  const TilePlan& plan = arguments.plan;
  const int steps = arguments.kernel[0] * plan.chunks;
  constexpr uint32_t kWeightBytes = kChannels * kRowBytes;
  const uint32_t line_bytes = plan.box_w * kRowBytes;
  const bool signals = threadIdx.x % 32 == 0;
  const int square = 2 * group;
  uint32_t square_offset[2];
  for (int i = 0; i < 2; ++i) {
    square_offset[i] = (square + i) / plan.squares_w * kSquare * line_bytes +
                       (square + i) % plan.squares_w * kSquare * kRowBytes;
  }
  RingPosition input;
  RingPosition weight;
  for (int tile = blockIdx.x; tile < plan.tiles; tile += gridDim.x) {
    const TilePlace place = PlaceTile(arguments, tile, kChannels);
    if (arguments.residual != nullptr) PrefetchResidual<kChannels>(arguments, place);
    float sums[2][kChannels / 2];
    bool accumulate = false;
    uint32_t used_weight = 0;  // barriers of the stages whose products may still run
    uint32_t used_input = 0;
    for (int step = 0; step < steps; ++step) {
      Wait(shared.input_full + 8 * input.stage, input.phase);
      const uint32_t base = shared.input + input.stage * plan.input_stage_bytes;
      for (int kh = 0; kh < arguments.kernel[1]; ++kh) {
        for (int kw = 0; kw < arguments.kernel[2]; ++kw) {
          Wait(shared.weight_full + 8 * weight.stage, weight.phase);
          const uint32_t start = base + kh * arguments.dilation[1] * line_bytes +
                                 kw * arguments.dilation[2] * kRowBytes;
          const uint64_t a0 = SwizzledMatrix(start + square_offset[0], line_bytes);
          const uint64_t a1 = SwizzledMatrix(start + square_offset[1], line_bytes);
          const uint64_t b =
              SwizzledMatrix(shared.weight + weight.stage * kWeightBytes, 8 * kRowBytes);
          WgmmaFence();
#pragma unroll
          for (int k = 0; k < kDepth / 16; ++k) {
            // 16 channels are 32 bytes, 2 in the descriptor's unit.
            Wgmma(sums[0], a0 + 2 * k, b + 2 * k, accumulate);
            Wgmma(sums[1], a1 + 2 * k, b + 2 * k, accumulate);
            accumulate = true;
          }
          WgmmaCommit();
          // All products but those just issued are done: their stages may be filled again.
          WgmmaWait<1>();
          if (signals && used_weight != 0) Arrive(used_weight);
          if (signals && used_input != 0) Arrive(used_input);
          used_input = 0;
          used_weight = shared.weight_empty + 8 * weight.stage;
          weight.Advance(plan.weight_stages);
        }
      }
      used_input = shared.input_empty + 8 * input.stage;
      input.Advance(kInputStages);
    }
    WgmmaWait<0>();
    HoldRegisters(sums[0]);
    HoldRegisters(sums[1]);
    if (signals) {
      Arrive(used_weight);
      Arrive(used_input);
    }
    StoreSquares<kChannels, kSilu>(arguments, place, square, sums);
  }
}

#endif  // LTX_HAS_SM90A

template <int kChannels, bool kSilu>
__global__ void __launch_bounds__(kThreads, 1)
    ConvTiles(const __grid_constant__ TileArguments arguments,
              const __grid_constant__ CUtensorMap input_map,
              const __grid_constant__ CUtensorMap weight_map) {
#ifdef LTX_HAS_SM90A
  using namespace hopper;
  extern __shared__ uint8_t dynamic[];
  __shared__ alignas(8) uint64_t barriers[2 * (kInputStages + kMostWeightStages)];
  TileShared shared;
  shared.input = (SharedAddress(dynamic) + 1023) / 1024 * 1024;
  shared.weight = shared.input + kInputStages * arguments.plan.input_stage_bytes;
  shared.input_full = SharedAddress(barriers);
  shared.input_empty = shared.input_full + 8 * kInputStages;
  shared.weight_full = shared.input_empty + 8 * kInputStages;
  shared.weight_empty = shared.weight_full + 8 * kMostWeightStages;
  if (threadIdx.x == 0) {
    constexpr uint32_t kConsumingWarps = 4 * kGroups;
    for (int i = 0; i < kInputStages; ++i) {
      InitBarrier(shared.input_full + 8 * i, 1);
      InitBarrier(shared.input_empty + 8 * i, kConsumingWarps);
    }
    for (int i = 0; i < kMostWeightStages; ++i) {
      InitBarrier(shared.weight_full + 8 * i, 1);
      InitBarrier(shared.weight_empty + 8 * i, kConsumingWarps);
    }
    FenceBarrierInit();
  }
  __syncthreads();
  const int group = static_cast<int>(threadIdx.x / 128);
  if (group == kGroups) {
    LowerRegisters<40>();
    if (threadIdx.x == 128 * kGroups) {
      ProduceTiles<kChannels>(arguments, &input_map, &weight_map, shared);
    }
  } else {
    RaiseRegisters<232>();
    ConsumeTiles<kChannels, kSilu>(arguments, shared, group);
  }
#endif
}

template <int kChannels, bool kSilu>
cudaError_t LaunchOf(const ConvTileTask& task, int multiprocessors, cudaStream_t stream) {
  TileArguments arguments{};
  arguments.plan = MakePlan(task, kChannels);
  const TilePlan& plan = arguments.plan;
  arguments.bias = task.bias;
  arguments.residual = static_cast<const BF16*>(task.residual);
  arguments.y = static_cast<BF16*>(task.y);
  arguments.out_channels = static_cast<int>(task.out_channels);
  arguments.frames = static_cast<int>(task.input[0]);
  arguments.time_pad = task.time_pad;
  for (int i = 0; i < 3; ++i) {
    arguments.output[i] = static_cast<int>(task.output[i]);
    arguments.kernel[i] = static_cast<int>(task.kernel[i]);
    arguments.dilation[i] = static_cast<int>(task.dilation[i]);
    arguments.pad_before[i] = static_cast<int>(task.pad_before[i]);
  }
  CUtensorMap input_map;
  CUtensorMap weight_map;
  const int64_t line = task.input[2] * task.channels;
  const int64_t image = task.input[1] * line;
  const bool mapped = EncodeTensorMap(task.x,
                                      {{task.channels, 1, kDepth},
                                       {task.input[2], task.channels, plan.box_w},
                                       {task.input[1], line, plan.box_h},
                                       {task.input[0], image, 1},
                                       {task.batch, task.input[0] * image, 1}},
                                      &input_map) &&
                      EncodeTensorMap(task.weight,
                                      {{task.channels, 1, kDepth},
                                       {task.out_channels, task.channels, kChannels},
                                       {task.kernel[0] * task.kernel[1] * task.kernel[2],
                                        task.out_channels * task.channels, 1}},
                                      &weight_map);
  if (!mapped) return cudaErrorInvalidValue;
  const int bytes =
      1024 + kInputStages * plan.input_stage_bytes + plan.weight_stages * kChannels * kRowBytes;
  const cudaError_t error = cudaFuncSetAttribute(
      ConvTiles<kChannels, kSilu>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (error != cudaSuccess) return error;
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(plan.tiles, multiprocessors));
  ConvTiles<kChannels, kSilu>
      <<<blocks, kThreads, bytes, stream>>>(arguments, input_map, weight_map);
  return cudaGetLastError();
}

/// A tile of 64 channels wastes less where fewer than that are left.
int TileChannels(int64_t out_channels) {
  return (out_channels - 1) % 128 < 64 && out_channels < 256 ? 64 : 128;
}

}  // namespace

bool FitsConvTile(const ConvTileTask& task) {
  // The copy engine's limit on the extent of a box, and coordinates of 32 bits with room for pads.
  constexpr int kMostBox = 256;
  constexpr int64_t kMostExtent = int64_t{1} << 30;
  if (task.channels % 8 != 0) return false;
  if (task.activation != Activation::kNone && task.activation != Activation::kSilu) return false;
  int64_t pixels = task.batch;
  for (int i = 0; i < 3; ++i) {
    if (task.input[i] > kMostExtent) return false;
    pixels *= task.output[i];
  }
  if (pixels > kMostExtent) return false;
  const TilePlan plan = MakePlan(task, TileChannels(task.out_channels));
  return plan.box_h <= kMostBox && plan.box_w <= kMostBox && plan.tiles < kMostExtent &&
         plan.weight_stages >= kLeastWeightStages;
}

cudaError_t LaunchConvTile(const ConvTileTask& task, int multiprocessors, cudaStream_t stream) {
  const bool silu = task.activation == Activation::kSilu;
  if (TileChannels(task.out_channels) == 64) {
    return silu ? LaunchOf<64, true>(task, multiprocessors, stream)
                : LaunchOf<64, false>(task, multiprocessors, stream);
  }
  return silu ? LaunchOf<128, true>(task, multiprocessors, stream)
              : LaunchOf<128, false>(task, multiprocessors, stream);
}

}  // namespace ltx::cuda
