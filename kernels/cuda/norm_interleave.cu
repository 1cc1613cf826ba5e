#include <cooperative_groups.h>
#include <cuda_pipeline.h>

#include <limits>

#include "kernels/cuda/element.cuh"
#include "kernels/cuda/hopper.cuh"
#include "kernels/cuda/norm_interleave.h"

// A cluster of blocks owns one row of all parts, each block a slice of it, and keeps it in shared
// memory: the row is read once. The blocks tell each other their parts of the mean squares. Then a
// warp turns a few columns at a time: it reads a word of every part, a lane for each, where an odd
// number of words from part to part keeps the lanes on different banks, and writes what belongs
// together.

namespace ltx::cuda {
namespace {

/// The most that every GPU with clusters places: slices are small enough for several blocks on a
/// multiprocessor, some of which load while others write.
constexpr int kCluster = 8;
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
/// Columns that a warp turns at a time. Of any number of parts they are whole packs.
constexpr int kColumns = 32;
/// What a block may have on Hopper, without the few that are declared.
constexpr int64_t kMostSharedBytes = 226 << 10;

/// Where things are in a block's shared memory, in words of 4 bytes.
struct Places {
  /// Words of a slice, and from one part's to the next.
  int words = 0;
  int pitch = 0;
  /// Where the warps' turned columns begin, and how many words each has.
  int turned = 0;
  int turned_words = 0;

  int64_t bytes() const { return 4 * (int64_t{turned} + int64_t{kWarps} * turned_words); }
};

Places PlacesFor(int64_t count, int64_t width, int64_t element_bytes) {
  Places places;
  places.words = static_cast<int>(width / kCluster * element_bytes / 4);
  places.pitch = places.words | 1;
  // A multiple of a pack.
  places.turned = static_cast<int>((count * places.pitch + 3) / 4 * 4);
  places.turned_words = static_cast<int>(kColumns * count * element_bytes / 4);
  return places;
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    NormInterleaveKernel(const __grid_constant__ NormInterleaveTask task, Places places) {
#ifdef LTX_HAS_SM90A
  constexpr int kElements = 4 / static_cast<int>(sizeof(T));
  extern __shared__ __align__(16) uint32_t shared[];
  __shared__ float squares[kMaxInterleaveParts];
  __shared__ float factors[kMaxInterleaveParts];
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
  const unsigned rank = cluster.block_rank();
  const int64_t row = blockIdx.x / kCluster;
  const int slice = places.words * kElements;
  const int64_t first = row * task.width + int64_t{rank} * slice;

  for (int part = warp; part < task.count; part += kWarps) {
    const auto* const from =
        reinterpret_cast<const uint32_t*>(static_cast<const T*>(task.parts.of[part]) + first);
    uint32_t* const to = shared + part * places.pitch;
    for (int word = lane; word < places.words; word += 32) {
      __pipeline_memcpy_async(to + word, from + word, sizeof(uint32_t));
    }
  }
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncwarp();
  for (int part = warp; part < task.count; part += kWarps) {
    const auto* const values = reinterpret_cast<const T*>(shared + part * places.pitch);
    float sum = 0.0f;
    for (int word = lane; word < places.words; word += 32) {
#pragma unroll
      for (int i = 0; i < kElements; ++i) {
        const float value = ToFloat(values[word * kElements + i]);
        sum += value * value;
      }
    }
    sum = SumLanes(sum);
    if (lane == 0) squares[part] = sum;
  }
  cluster.sync();
  for (int part = static_cast<int>(threadIdx.x); part < task.count; part += kThreads) {
    float sum = 0.0f;
    for (unsigned other = 0; other < kCluster; ++other) {
      sum += *cluster.map_shared_rank(squares + part, other);
    }
    factors[part] = 1.0f / sqrtf(sum / static_cast<float>(task.width) + task.epsilon);
  }
  // For this block's factors, and for the sums that others read here.
  cluster.sync();

  auto* const turned = reinterpret_cast<T*>(shared + places.turned + warp * places.turned_words);
  for (int column = warp * kColumns; column < slice; column += kWarps * kColumns) {
    for (int part = lane; part < task.count; part += 32) {
      const float factor = factors[part];
      const auto* const values = reinterpret_cast<const T*>(shared + part * places.pitch) + column;
#pragma unroll 4
      for (int word = 0; word < kColumns / kElements; ++word) {
        const auto packet =
            *reinterpret_cast<const Packet<T, kElements>*>(values + word * kElements);
#pragma unroll
        for (int i = 0; i < kElements; ++i) {
          turned[(word * kElements + i) * task.count + part] =
              FromFloat<T>(ToFloat(packet.values[i]) * factor);
        }
      }
    }
    __syncwarp();
    T* const to = static_cast<T*>(task.to) + (first + column) * task.count;
    for (int i = lane * kPacketSize<T>; i < kColumns * task.count; i += 32 * kPacketSize<T>) {
      StorePack(to + i, LoadPack(turned + i));
    }
    __syncwarp();
  }
#endif
}

template <typename T>
cudaError_t LaunchAs(const NormInterleaveTask& task, cudaStream_t stream) {
  const Places places = PlacesFor(task.count, task.width, sizeof(T));
  const cudaError_t error =
      cudaFuncSetAttribute(NormInterleaveKernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           static_cast<int>(kMostSharedBytes));
  if (error != cudaSuccess) return error;
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {kCluster, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(task.rows * kCluster));
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = static_cast<size_t>(places.bytes());
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, NormInterleaveKernel<T>, task, places);
}

}  // namespace

bool SuitsNormInterleave(int64_t count, int64_t rows, int64_t width, DType dtype) {
  return count > 0 && count <= kMaxInterleaveParts && width > 0 &&
         width % (kCluster * kColumns) == 0 &&
         rows <= std::numeric_limits<int32_t>::max() / kCluster &&
         PlacesFor(count, width, SizeOf(dtype)).bytes() <= kMostSharedBytes;
}

cudaError_t LaunchNormInterleave(const NormInterleaveTask& task, cudaStream_t stream) {
  if (task.rows == 0) return cudaSuccess;
  cudaError_t error = cudaSuccess;
  DispatchElement(task.dtype, [&](auto zero) { error = LaunchAs<decltype(zero)>(task, stream); });
  return error;
}

}  // namespace ltx::cuda
