#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "kernels/cpu/attention_packing.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/fast_math.h"
#include "kernels/cpu/op_scratch.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/tile_product.h"
#include "kernels/cpu/vector.h"
#include "kernels/op_check.h"
#include "kernels/operand_check.h"
#include "kernels/status_macros.h"

// Softmax attention in one pass over the keys (Milakov and Gimelshein, "Online normalizer
// calculation for softmax"; Dao et al., "FlashAttention"): a tile of queries meets blocks of keys,
// keeping per query the largest score so far, the sum of exponentials relative to it and the output
// in the same scale.

namespace ltx::cpu {
namespace {

/// Keys per block: a block of keys and values of usual head widths stays in the second-level cache.
constexpr int64_t kKeys = 128;
static_assert(kKeys <= kPanelDepth && kKeys % kStripColumns == 0);
/// Most queries per tile, over which the packing of a key block is shared: a multiple of the rows
/// that AccumulateTile holds in registers (6 or 14).
constexpr int64_t kTileGrain = 42;
constexpr int64_t kMaxQueries = 3 * kTileGrain;
constexpr float kHidden = -std::numeric_limits<float>::infinity();

/// The problem in elements, strides included.
struct Geometry {
  int64_t batch;
  int64_t heads;
  int64_t kv_heads;
  int64_t queries;
  int64_t keys;
  int64_t width;        // d
  int64_t value_width;  // dv
  int64_t tile;         // queries per tile
  int64_t query_pitch;  // from one query, key or value to the next
  int64_t key_pitch;
  int64_t value_pitch;
  bool causal;
  int64_t window;
  float scale;
  const uint8_t* key_mask;  // [B, Nk] or null
  const float* bias;        // or null
  int64_t bias_batch_stride;
  int64_t bias_query_stride;

  int64_t value_strips() const { return RoundUp(value_width, kStripColumns) / kStripColumns; }
  int64_t output_stride() const { return value_strips() * kStripColumns; }
  /// Panels that hold the width of a query.
  int64_t query_panels() const { return (width + kPanelDepth - 1) / kPanelDepth; }
  int64_t tiles() const { return (queries + tile - 1) / tile; }
};

/// Working memory of one thread.
struct Scratch {
  float* queries;  // [query_panels, tile, kPanelPitch], scaled
  float* keys;     // strips of keys, transposed
  float* values;   // strips of values
  float* scores;   // [tile, kPanelPitch], then the exponentials
  float* output;   // [tile, output_stride]
  float* largest;  // [tile]
  float* sum;      // [tile]
  float* visible;  // [kKeys], 1 or 0

  static int64_t Floats(const Geometry& g) { return Place(g, nullptr).second; }
  static Scratch At(const Geometry& g, float* base) { return Place(g, base).first; }

