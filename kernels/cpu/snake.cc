#include <algorithm>
#include <array>
#include <cstring>

#include "absl/status/status.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/fast_math.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/vector.h"
#include "kernels/op_check.h"
#include "kernels/operand_check.h"
#include "kernels/status_macros.h"

namespace ltx::cpu {
namespace {

constexpr int64_t kTaps = kSnakeTaps;
/// Output samples per tile. Fewer compute more samples twice at the borders; more evict, in wide
/// signals, the other half of each cache line before the next eight channels read it.
constexpr int64_t kTileSamples = 64;
/// Samples of x that an up-sampled pair reaches to either side.
constexpr int64_t kUpReach = 3;
/// Up-sampled samples that an output reaches back and forth.
constexpr int64_t kDownBefore = 5;
constexpr int64_t kDownAfter = 6;

/// The last kChannels channels, too few for a vector, at 8 / kChannels stretches of time at once.
template <int kChannels>
struct StretchLanes {
  static constexpr int64_t kStretches = kLanes / kChannels;
  /// Elements from one stretch to the next.
  int64_t distance;

  Vec Load(const float* source) const {
    if constexpr (kChannels == 4) {
      return _mm256_setr_m128(_mm_loadu_ps(source), _mm_loadu_ps(source + distance));
    } else if constexpr (kChannels == 2) {
      return _mm256_castpd_ps(_mm256_setr_pd(Pair(source), Pair(source + distance),
                                             Pair(source + 2 * distance),
                                             Pair(source + 3 * distance)));
    } else {
      float values[kLanes];
      for (int64_t i = 0; i < kLanes; ++i) values[i] = source[i * distance];
      return cpu::Load(values);
    }
  }
  void Store(float* target, Vec value) const {
    alignas(32) float values[kLanes];
    _mm256_store_ps(values, value);
    for (int64_t i = 0; i < kStretches; ++i) {
      std::memcpy(target + i * distance, values + i * kChannels, kChannels * sizeof(float));
    }
  }

 private:
  static double Pair(const float* source) {
    double pair;
    std::memcpy(&pair, source, sizeof(pair));
    return pair;
  }
};

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

struct SnakeOperands {
  SnakeFilters filters;
  const float* alpha;
  const float* inverse_beta;
};

/// Output samples [begin, end) of channels [channel, channel + count), count at most a vector.
void SnakeRange(const SnakeSignal& signal, const SnakeOperands& operands, int64_t channel,
                int64_t count, int64_t begin, int64_t end) {
  ForEachGroup(count, [&](int64_t, auto lanes) {
    const Vec alpha = lanes.Load(operands.alpha + channel);
    const Vec inverse_beta = lanes.Load(operands.inverse_beta + channel);
    for (int64_t at = begin; at < end; at += kTileSamples) {
      SnakeTile(signal, operands.filters, alpha, inverse_beta, channel, at,
                std::min(at + kTileSamples, end), lanes);
    }
  });
}

/// Samples at either end of a signal that see its replicated edge, rounded up.
constexpr int64_t kEdgeSamples = 8;

/// The last kChannels channels of a signal: `stretches` tiles abreast inside, the ends and what is
/// left by themselves.
template <int kChannels>
void SnakeNarrow(int threads, const SnakeSignal& signal, const SnakeOperands& operands) {
  using Lanes = StretchLanes<kChannels>;
  constexpr int64_t kSpan = Lanes::kStretches * kTileSamples;
  const int64_t channel = signal.channels - kChannels;
  const int64_t spans = std::max<int64_t>(0, signal.length - 2 * kEdgeSamples) / kSpan;
  float alpha[kLanes];
  float inverse_beta[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) {
    alpha[i] = operands.alpha[channel + i % kChannels];
    inverse_beta[i] = operands.inverse_beta[channel + i % kChannels];
  }
  ParallelFor(threads, spans, 1, [&](int64_t first, int64_t last) {
    for (int64_t span = first; span < last; ++span) {
      const int64_t begin = kEdgeSamples + span * kSpan;
      SnakeTile(signal, operands.filters, Load(alpha), Load(inverse_beta), channel, begin,
                begin + kTileSamples, Lanes{kTileSamples * signal.channels});
    }
  });
  const int64_t inside_end = spans == 0 ? 0 : kEdgeSamples + spans * kSpan;
  if (spans > 0) SnakeRange(signal, operands, channel, kChannels, 0, kEdgeSamples);
  SnakeRange(signal, operands, channel, kChannels, inside_end, signal.length);
}

}  // namespace

absl::StatusOr<Tensor> CpuDevice::AntiAliasedSnake(const Tensor& x, const Tensor& up,
                                                   const Tensor& down, const Tensor& alpha,
                                                   const Tensor& inverse_beta) {
  LTX_RETURN_IF_ERROR(CheckAntiAliasedSnake(x, up, down, alpha, inverse_beta));
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(x.shape(), x.dtype(), MemoryOwner::kActivations));
  if (x.num_elements() == 0) return y;

  SnakeOperands operands{{}, alpha.data<float>(), inverse_beta.data<float>()};
  for (int64_t k = 0; k < kTaps; ++k) {
    // Zeros are stuffed between the samples, which halves the mean.
    operands.filters.up[k] = 2.0f * up.data<float>()[k];
    operands.filters.down[k] = down.data<float>()[k];
  }
  const int64_t length = x.dim(1);
  const int64_t channels = x.dim(2);
  const int64_t rest = channels % kLanes;
  const bool narrow = rest == 1 || rest == 2 || rest == 4;
  const int64_t wide = narrow ? channels - rest : channels;
  const int64_t tiles = (length + kTileSamples - 1) / kTileSamples;
  const auto signal_of = [&](int64_t batch) {
    const int64_t offset = batch * length * channels;
    return SnakeSignal{x.data<float>() + offset, y.data<float>() + offset, length, channels};
  };
  ParallelFor(threads_, wide == 0 ? 0 : x.dim(0) * tiles,
              RowGrain(kCostlyGrain, kTileSamples * wide), [&](int64_t begin, int64_t end) {
                for (int64_t task = begin; task < end; ++task) {
                  const SnakeSignal signal = signal_of(task / tiles);
                  const int64_t tile_begin = task % tiles * kTileSamples;
                  const int64_t tile_end = std::min(tile_begin + kTileSamples, length);
                  for (int64_t c = 0; c < wide; c += kLanes) {
                    SnakeRange(signal, operands, c, std::min(kLanes, wide - c), tile_begin,
                               tile_end);
                  }
                }
              });
  for (int64_t batch = 0; narrow && batch < x.dim(0); ++batch) {
    if (rest == 1) SnakeNarrow<1>(threads_, signal_of(batch), operands);
    if (rest == 2) SnakeNarrow<2>(threads_, signal_of(batch), operands);
    if (rest == 4) SnakeNarrow<4>(threads_, signal_of(batch), operands);
  }
  return y;
}

}  // namespace ltx::cpu
