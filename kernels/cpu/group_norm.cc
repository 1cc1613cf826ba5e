#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/fast_math.h"
#include "kernels/cpu/op_scratch.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/vector.h"
#include "kernels/op_check.h"
#include "kernels/operand_check.h"
#include "kernels/status_macros.h"

namespace ltx::cpu {
namespace {

/// Positions whose per-channel sums are kept in f32 before they go to f64: few enough for rounding
/// not to show. Also the unit of parallel work, so that results do not depend on the thread count.
constexpr int64_t kBlockPositions = 64;

int64_t BlocksOf(int64_t positions) { return (positions + kBlockPositions - 1) / kBlockPositions; }

/// One batch row: `positions` x `channels`.
template <typename T>
struct GroupNormInput {
  const T* x;
  int64_t positions;
  int64_t channels;
  int64_t groups;
  int64_t blocks() const { return BlocksOf(positions); }
};

/// sums[block, group] = sum over the block's positions and the group's channels of (x - mean)^power
/// for power 1 or 2; mean [groups]. `channel_sums` [blocks, channels] is scratch.
template <int kPower, typename T>
void BlockSums(int threads, const GroupNormInput<T>& input, const float* mean, float* channel_sums,
               double* sums) {
  const int64_t channels = input.channels;
  const int64_t width = channels / input.groups;
  ParallelFor(threads, input.blocks(), RowGrain(kCheapGrain, kBlockPositions * channels),
              [&](int64_t begin, int64_t end) {
                for (int64_t block = begin; block < end; ++block) {
                  const int64_t first = block * kBlockPositions;
                  const int64_t last = std::min(first + kBlockPositions, input.positions);
                  float* row_sums = channel_sums + block * channels;
                  ForEachGroup(channels, [&](int64_t c, auto lanes) {
                    const Vec centre = lanes.Load(mean + c);
                    Vec sum = Zero();
                    for (int64_t p = first; p < last; ++p) {
                      const Vec v = lanes.Load(input.x + p * channels + c) - centre;
                      sum = sum + (kPower == 2 ? v * v : v);
                    }
                    lanes.Store(row_sums + c, sum);
                  });
                  for (int64_t g = 0; g < input.groups; ++g) {
                    double sum = 0;
                    for (int64_t c = g * width; c < (g + 1) * width; ++c) sum += row_sums[c];
                    sums[block * input.groups + g] = sum;
                  }
                }
              });
}

/// Sum over the blocks of sums[block, group].
double TotalOf(const double* sums, int64_t blocks, int64_t groups, int64_t group) {
  double total = 0;
  for (int64_t block = 0; block < blocks; ++block) total += sums[block * groups + group];
  return total;
}

/// Scratch of one batch row.
struct GroupNormScratch {
  double* sums;         // [blocks, groups]
  float* channel_sums;  // [blocks, channels]
  float* mean;          // [channels]
  float* factor;        // [channels], inverse standard deviation times weight
};

template <typename T>
void Moments(int threads, const GroupNormInput<T>& input, const T* weight, float epsilon,
             const GroupNormScratch& scratch) {
  const int64_t width = input.channels / input.groups;
  const double count = static_cast<double>(width) * static_cast<double>(input.positions);
  std::fill_n(scratch.mean, input.channels, 0.0f);
  BlockSums<1>(threads, input, scratch.mean, scratch.channel_sums, scratch.sums);
  for (int64_t g = 0; g < input.groups; ++g) {
    const double mean = TotalOf(scratch.sums, input.blocks(), input.groups, g) / count;
    std::fill_n(scratch.mean + g * width, width, static_cast<float>(mean));
  }
  // The squares are taken about the mean: their plain sum would cancel where it is large.
  BlockSums<2>(threads, input, scratch.mean, scratch.channel_sums, scratch.sums);
  for (int64_t g = 0; g < input.groups; ++g) {
    const double variance = TotalOf(scratch.sums, input.blocks(), input.groups, g) / count;
    const auto inverse = static_cast<float>(1.0 / std::sqrt(variance + epsilon));
    for (int64_t c = g * width; c < (g + 1) * width; ++c) {
      scratch.factor[c] = inverse * static_cast<float>(weight[c]);
    }
  }
}

}  // namespace

ScratchBlocks CpuOpScratch::GroupNorm(const GroupNormSize& size) const {
  const int64_t blocks = BlocksOf(size.positions);
  return blocks * size.groups * static_cast<int64_t>(sizeof(double)) +
         (blocks + 2) * size.channels * static_cast<int64_t>(sizeof(float));
}

absl::StatusOr<Tensor> CpuDevice::GroupNorm(const Tensor& x, const Tensor& weight,
                                            const Tensor& bias, const GroupNormOptions& options) {
  LTX_RETURN_IF_ERROR(CheckGroupNorm(x, weight, bias, options));
  const int64_t channels = x.dim(-1);
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(x.shape(), x.dtype(), MemoryOwner::kActivations));
  if (x.num_elements() == 0) return y;

  const int64_t positions = x.shape().num_rows() / x.dim(0);
  GroupNormSize size;
  size.positions = positions;
  size.channels = channels;
  size.groups = options.groups;
  const int64_t sums_bytes =
      BlocksOf(positions) * options.groups * static_cast<int64_t>(sizeof(double));
  LTX_ASSIGN_OR_RETURN(const Tensor workspace, Workspace(op_scratch().GroupNorm(size).bytes()));
  GroupNormScratch scratch{};
  scratch.sums = workspace.data<double>();
  scratch.mean = reinterpret_cast<float*>(workspace.data<uint8_t>() + sums_bytes);
  scratch.factor = scratch.mean + channels;
  scratch.channel_sums = scratch.factor + channels;

  DispatchFloat(x.dtype(), [&](auto element) {
    using T = decltype(element);
    for (int64_t b = 0; b < x.dim(0); ++b) {
      const GroupNormInput<T> input{x.data<T>() + b * positions * channels, positions, channels,
                                    options.groups};
      T* target = y.data<T>() + b * positions * channels;
      Moments(threads_, input, weight.data<T>(), options.epsilon, scratch);
      DispatchActivation(options.activation, [&](auto activate) {
        ParallelFor(
            threads_, positions, RowGrain(kCostlyGrain, channels), [&](int64_t begin, int64_t end) {
              for (int64_t p = begin; p < end; ++p) {
                ForEachGroup(channels, [&](int64_t c, auto lanes) {
                  const int64_t at = p * channels + c;
                  const Vec centred = lanes.Load(input.x + at) - lanes.Load(scratch.mean + c);
                  lanes.Store(target + at, activate(centred * lanes.Load(scratch.factor + c) +
                                                    lanes.Load(bias.data<T>() + c)));
                });
              }
            });
      });
    }
  });
  return y;
}

}  // namespace ltx::cpu
