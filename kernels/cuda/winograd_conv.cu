#include <algorithm>

#include "kernels/cuda/element.cuh"
#include "kernels/cuda/hopper.cuh"
#include "kernels/cuda/tensor_map.h"
#include "kernels/cuda/winograd_conv.h"
#include "kernels/cuda/winograd_transform.h"

// An implicit matrix product as in conv_tile.cu, whose notes on squares of pixels hold here too. A
// block computes 128 pixels of two neighbouring frames by 128 channels. m1 and m2 are summed over
// all channels and spatial taps first; then their sum and difference take their places in the
// registers, and m0 and m3 are added on top: so two frames need no more sums than two direct ones.
//
// Each product has weights of its own, so a block needs twice the weights per operation that a
// direct convolution does. Two blocks with other pixels form a cluster: each fetches half of the
// weights for both.
//
// Of the copying group, one warp feeds the products, two others carry the tiles of the computing
// groups between global and shared memory: the residual in, the result out, beside the products of
// the next tile.

namespace ltx::cuda {
namespace {

constexpr int kSquare = 8;
constexpr int kSquares = 2;
/// Channels per stage: 128 bytes, the width of the swizzle.
constexpr int kDepth = 64;
constexpr int kRowBytes = kDepth * 2;
constexpr int kTileChannels = 128;
constexpr int kTaps = 9;
/// Squares side by side with their border, one way or the other.
constexpr int kInputBytes = (kSquare + 2) * (kSquares * kSquare + 2) * kRowBytes;
constexpr int kInputStageBytes = (kInputBytes + 1023) / 1024 * 1024;
constexpr int kInputStages = 2;
constexpr int kWeightBytes = kTileChannels * kRowBytes;
constexpr int kWeightStages = 7;
constexpr int kCluster = 2;
constexpr int kGroups = 2;
constexpr int kThreads = 128 * (1 + kGroups);
/// Of results: a square by 64 channels.
constexpr int kBoxBytes = kSquare * kSquare * kRowBytes;
constexpr int kHalves = kTileChannels / kDepth;
constexpr int kGroupBytes = 2 * kHalves * kBoxBytes;
constexpr int kSharedBytes =
    1024 + kInputStages * kInputStageBytes + kWeightStages * kWeightBytes + kGroups * kGroupBytes;
static_assert(kSharedBytes + 512 <= 227 * 1024, "a block's limit on Hopper, barriers included");
/// Outputs of depth-to-space per input position.
constexpr int kMostPhases = 8;

struct Arguments {
  const float* bias;
  bool adds;  // a residual
  int squares_h;
  int squares_w;
  int tiles_h;
  int tiles_w;
  int tiles_n;
  int pixel_tiles;
  int items;   // for a cluster
  int chunks;  // of kDepth channels
  int first_frame;
  int frames;
  int phases;
  int phase_channels;
  /// Phases below this one lack their first frame, and count frames from the second.
  int dropping_phases;
};

struct ResultMaps {
  CUtensorMap phase[kMostPhases];
};

int CeilDiv(int64_t a, int64_t b) { return static_cast<int>((a + b - 1) / b); }

/// The tiles of `pairs` pairs of frames.
Arguments MakeArguments(const WinogradConvTask& task, int64_t pairs) {
  Arguments arguments{};
  int64_t least = -1;
  for (const int squares_h : {1, 2}) {
    const int squares_w = kSquares / squares_h;
    const int tiles_h = CeilDiv(task.height, kSquare * squares_h);
    const int tiles_w = CeilDiv(task.width, kSquare * squares_w);
    const int64_t area = int64_t{tiles_h} * tiles_w;
    if (least >= 0 && area >= least) continue;
    least = area;
    arguments.squares_h = squares_h;
    arguments.squares_w = squares_w;
    arguments.tiles_h = tiles_h;
    arguments.tiles_w = tiles_w;
  }
  const auto& depth = task.depth_to_space;
  arguments.phases = static_cast<int>(depth[0] * depth[1] * depth[2]);
  arguments.phase_channels = static_cast<int>(task.out_channels / arguments.phases);
  arguments.dropping_phases = task.drop_first_frame ? arguments.phases / depth[0] : 0;
  arguments.tiles_n = arguments.phases * CeilDiv(arguments.phase_channels, kTileChannels);
  arguments.pixel_tiles = static_cast<int>(least * pairs);
  arguments.items = CeilDiv(arguments.pixel_tiles, kCluster) * arguments.tiles_n;
  arguments.chunks = CeilDiv(task.channels, kDepth);
  arguments.bias = task.bias;
  arguments.adds = task.residual != nullptr;
  arguments.first_frame = static_cast<int>(2 * task.first_pair);
  arguments.frames = static_cast<int>(task.frames);
  return arguments;
}

#ifdef LTX_HAS_SM90A

struct Place {
  bool exists;
  /// No tile of the cluster has a second frame, so that nobody needs m3.
  bool single;
  int pair;  // of the task
  int h;
  int w;
  int phase;
  int channel;  // of the phase
};

/// Channel tiles vary fastest, so that clusters that run together share their input in the L2
/// cache.
__device__ __forceinline__ Place PlaceOf(const Arguments& arguments, int item, uint32_t rank) {
  Place place;
  const int n = item % arguments.tiles_n;
  place.phase = n % arguments.phases;
  place.channel = n / arguments.phases * kTileChannels;
  int tile = item / arguments.tiles_n * kCluster + static_cast<int>(rank);
  place.exists = tile < arguments.pixel_tiles;
  // The cluster's first tile has its earliest frame.
  const int earliest = (tile - static_cast<int>(rank)) / (arguments.tiles_h * arguments.tiles_w);
  place.single = arguments.first_frame + 2 * earliest + 1 >= arguments.frames;
  place.w = tile % arguments.tiles_w * arguments.squares_w * kSquare;
  tile /= arguments.tiles_w;
  place.h = tile % arguments.tiles_h * arguments.squares_h * kSquare;
  place.pair = tile / arguments.tiles_h;
  return place;
}

/// The products in the order in which they are formed.
__device__ __forceinline__ int ProductAt(int half, int index) {
  return half == 0 ? 1 + index : 3 * index;
}
/// Of the weight, or of its sums for the two products that take those.
__device__ __forceinline__ int KernelBlockOf(int product) {
  return product == 0 ? 0 : product == 3 ? 2 : product - 1;
}

/// Barriers and stages in shared memory.
struct Shared {
  uint32_t input;
  uint32_t weight;
  uint32_t result;
  uint32_t input_full;
  uint32_t input_empty;
  uint32_t weight_full;
  uint32_t weight_empty;
  uint32_t result_ready;   // per group: empty, or holds the residual
  uint32_t result_staged;  // per group
};

__device__ __forceinline__ void FeedProducts(const Arguments& arguments,
                                             const CUtensorMap* input_map,
                                             const CUtensorMap* weight_map,
                                             const CUtensorMap* sums_map, const Shared& shared,
                                             uint32_t rank) {
  using namespace hopper;
  constexpr int kPart = kTileChannels / kCluster;
  hopper::RingPosition input;
  hopper::RingPosition weight;
  for (int item = blockIdx.x / kCluster; item < arguments.items; item += gridDim.x / kCluster) {
    const Place place = PlaceOf(arguments, item, rank);
    for (int step = 0; step < 2 * arguments.chunks * 2; ++step) {
      const int product = ProductAt(step / (2 * arguments.chunks), step % 2);
      if (product == 3 && place.single) continue;
      const CUtensorMap* const kernel_map = product == 1 || product == 2 ? sums_map : weight_map;
      const int channel = step / 2 % arguments.chunks * kDepth;
      const uint32_t input_full = shared.input_full + 8 * input.stage;
      Wait(shared.input_empty + 8 * input.stage, input.phase ^ 1);
      ArriveExpecting(input_full, kInputBytes);
      CopyBox(shared.input + input.stage * kInputStageBytes, input_map, input_full, channel,
              place.w - 1, place.h - 1, product, place.pair);
      input.Advance(kInputStages);
      for (int tap = 0; tap < kTaps; ++tap) {
        const uint32_t weight_full = shared.weight_full + 8 * weight.stage;
        // The stage is empty in both blocks.
        Wait(shared.weight_empty + 8 * weight.stage, weight.phase ^ 1);
        ArriveExpecting(weight_full, kWeightBytes);
        CopyBoxToPair(shared.weight + weight.stage * kWeightBytes + rank * (kPart * kRowBytes),
                      kernel_map, weight_full, channel, place.phase,
                      place.channel + static_cast<int>(rank) * kPart,
                      KernelBlockOf(product) * kTaps + tap);
        weight.Advance(kWeightStages);
      }
    }
  }
}

/// Carries the tiles of one group, a square of each.
__device__ __forceinline__ void CarryResults(const Arguments& arguments,
                                             const CUtensorMap* residual_map,
                                             const ResultMaps* result_maps, const Shared& shared,
                                             int group, uint32_t rank) {
  using namespace hopper;
  const uint32_t boxes = shared.result + group * kGroupBytes;
  const uint32_t ready = shared.result_ready + 8 * group;
  const uint32_t staged = shared.result_staged + 8 * group;
  uint32_t phase = 0;
  for (int item = blockIdx.x / kCluster; item < arguments.items; item += gridDim.x / kCluster) {
    const Place place = PlaceOf(arguments, item, rank);
    const int h = place.h + (arguments.squares_h > 1 ? group * kSquare : 0);
    const int w = place.w + (arguments.squares_w > 1 ? group * kSquare : 0);
    const int frame = arguments.first_frame + 2 * place.pair;
    if (arguments.adds) {
      ArriveExpecting(ready, kGroupBytes);
      for (int box = 0; box < 2 * kHalves; ++box) {
        CopyBox(boxes + box * kBoxBytes, residual_map, ready,
                place.channel + box % kHalves * kDepth, w, h, frame + box / kHalves);
      }
    } else {
      Arrive(ready);
    }
    Wait(staged, phase);
    phase ^= 1;
    const int dropped = place.phase < arguments.dropping_phases ? 1 : 0;
    for (int box = 0; box < 2 * kHalves; ++box) {
      const int channel = place.channel + box % kHalves * kDepth;
      const int t = frame + box / kHalves;
      if (place.exists && t < arguments.frames && t >= dropped &&
          channel < arguments.phase_channels) {
        StoreBox(boxes + box * kBoxBytes, &result_maps->phase[place.phase], channel, w, h,
                 t - dropped);
      }
    }
    WaitForStores();
  }
}

/// What a thread has of a group's sums: of rows r and r + 8, channels 8 j + 2 (lane % 4) and the
/// next.
constexpr int kChannelPairs = kTileChannels / 8;
using Sums = float[4 * kChannelPairs];

__device__ __forceinline__ void LoadBias(const Arguments& arguments, const Place& place,
                                         float2 (&bias)[kChannelPairs]) {
  const int first = place.channel + threadIdx.x % 4 * 2;
  const float* from = arguments.bias + first * arguments.phases + place.phase;
  // Keeps the addresses below from being held in registers that the products need.
  asm volatile("" : "+l"(from));
#pragma unroll
  for (int j = 0; j < kChannelPairs; ++j) {
    bias[j] = {0.0f, 0.0f};
    if (arguments.bias == nullptr || first + 8 * j >= arguments.phase_channels) continue;
    bias[j].x = __ldg(from);
    bias[j].y = __ldg(from + arguments.phases);
    from += 8 * arguments.phases;
  }
}

/// m1 and m2 become their sum and difference, each with the bias.
__device__ __forceinline__ void CombineProducts(const float2 (&bias)[kChannelPairs],
                                                Sums (&sums)[2]) {
#pragma unroll
  for (int i = 0; i < 4 * kChannelPairs; ++i) {
    const float added = i % 2 == 0 ? bias[i / 4].x : bias[i / 4].y;
    const float m1 = sums[0][i];
    const float m2 = sums[1][i];
    sums[0][i] = m1 + m2 + added;
    sums[1][i] = m1 - m2 + added;
  }
}

/// Adds the residual that lies in the group's boxes, if there is one, and leaves the results there,
/// rounded.
__device__ __forceinline__ void StageResults(bool adds, uint32_t boxes, const Sums (&sums)[2]) {
  const int lane = threadIdx.x % 32;
  const int row = threadIdx.x / 32 % 4 * 16 + lane / 4;
  uint32_t line = boxes + row * kRowBytes + lane % 4 * 4;
  // Keeps the addresses below from being held in registers that the products need.
  asm volatile("" : "+r"(line));
#pragma unroll
  for (int j = 0; j < kChannelPairs; ++j) {
    // The swizzle: pack j of row r lies where pack j xor r would.
    const uint32_t pack = static_cast<uint32_t>((j % 8) ^ (lane / 4)) * 16;
#pragma unroll
    for (int frame = 0; frame < 2; ++frame) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const uint32_t address =
            line + (frame * kHalves + j / 8) * kBoxBytes + i * 8 * kRowBytes + pack;
        float low = sums[frame][4 * j + 2 * i];
        float high = sums[frame][4 * j + 2 * i + 1];
        if (adds) {
          const uint32_t residual = hopper::LoadShared(address);
          low += __uint_as_float(residual << 16);
          high += __uint_as_float(residual & 0xffff0000u);
        }
        const __nv_bfloat162 rounded = __floats2bfloat162_rn(low, high);
        hopper::StoreShared(address, reinterpret_cast<const uint32_t&>(rounded));
      }
    }
  }
}

