#include <algorithm>
#include <array>

#include "absl/status/status.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/fast_math.h"
#include "kernels/cpu/operand_check.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/vector.h"
#include "kernels/status_macros.h"

namespace ltx::cpu {
namespace {

constexpr int64_t kTaps = 12;
/// Output samples per tile. Fewer compute more samples twice at the borders; more evict, in wide
/// signals, the other half of each cache line before the next eight channels read it.
constexpr int64_t kTileSamples = 64;
/// Samples of x that an up-sampled pair reaches to either side.
constexpr int64_t kUpReach = 3;
/// Up-sampled samples that an output reaches back and forth.
constexpr int64_t kDownBefore = 5;
constexpr int64_t kDownAfter = 6;

struct SnakeSignal {
  const float* x;
  float* y;
  int64_t length;    // T
  int64_t channels;  // C, the distance of two samples
};

struct SnakeFilters {
  std::array<float, kTaps> up;  // times 2
  std::array<float, kTaps> down;
};

/// Output samples [begin, end) of the channels of one group. The up-sampled, activated signal of
/// the tile lives in `activated`; beyond the signal's ends it replicates.
template <typename Lanes>
void SnakeTile(const SnakeSignal& signal, const SnakeFilters& filters, Vec alpha, Vec inverse_beta,
               int64_t channel, int64_t begin, int64_t end, Lanes lanes) {
  // Up-sampled samples [first, last] are wanted, those within the signal are [low, high].
  const int64_t first = 2 * begin - kDownBefore;
  const int64_t last = 2 * (end - 1) + kDownAfter;
  const int64_t low = std::max<int64_t>(first, 0);
  const int64_t high = std::min(last, 2 * signal.length - 1);

  Vec input[kTileSamples + kDownBefore + kDownAfter + 2 * kUpReach];
  const int64_t input_first = low / 2 - kUpReach;
  const int64_t input_count = high / 2 + kUpReach + 1 - input_first;
  for (int64_t i = 0; i < input_count; ++i) {
    const int64_t t = std::clamp<int64_t>(input_first + i, 0, signal.length - 1);
    input[i] = lanes.Load(signal.x + t * signal.channels + channel);
  }

  Vec activated[2 * kTileSamples + kDownBefore + kDownAfter];
  const auto activate = [&](Vec u) {
    const Vec sine = Sin(alpha * u);
    return MulAdd(sine * sine, inverse_beta, u);
  };
  Vec up[kTaps];
  for (int64_t k = 0; k < kTaps; ++k) up[k] = Broadcast(filters.up[k]);
  for (int64_t i = low / 2; i <= high / 2; ++i) {
    // u[2i] = sum over e = -3..2 of f[5 - 2e] x[i + e]; u[2i + 1] = sum over e = -2..3 of
    // f[6 - 2e] x[i + e]; around points at x[i - 3].
    const Vec* around = &input[i - kUpReach - input_first];
    Vec even = up[11] * around[0];
    Vec odd = up[10] * around[1];
    for (int64_t e = 1; e < 6; ++e) {
      even = MulAdd(up[11 - 2 * e], around[e], even);
      odd = MulAdd(up[10 - 2 * e], around[e + 1], odd);
    }
    if (2 * i >= low) activated[2 * i - first] = activate(even);
    if (2 * i + 1 <= high) activated[2 * i + 1 - first] = activate(odd);
  }
  for (int64_t j = first; j < low; ++j) activated[j - first] = activated[low - first];
  for (int64_t j = high + 1; j <= last; ++j) activated[j - first] = activated[high - first];

  Vec down[kTaps];
  for (int64_t k = 0; k < kTaps; ++k) down[k] = Broadcast(filters.down[k]);
  for (int64_t t = begin; t < end; ++t) {
    const Vec* window = &activated[2 * (t - begin)];
    Vec a = down[0] * window[0];
    Vec b = down[1] * window[1];
    for (int64_t k = 2; k < kTaps; k += 2) {
      a = MulAdd(down[k], window[k], a);
      b = MulAdd(down[k + 1], window[k + 1], b);
    }
    lanes.Store(signal.y + t * signal.channels + channel, a + b);
  }
}

}  // namespace

absl::StatusOr<Tensor> CpuDevice::AntiAliasedSnake(const Tensor& x, const Tensor& up,
                                                   const Tensor& down, const Tensor& alpha,
                                                   const Tensor& inverse_beta) {
  constexpr absl::string_view kName = "AntiAliasedSnake";
  LTX_RETURN_IF_ERROR(CheckFloat(kName, x));
  if (x.dtype() != DType::kF32) {
    return absl::UnimplementedError("AntiAliasedSnake: only F32 is supported");
  }
  if (x.rank() != 3) return OperandError(kName, "x must be [B, T, C]", {&x});
  LTX_RETURN_IF_ERROR(CheckVector(kName, x, up, kTaps));
  LTX_RETURN_IF_ERROR(CheckVector(kName, x, down, kTaps));
  LTX_RETURN_IF_ERROR(CheckVector(kName, x, alpha, x.dim(2)));
  LTX_RETURN_IF_ERROR(CheckVector(kName, x, inverse_beta, x.dim(2)));
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(x.shape(), x.dtype(), MemoryOwner::kActivations));
  if (x.num_elements() == 0) return y;

  SnakeFilters filters;
  for (int64_t k = 0; k < kTaps; ++k) {
    // Zeros are stuffed between the samples, which halves the mean.
    filters.up[k] = 2.0f * up.data<float>()[k];
    filters.down[k] = down.data<float>()[k];
  }
  const int64_t length = x.dim(1);
  const int64_t channels = x.dim(2);
  const int64_t tiles = (length + kTileSamples - 1) / kTileSamples;
  ParallelFor(threads_, x.dim(0) * tiles, RowGrain(kCostlyGrain, kTileSamples * channels),
              [&](int64_t begin, int64_t end) {
                for (int64_t task = begin; task < end; ++task) {
                  const int64_t offset = task / tiles * length * channels;
                  const SnakeSignal signal{x.data<float>() + offset, y.data<float>() + offset,
                                           length, channels};
                  const int64_t tile_begin = task % tiles * kTileSamples;
                  const int64_t tile_end = std::min(tile_begin + kTileSamples, length);
                  ForEachGroup(channels, [&](int64_t c, auto lanes) {
                    SnakeTile(signal, filters, lanes.Load(alpha.data<float>() + c),
                              lanes.Load(inverse_beta.data<float>() + c), c, tile_begin, tile_end,
                              lanes);
                  });
                }
              });
  return y;
}

}  // namespace ltx::cpu