 private:
  static std::pair<Scratch, int64_t> Place(const Geometry& g, float* base) {
    int64_t used = 0;
    const auto take = [&](int64_t floats) {
      float* place = base == nullptr ? nullptr : base + used;
      // Whole cache lines, so that no two arrays or threads share one.
      used += RoundUp(floats, 16);
      return place;
    };
    Scratch s{};
    s.queries = take(g.query_panels() * g.tile * kPanelPitch);
    s.keys = take(kKeys * g.width);
    s.values = take(kKeys * g.output_stride());
    s.scores = take(g.tile * kPanelPitch);
    s.output = take(g.tile * g.output_stride());
    s.largest = take(g.tile);
    s.sum = take(g.tile);
    s.visible = take(kKeys);
    return {s, used};
  }
};

/// One tile: queries [begin, end) of one head of one batch row.
struct Tile {
  int64_t batch;
  int64_t head;
  int64_t begin;
  int64_t end;
  int64_t rows() const { return end - begin; }
};

/// Fills scratch.visible for keys [first, first + count); false if all are hidden.
bool KeyVisibility(const Geometry& g, const Tile& tile, int64_t first, int64_t count,
                   float* visible) {
  bool any = false;
  for (int64_t j = 0; j < kKeys; ++j) {
    const bool seen =
        j < count && (g.key_mask == nullptr || g.key_mask[tile.batch * g.keys + first + j] != 0);
    visible[j] = seen ? 1.0f : 0.0f;
    any = any || seen;
  }
  return any;
}

/// Adds the bias to one row of scores and hides what the query must not see; returns the largest.
float MaskRow(const Geometry& g, const Tile& tile, int64_t query, int64_t first, int64_t count,
              const float* visible, float* scores) {
  const int64_t columns = RoundUp(count, kLanes);
  const Vec hidden = Broadcast(kHidden);
  // Keys [low, high) of the block pass the causal limit and the window.
  const int64_t high = g.causal ? std::min(count, query + 1 - first) : count;
  const int64_t low = g.window > 0 ? std::max<int64_t>(0, query - g.window + 1 - first) : 0;
  if (low >= high) {
    std::fill_n(scores, columns, kHidden);
    return kHidden;
  }
  if (g.bias != nullptr) {
    const float* bias =
        g.bias + tile.batch * g.bias_batch_stride + query * g.bias_query_stride + first;
    ForEachGroup(count, [&](int64_t j, auto lanes) {
      Store(scores + j, Load(scores + j) + lanes.Load(bias + j));
    });
  }
  std::fill(scores, scores + low, kHidden);
  std::fill(scores + high, scores + columns, kHidden);
  Vec largest = hidden;
  for (int64_t j = 0; j < columns; j += kLanes) {
    const Vec seen = _mm256_cmp_ps(Load(visible + j), Zero(), _CMP_NEQ_OQ);
    const Vec score = Select(seen, Load(scores + j), hidden);
    Store(scores + j, score);
    largest = _mm256_max_ps(largest, score);
  }
  return MaxLanes(largest);
}

/// scores <- exp(scores - largest), returns their sum.
float ExponentiateRow(float* scores, int64_t columns, float largest) {
  const Vec shift = Broadcast(largest);
  Vec sum = Zero();
  for (int64_t j = 0; j < columns; j += kLanes) {
    const Vec weight = ExpNonPositive(Load(scores + j) - shift);
    Store(scores + j, weight);
    sum = sum + weight;
  }
  return SumLanes(sum);
}

/// scores <- q k^T of the packed block.
void Score(const Geometry& g, const Tile& tile, int64_t count, const Scratch& s) {
  const int64_t columns = RoundUp(count, kStripColumns);
  for (int64_t r = 0; r < tile.rows(); ++r) std::fill_n(s.scores + r * kPanelPitch, columns, 0.0f);
  for (int64_t panel = 0; panel < g.query_panels(); ++panel) {
    const int64_t begin = panel * kPanelDepth;
    AccumulateTile(s.queries + panel * g.tile * kPanelPitch, tile.rows(),
                   s.keys + begin * kStripColumns, g.width * kStripColumns, columns / kStripColumns,
                   std::min(kPanelDepth, g.width - begin), s.scores, kPanelPitch);
  }
}

/// Turns the scores of a block into weights and rescales what earlier blocks left.
void SoftmaxBlock(const Geometry& g, const Tile& tile, int64_t first, int64_t count,
                  const Scratch& s) {
  const int64_t columns = RoundUp(count, kLanes);
  for (int64_t r = 0; r < tile.rows(); ++r) {
    float* scores = s.scores + r * kPanelPitch;
    const float block_largest = MaskRow(g, tile, tile.begin + r, first, count, s.visible, scores);
    const float largest = std::max(s.largest[r], block_largest);
    if (largest == kHidden) {
      // Nothing seen yet: exp(-inf - 0) = 0 everywhere. NaN scores come out as NaN.
      s.sum[r] += ExponentiateRow(scores, columns, 0.0f);
      continue;
    }
    const float sum = ExponentiateRow(scores, columns, largest);
    if (largest == s.largest[r]) {
      s.sum[r] += sum;
      continue;
    }
    const float rescale = _mm256_cvtss_f32(ExpNonPositive(Broadcast(s.largest[r] - largest)));
    s.largest[r] = largest;
    s.sum[r] = s.sum[r] * rescale + sum;
    float* output = s.output + r * g.output_stride();
    for (int64_t i = 0; i < g.output_stride(); i += kLanes) {
      Store(output + i, Load(output + i) * Broadcast(rescale));
    }
  }
}

template <typename T>
struct Operands {
  const T* q;
  const T* k;
  const T* v;
  T* out;
};

/// Fills the tile's queries, scaled, and clears its state.
template <typename T>
void StartTile(const Geometry& g, const Tile& tile, const Operands<T>& data, const Scratch& s) {
  const int64_t stride = g.query_pitch;
  const T* queries = data.q + (tile.batch * g.queries + tile.begin) * stride + tile.head * g.width;
  for (int64_t r = 0; r < tile.rows(); ++r) {
    ForEachGroup(g.width, [&](int64_t i, auto lanes) {
      const int64_t row = i / kPanelDepth * g.tile + r;
      lanes.Store(s.queries + row * kPanelPitch + i % kPanelDepth,
                  lanes.Load(queries + r * stride + i) * Broadcast(g.scale));
    });
  }
  std::fill_n(s.largest, tile.rows(), kHidden);
  std::fill_n(s.sum, tile.rows(), 0.0f);
  std::fill_n(s.output, tile.rows() * g.output_stride(), 0.0f);
}

template <typename T>
void FinishTile(const Geometry& g, const Tile& tile, const Operands<T>& data, const Scratch& s) {
  const int64_t stride = g.heads * g.value_width;
  T* out = data.out + (tile.batch * g.queries + tile.begin) * stride + tile.head * g.value_width;
  for (int64_t r = 0; r < tile.rows(); ++r) {
    const Vec inverse = Broadcast(s.sum[r] == 0.0f ? 0.0f : 1.0f / s.sum[r]);
    const float* output = s.output + r * g.output_stride();
    ForEachGroup(g.value_width, [&](int64_t i, auto lanes) {
      lanes.Store(out + r * stride + i, Load(output + i) * inverse);
    });
  }
}

template <typename T>
void AttendTile(const Geometry& g, const Tile& tile, const Operands<T>& data, const Scratch& s) {
  StartTile(g, tile, data, s);
  const int64_t kv_head = tile.head / (g.heads / g.kv_heads);
  const int64_t key_stride = g.key_pitch;
  const int64_t value_stride = g.value_pitch;
  const T* keys = data.k + tile.batch * g.keys * key_stride + kv_head * g.width;
  const T* values = data.v + tile.batch * g.keys * value_stride + kv_head * g.value_width;
  // Keys that no query of the tile sees are not visited. Blocks begin at multiples of their size
  // whatever the tile, so that sums do not depend on how queries are split among threads.
  const int64_t limit = g.causal ? std::min(g.keys, tile.end) : g.keys;
  const int64_t first_seen = g.window > 0 ? std::max<int64_t>(0, tile.begin - g.window + 1) : 0;
  const int64_t start = first_seen / kKeys * kKeys;
  for (int64_t first = start; first < limit; first += kKeys) {
    const int64_t count = std::min(kKeys, limit - first);
    if (!KeyVisibility(g, tile, first, count, s.visible)) continue;
    PackTransposed(keys + first * key_stride, key_stride, count, g.width, s.keys);
    Score(g, tile, count, s);
    SoftmaxBlock(g, tile, first, count, s);
    PackRows(values + first * value_stride, value_stride, count, g.value_width, kKeys, s.visible,
             s.values);
    AccumulateTile(s.scores, tile.rows(), s.values, kKeys * kStripColumns, g.value_strips(), count,
                   s.output, g.output_stride());
  }
  FinishTile(g, tile, data, s);
}

/// Equal tiles, and at least one per thread.
int64_t TileQueries(int64_t planes, int64_t queries, int threads) {
  planes = std::max<int64_t>(1, planes);
  const int64_t tiles = std::max((queries + kMaxQueries - 1) / kMaxQueries,
                                 std::min((threads + planes - 1) / planes, queries));
  const int64_t tile = (queries + tiles - 1) / std::max<int64_t>(1, tiles);
  return tile > kTileGrain ? RoundUp(tile, kTileGrain) : tile;
}

int64_t WorkersOf(const Geometry& g, int threads) {
  return std::min<int64_t>(threads, g.batch * g.heads * g.tiles());
}

Geometry GeometryOf(const Columns& q, const Columns& k, const Columns& v,
                    const AttentionOptions& options, int threads) {
  Geometry g{};
  g.batch = q.tensor.dim(0);
  g.heads = options.heads;
  g.kv_heads = options.kv_heads;
  g.queries = q.tensor.dim(1);
  g.keys = k.tensor.dim(1);
  g.width = q.width / options.heads;
  g.value_width = v.width / options.kv_heads;
  g.query_pitch = q.pitch();
  g.key_pitch = k.pitch();
  g.value_pitch = v.pitch();
  g.causal = options.causal;
  g.window = options.window;
  g.scale = options.scale;
  g.key_mask = options.key_mask.data<uint8_t>();
  g.bias = options.bias.data<float>();
  if (options.bias.defined()) {
    g.bias_query_stride = options.bias.dim(2) == 1 ? 0 : g.keys;
    g.bias_batch_stride = options.bias.dim(0) == 1 ? 0 : options.bias.dim(2) * g.keys;
  }
  g.tile = TileQueries(g.batch * g.heads, g.queries, threads);
  return g;
}

}  // namespace

ScratchBlocks CpuOpScratch::Attention(const AttentionSize& size) const {
  Geometry g{};
  g.batch = size.batch;
  g.heads = size.heads;
  g.queries = size.queries;
  g.width = size.head_dim;
  g.value_width = size.head_dim;
  if (g.batch * g.heads * g.queries == 0) return 0;
  g.tile = TileQueries(g.batch * g.heads, g.queries, threads_);
  return WorkersOf(g, threads_) * Scratch::Floats(g) * static_cast<int64_t>(sizeof(float));
}

absl::StatusOr<Tensor> CpuDevice::Attention(const Columns& q, const Columns& k, const Columns& v,
                                            const AttentionOptions& options) {
  LTX_RETURN_IF_ERROR(CheckAttention(q, k, v, options));
  const Geometry g = GeometryOf(q, k, v, options, threads_);
  LTX_ASSIGN_OR_RETURN(Tensor out, Allocate(Shape({g.batch, g.queries, g.heads * g.value_width}),
                                            q.tensor.dtype(), MemoryOwner::kActivations));
  if (out.num_elements() == 0) return out;
  const int64_t tasks = g.batch * g.heads * g.tiles();
  const int64_t workers = WorkersOf(g, threads_);
  const int64_t floats = Scratch::Floats(g);
  LTX_ASSIGN_OR_RETURN(const Tensor workspace,
                       Workspace(workers * floats * static_cast<int64_t>(sizeof(float))));
  DispatchFloat(q.tensor.dtype(), [&](auto element) {
    using T = decltype(element);
    const Operands<T> data{q.data<T>(), k.data<T>(), v.data<T>(), out.data<T>()};
    // Each of the at most `workers` ranges takes the next piece of the workspace.
    std::atomic<int64_t> next{0};
    ParallelFor(threads_, tasks, 1, [&](int64_t begin, int64_t end) {
      const Scratch scratch = Scratch::At(g, workspace.data<float>() + next++ * floats);
      for (int64_t task = begin; task < end; ++task) {
        Tile tile{};
        tile.batch = task / g.tiles() / g.heads;
        tile.head = task / g.tiles() % g.heads;
        tile.begin = task % g.tiles() * g.tile;
        tile.end = std::min(tile.begin + g.tile, g.queries);
        AttendTile(g, tile, data, scratch);
      }
    });
  });
  return out;
}

}  // namespace ltx::cpu