__device__ __forceinline__ void ComputeTiles(const Arguments& arguments, const Shared& shared,
                                             int group, uint32_t rank) {
  using namespace hopper;
  const int lane = threadIdx.x % 32;
  const uint32_t line_bytes = (arguments.squares_w * kSquare + 2) * kRowBytes;
  const uint32_t square = group * kSquare * (arguments.squares_h > 1 ? line_bytes : kRowBytes);
  const uint32_t boxes = shared.result + group * kGroupBytes;
  hopper::RingPosition input;
  hopper::RingPosition weight;
  uint32_t result_phase = 0;
  Sums sums[2];
  uint32_t used_weight = 0;  // barriers of the stages whose products may still run
  uint32_t used_input = 0;
  const auto release = [&] {
    // Weights came from both blocks.
    if (used_weight != 0 && lane < kCluster) ArriveAt(used_weight, lane);
    if (used_input != 0 && lane == 0) Arrive(used_input);
    used_weight = 0;
    used_input = 0;
  };
  for (int item = blockIdx.x / kCluster; item < arguments.items; item += gridDim.x / kCluster) {
    const Place place = PlaceOf(arguments, item, rank);
    for (int half = 0; half < 2; ++half) {
      bool accumulate = half == 1;
      for (int chunk = 0; chunk < arguments.chunks; ++chunk) {
#pragma unroll
        for (int index = 0; index < 2; ++index) {
          if (ProductAt(half, index) == 3 && place.single) continue;
          Wait(shared.input_full + 8 * input.stage, input.phase);
          const uint32_t base = shared.input + input.stage * kInputStageBytes + square;
#pragma unroll 1
          for (int tap = 0; tap < kTaps; ++tap) {
            Wait(shared.weight_full + 8 * weight.stage, weight.phase);
            const uint64_t a =
                SwizzledMatrix(base + tap / 3 * line_bytes + tap % 3 * kRowBytes, line_bytes);
            const uint64_t b =
                SwizzledMatrix(shared.weight + weight.stage * kWeightBytes, 8 * kRowBytes);
            WgmmaFence();
#pragma unroll
            for (int k = 0; k < kDepth / 16; ++k) {
              // 16 channels are 32 bytes, 2 in the descriptor's unit.
              Wgmma(sums[index], a + 2 * k, b + 2 * k, accumulate || tap > 0 || k > 0);
            }
            WgmmaCommit();
            // All products but those just issued are done: their stages may be filled again.
            WgmmaWait<1>();
            release();
            used_weight = shared.weight_empty + 8 * weight.stage;
            weight.Advance(kWeightStages);
          }
          used_input = shared.input_empty + 8 * input.stage;
          input.Advance(kInputStages);
        }
        accumulate = true;
      }
      float2 bias[kChannelPairs];
      // On its way while the last products run.
      if (half == 0) LoadBias(arguments, place, bias);
      WgmmaWait<0>();
      HoldRegisters(sums[0]);
      HoldRegisters(sums[1]);
      release();
      if (half == 0) CombineProducts(bias, sums);
    }
    Wait(shared.result_ready + 8 * group, result_phase);
    result_phase ^= 1;
    StageResults(arguments.adds, boxes, sums);
    FenceCopyEngine();
    __syncwarp();
    if (lane == 0) Arrive(shared.result_staged + 8 * group);
  }
}

#endif  // LTX_HAS_SM90A

__global__ void __launch_bounds__(kThreads, 1)
    WinogradConv(const __grid_constant__ Arguments arguments,
                 const __grid_constant__ CUtensorMap input_map,
                 const __grid_constant__ CUtensorMap weight_map,
                 const __grid_constant__ CUtensorMap sums_map,
                 const __grid_constant__ CUtensorMap residual_map,
                 const __grid_constant__ ResultMaps result_maps) {
#ifdef LTX_HAS_SM90A
  using namespace hopper;
  extern __shared__ uint8_t dynamic[];
  __shared__ alignas(8) uint64_t barriers[2 * (kInputStages + kWeightStages + kGroups)];
  Shared shared;
  shared.input = (SharedAddress(dynamic) + 1023) / 1024 * 1024;
  shared.weight = shared.input + kInputStages * kInputStageBytes;
  shared.result = shared.weight + kWeightStages * kWeightBytes;
  shared.input_full = SharedAddress(barriers);
  shared.input_empty = shared.input_full + 8 * kInputStages;
  shared.weight_full = shared.input_empty + 8 * kInputStages;
  shared.weight_empty = shared.weight_full + 8 * kWeightStages;
  shared.result_ready = shared.weight_empty + 8 * kWeightStages;
  shared.result_staged = shared.result_ready + 8 * kGroups;
  if (threadIdx.x == 0) {
    constexpr uint32_t kComputingWarps = 4 * kGroups;
    for (int i = 0; i < kInputStages; ++i) {
      InitBarrier(shared.input_full + 8 * i, 1);
      InitBarrier(shared.input_empty + 8 * i, kComputingWarps);
    }
    for (int i = 0; i < kWeightStages; ++i) {
      InitBarrier(shared.weight_full + 8 * i, 1);
      InitBarrier(shared.weight_empty + 8 * i, kCluster * kComputingWarps);
    }
    for (int i = 0; i < kGroups; ++i) {
      InitBarrier(shared.result_ready + 8 * i, 1);
      InitBarrier(shared.result_staged + 8 * i, 4);
    }
    FenceBarrierInit();
  }
  // The other block's barriers are ready, too.
  SyncCluster();
  const uint32_t rank = ClusterRank();
  const int group = static_cast<int>(threadIdx.x / 128);
  if (group == kGroups) {
    LowerRegisters<40>();
    const int role = static_cast<int>(threadIdx.x - 128 * kGroups) / 32;
    if (threadIdx.x % 32 == 0) {
      if (role == kGroups) {
        FeedProducts(arguments, &input_map, &weight_map, &sums_map, shared, rank);
      } else if (role < kGroups) {
        CarryResults(arguments, &residual_map, &result_maps, shared, role, rank);
      }
    }
  } else {
    RaiseRegisters<232>();
    ComputeTiles(arguments, shared, group, rank);
  }
  // The other block may still write weights here.
  SyncCluster();
#endif
}

/// The maps of the result: one for each place that depth-to-space gives to channels of an input
/// position.
bool EncodeResults(const WinogradConvTask& task, const Arguments& arguments, ResultMaps* maps) {
  const auto& depth = task.depth_to_space;
  const int64_t c = arguments.phase_channels;
  const int64_t line = task.width * depth[2] * c;
  const int64_t image = task.height * depth[1] * line;
  for (int phase = 0; phase < arguments.phases; ++phase) {
    const int64_t i2 = phase % depth[2];
    const int64_t i1 = phase / depth[2] % depth[1];
    const int64_t i0 = phase / (depth[2] * depth[1]);
    // Where the first frame is dropped, phases with i0 = 0 begin at the second input frame, which
    // is output frame depth[0] - 1; the others lie one frame earlier than they would.
    const bool drops = phase < arguments.dropping_phases;
    const int64_t t = !task.drop_first_frame ? i0 : drops ? depth[0] - 1 : i0 - 1;
    auto* const first = static_cast<BF16*>(task.y) + t * image + i1 * line + i2 * c;
    if (!EncodeTensorMap(first,
                         {{c, 1, kDepth},
                          {task.width, depth[2] * c, kSquare},
                          {task.height, depth[1] * line, kSquare},
                          {task.frames - (drops ? 1 : 0), depth[0] * image, 1}},
                         &maps->phase[phase])) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool FitsWinogradConv(const WinogradConvTask& task) {
  constexpr int64_t kMostExtent = int64_t{1} << 30;
  constexpr int kPack = 8;
  const auto& depth = task.depth_to_space;
  int64_t phases = 1;
  for (const int64_t factor : depth) {
    if (factor != 1 && factor != 2) return false;
    phases *= factor;
  }
  if (task.out_channels % (kPack * phases) != 0 || task.channels % kPack != 0) return false;
  if (task.channels == 0 || task.out_channels == 0) return false;
  if (task.frames < (task.drop_first_frame ? 2 : 1) || task.height < 1 || task.width < 1) {
    return false;
  }
  if (task.drop_first_frame && depth[0] != 2) return false;
  return task.frames < kMostExtent / task.height && task.out_channels < kMostExtent &&
         task.frames * task.height < kMostExtent / task.width &&
         MakeArguments(task, task.frames).items < kMostExtent;
}

int64_t WinogradRounds(const WinogradConvTask& task, int64_t pairs, int multiprocessors) {
  return CeilDiv(MakeArguments(task, pairs).items, multiprocessors / kCluster);
}

cudaError_t LaunchWinogradConv(const WinogradConvTask& task, int multiprocessors,
                               cudaStream_t stream) {
  const Arguments arguments = MakeArguments(task, task.pairs);
  if (arguments.items == 0) return cudaSuccess;
  const int64_t c = task.channels;
  const int64_t line = task.width * c;
  const int64_t image = task.height * line;
  CUtensorMap input_map;
  CUtensorMap weight_map;
  CUtensorMap sums_map;
  CUtensorMap residual_map{};
  ResultMaps result_maps{};
  const int64_t n = task.out_channels;
  const auto encode_kernel = [&](const void* blocks, int64_t count, CUtensorMap* map) {
    return EncodeTensorMap(
        blocks,
        {{c, 1, kDepth},
         {arguments.phases, c, 1},
         {arguments.phase_channels, arguments.phases * c, kTileChannels / kCluster},
         {count * kTaps, n * c, 1}},
        map);
  };
  bool mapped = EncodeTensorMap(task.factors,
                                {{c, 1, kDepth},
                                 {task.width, c, arguments.squares_w * kSquare + 2},
                                 {task.height, line, arguments.squares_h * kSquare + 2},
                                 {4, image, 1},
                                 {task.pairs, 4 * image, 1}},
                                &input_map) &&
                encode_kernel(task.weight, 3, &weight_map) &&
                encode_kernel(task.sums, kWinogradSums, &sums_map) &&
                EncodeResults(task, arguments, &result_maps);
  if (mapped && arguments.adds) {
    mapped = EncodeTensorMap(task.residual,
                             {{n, 1, kDepth},
                              {task.width, n, kSquare},
                              {task.height, task.width * n, kSquare},
                              {task.frames, task.height * task.width * n, 1}},
                             &residual_map);
  }
  if (!mapped) return cudaErrorInvalidValue;
  const cudaError_t error =
      cudaFuncSetAttribute(WinogradConv, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  if (error != cudaSuccess) return error;
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {kCluster, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(kCluster * std::min(arguments.items, multiprocessors / kCluster));
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = kSharedBytes;
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, WinogradConv, arguments, input_map, weight_map, sums_map,
                            residual_map, result_maps);
}

}  // namespace ltx::cuda
