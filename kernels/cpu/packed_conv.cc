#include "kernels/cpu/packed_conv.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "kernels/cpu/fast_math.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/tile_product.h"
#include "kernels/cpu/vector.h"
#include "kernels/operand_check.h"

namespace ltx::cpu {
namespace {

/// Rows of a block: a multiple of what the tile kernels hold in registers, and 120 KiB of panel,
/// which fits the second-level cache beside the weights that stream through it.
constexpr int64_t kBlockRows = 112;
constexpr int64_t kRowStep = 14;
/// Strips of a block: 512 columns, 224 KiB of sums.
constexpr int64_t kBlockUnits = 32;

/// Wider inputs than this, and lines with fewer positions, are gathered: rows at distances of 4 KiB
/// and its multiples would share cache sets, and short tiles waste registers.
constexpr int64_t kDirectChannels = 256;
constexpr int64_t kDirectPositions = 12;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Position of a row of the product in the output grid.
struct OutputPosition {
  int64_t batch;
  std::array<int64_t, 3> at;
};

OutputPosition Locate(const ConvGeometry& geometry, int64_t row) {
  OutputPosition position{};
  for (int axis = 2; axis >= 0; --axis) {
    position.at[axis] = row % geometry.axes[axis].output;
    row /= geometry.axes[axis].output;
  }
  position.batch = row;
  return position;
}

void Advance(const ConvGeometry& geometry, OutputPosition* position) {
  for (int axis = 2; axis >= 0; --axis) {
    if (++position->at[axis] < geometry.axes[axis].output) return;
    position->at[axis] = 0;
  }
  ++position->batch;
}

/// Copies short runs without a call; a run of eight or more ends in a group that may overlap.
template <typename T>
inline void CopyRun(const T* from, int64_t count, float* to) {
  if (count >= kLanes) {
    for (int64_t i = 0; i + kLanes <= count; i += kLanes) Store(to + i, Load(from + i));
    Store(to + count - kLanes, Load(from + count - kLanes));
    return;
  }
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i]);
}

/// Start of a line of the input.
template <typename T>
const T* Line(const ConvGeometry& geometry, const T* input, int64_t batch, int64_t outer,
              int64_t middle) {
  const auto& axes = geometry.axes;
  return input + ((batch * axes[0].input + outer) * axes[1].input + middle) * axes[2].input *
                     geometry.channels;
}

/// Writes elements [begin, end) of the input patch of one output position. The patch is ordered
/// (tap on axis 0, on axis 1, on axis 2, channel).
template <typename T>
void GatherPatch(const ConvGeometry& geometry, const T* input, const OutputPosition& position,
                 int64_t begin, int64_t end, float* to) {
  const auto& [outer, middle, inner] = geometry.axes;
  const int64_t channels = geometry.channels;
  const int64_t first = inner.Position(position.at[2], 0);
  const bool contiguous = inner.dilation == 1 && first >= 0 && first + inner.kernel <= inner.input;
  // What is contiguous in the input: all taps of the inner axis, or the channels of one.
  const int64_t run = contiguous ? inner.kernel * channels : channels;
  const int64_t runs_per_line = contiguous ? 1 : inner.kernel;
  int64_t index = begin / run;
  int64_t run_begin = begin - index * run;
  int64_t inner_tap = index % runs_per_line;
  int64_t middle_tap = index / runs_per_line % middle.kernel;
  int64_t outer_tap = index / runs_per_line / middle.kernel;
  for (int64_t left = end - begin; left > 0;) {
    const int64_t count = std::min(left, run - run_begin);
    const int64_t source0 = outer.Source(outer.Position(position.at[0], outer_tap));
    const int64_t source1 = middle.Source(middle.Position(position.at[1], middle_tap));
    const int64_t source2 = contiguous ? first : inner.Source(first + inner_tap * inner.dilation);
    if (source0 < 0 || source1 < 0 || source2 < 0) {
      std::fill_n(to, count, 0.0f);
    } else {
      const T* line = Line(geometry, input, position.batch, source0, source1);
      CopyRun(line + source2 * channels + run_begin, count, to);
    }
    to += count;
    left -= count;
    run_begin = 0;
    if (++inner_tap == runs_per_line) {
      inner_tap = 0;
      if (++middle_tap == middle.kernel) {
        middle_tap = 0;
        ++outer_tap;
      }
    }
  }
}

/// The columns one block computes: strips of all phases, numbered phase by phase.
struct UnitRange {
  int64_t first = 0;
  int64_t count = 0;
};

/// Adds the products of a panel, which holds the patch elements [begin, end) of `rows` positions,
/// with the weights of these units to the tile.
template <typename T>
void AccumulateUnits(const ConvTask& task, const float* panel, int64_t panel_pitch, int64_t rows,
                     int64_t begin, int64_t end, const UnitRange& units, float* tile) {
  const int64_t channels = task.geometry.channels;
  const int64_t strips = task.weight->strips;
  const int64_t strip_stride = task.weight->taps * channels * kStripColumns;
  const T* weight = task.weight->weight.data<T>();
  const int64_t tile_pitch = units.count * kStripColumns;
  if (task.phases == 1) {
    AccumulateTile(panel, panel_pitch, rows,
                   weight + units.first * strip_stride + begin * kStripColumns, strip_stride,
                   units.count, end - begin, tile, tile_pitch);
    return;
  }
  for (int64_t unit = units.first; unit < units.first + units.count;) {
    const int64_t phase = unit / strips;
    const int64_t strip = unit - phase * strips;
    const int64_t count = std::min(strips - strip, units.first + units.count - unit);
    for (int64_t at = begin; at < end;) {
      const int64_t phase_tap = at / channels;
      const int64_t stop = std::min(end, (phase_tap + 1) * channels);
      const int64_t tap = phase + phase_tap * task.phases;
      if (tap < task.weight->taps) {
        const int64_t depth_row = tap * channels + (at - phase_tap * channels);
        AccumulateTile(panel + (at - begin), panel_pitch, rows,
                       weight + strip * strip_stride + depth_row * kStripColumns, strip_stride,
                       count, stop - at, tile + (unit - units.first) * kStripColumns, tile_pitch);
      }
      at = stop;
    }
    unit += count;
  }
}

/// Positions of the innermost axis that `rows` consecutive outputs read, before padding.
struct Reach {
  int64_t lowest = 0;
  int64_t count = 0;
};

Reach FindReach(const ConvAxis& axis, int64_t first_output, int64_t rows) {
  const int64_t last_tap = (axis.kernel - 1) * axis.dilation;
  Reach reach;
  reach.lowest = axis.Position(first_output, 0) + std::min<int64_t>(0, last_tap);
  reach.count = (rows - 1) * axis.stride + std::abs(last_tap) + 1;
  return reach;
}

/// The part of a line in reach as floats: the line itself if it holds all of it, else a copy with
/// padding in `buffer`.
template <typename T>
const float* ReadLine(const ConvAxis& axis, int64_t channels, const T* line, const Reach& reach,
                      float* buffer) {
  const int64_t begin = std::clamp<int64_t>(0, reach.lowest, reach.lowest + reach.count);
  const int64_t end = std::clamp<int64_t>(axis.input, begin, reach.lowest + reach.count);
  if constexpr (std::is_same_v<T, float>) {
    if (end - begin == reach.count) return line + begin * channels;
  }
  const auto pad = [&](int64_t from, int64_t to) {
    for (int64_t position = from; position < to; ++position) {
      float* target = buffer + (position - reach.lowest) * channels;
      const int64_t source = axis.Source(position);
      if (source < 0) {
        std::fill_n(target, channels, 0.0f);
      } else {
        CopyRun(line + source * channels, channels, target);
      }
    }
  };
  pad(reach.lowest, begin);
  CopyRun(line + begin * channels, (end - begin) * channels,
          buffer + (begin - reach.lowest) * channels);
  pad(end, reach.lowest + reach.count);
  return buffer;
}

/// Adds the whole product of `rows` positions, from `position` on along a line, to the tile. Lines
/// of the input serve as panels, their rows one stride of positions apart.
template <typename T>
void AccumulateLine(const ConvTask& task, const OutputPosition& position, int64_t rows,
                    const UnitRange& units, float* buffer, float* tile) {
  const ConvGeometry& geometry = task.geometry;
  const auto& [outer, middle, inner] = geometry.axes;
  const int64_t channels = geometry.channels;
  const int64_t pitch = inner.stride * channels;
  const Reach reach = FindReach(inner, position.at[2], rows);
  const int64_t first = inner.Position(position.at[2], 0) - reach.lowest;
  // Adjacent taps are adjacent in memory if they do not skip positions.
  const int64_t taps = inner.dilation == 1 ? inner.kernel : 1;
  int64_t depth_row = 0;
  for (int64_t k0 = 0; k0 < outer.kernel; ++k0) {
    const int64_t source0 = outer.Source(outer.Position(position.at[0], k0));
    for (int64_t k1 = 0; k1 < middle.kernel; ++k1) {
      const int64_t source1 = middle.Source(middle.Position(position.at[1], k1));
      if (source0 < 0 || source1 < 0) {
        depth_row += inner.kernel * channels;
        continue;
      }
      const T* line =
          Line(geometry, static_cast<const T*>(task.input), position.batch, source0, source1);
      const float* panel = ReadLine(inner, channels, line, reach, buffer);
      for (int64_t k2 = 0; k2 < inner.kernel; k2 += taps) {
        AccumulateUnits<T>(task, panel + (first + k2 * inner.dilation) * channels, pitch, rows,
                           depth_row, depth_row + taps * channels, units, tile);
        depth_row += taps * channels;
      }
    }
  }
}

/// Adds the product of `rows` positions from `first_row` on to the tile, patches gathered in
/// pieces.
template <typename T>
void AccumulatePatches(const ConvTask& task, int64_t first_row, int64_t rows,
                       const UnitRange& units, float* panel, float* tile) {
  const ConvGeometry& geometry = task.geometry;
  const int64_t depth = geometry.depth();
  for (int64_t begin = 0; begin < depth; begin += kPanelDepth) {
    const int64_t end = std::min(depth, begin + kPanelDepth);
    OutputPosition position = Locate(geometry, first_row);
    for (int64_t row = 0; row < rows; ++row) {
      GatherPatch(geometry, static_cast<const T*>(task.input), position, begin, end,
                  panel + row * kPanelPitch);
      Advance(geometry, &position);
    }
    AccumulateUnits<T>(task, panel, kPanelPitch, rows, begin, end, units, tile);
  }
}

/// output[i] = function(sums[i] + bias[i] + residual[i]) for i in [0, count).
template <typename T, typename Function>
inline void Finish(const float* sums, const float* bias, const T* residual, int64_t count,
                   const Function& function, T* output) {
  ForEachGroup(count, [&](int64_t i, auto lanes) {
    Vec value = lanes.Load(sums + i);
    if (bias != nullptr) value = value + lanes.Load(bias + i);
    if (residual != nullptr) value = value + lanes.Load(residual + i);
    lanes.Store(output + i, function(value));
  });
}

/// Writes a tile to the output.
template <typename T>
void WriteTile(const ConvTask& task, const float* tile, int64_t first_row, int64_t rows,
               const UnitRange& units) {
  const int64_t strips = task.weight->strips;
  const int64_t positions_per_batch = task.geometry.output_positions() / task.geometry.batch;
  const float* bias = task.weight->bias.defined() ? task.weight->bias.data<float>() : nullptr;
  const auto* residual = static_cast<const T*>(task.residual);
  auto* output = static_cast<T*>(task.output);
  DispatchActivation(task.activation, [&](auto function) {
    for (int64_t unit = units.first; unit < units.first + units.count;) {
      const int64_t phase = unit / strips;
      const int64_t strip = unit - phase * strips;
      const int64_t count = std::min(strips - strip, units.first + units.count - unit);
      const int64_t column = strip * kStripColumns;
      const int64_t columns = std::min(count * kStripColumns, task.out_channels - column);
      const float* unit_bias = bias == nullptr ? nullptr : bias + column;
      for (int64_t row = 0; row < rows; ++row) {
        int64_t at = (first_row + row) * task.out_channels + column;
        if (task.phases != 1 || task.crop != 0) {
          const int64_t batch = (first_row + row) / positions_per_batch;
          const int64_t position = (first_row + row) - batch * positions_per_batch;
          const int64_t element =
              (position * task.phases + phase) * task.out_channels + column - task.crop;
          // A phase is cropped whole or not at all: crop is a multiple of the output channels.
          if (element < 0 || element >= task.batch_elements) continue;
          at = batch * task.batch_elements + element;
        }
        Finish(tile + (row * units.count + unit - units.first) * kStripColumns, unit_bias,
               residual == nullptr ? nullptr : residual + at, columns, function, output + at);
      }
      unit += count;
    }
  });
}

template <typename T>
void RunBlock(const ConvTask& task, const ConvBlocking& blocking, int64_t block, float* scratch) {
  const ConvGeometry& geometry = task.geometry;
  const int64_t row_block = block / blocking.unit_blocks;
  const int64_t unit_block = block - row_block * blocking.unit_blocks;
  const int64_t first_row = row_block * blocking.rows;
  const int64_t rows = std::min(blocking.rows, geometry.output_positions() - first_row);
  UnitRange units;
  units.first = unit_block * blocking.units;
  units.count = std::min(blocking.units, task.weight->strips * task.phases - units.first);
  float* panel = scratch;
  float* tile = scratch + blocking.rows * kPanelPitch;
  const int64_t tile_pitch = units.count * kStripColumns;
  std::fill_n(tile, rows * tile_pitch, 0.0f);

  if (blocking.by_lines) {
    OutputPosition position = Locate(geometry, first_row);
    for (int64_t row = 0; row < rows;) {
      const int64_t count = std::min(geometry.axes[2].output - position.at[2], rows - row);
      AccumulateLine<T>(task, position, count, units, panel, tile + row * tile_pitch);
      row += count;
      position.at[2] += count - 1;
      Advance(geometry, &position);
    }
  } else {
    AccumulatePatches<T>(task, first_row, rows, units, panel, tile);
  }
  WriteTile<T>(task, tile, first_row, rows, units);
}

}  // namespace

void PackConvWeight(int threads, const void* weight, const ConvWeightStrides& strides,
                    int64_t in_channels, int64_t out_channels, const PackedConv& packed) {
  const int64_t depth = packed.taps * in_channels;
  DispatchFloat(packed.dtype, [&](auto element) {
    using T = decltype(element);
    const T* from = static_cast<const T*>(weight);
    ParallelFor(threads, packed.strips, 1, [&](int64_t begin, int64_t end) {
      for (int64_t strip = begin; strip < end; ++strip) {
        T* to = packed.weight.data<T>() + strip * depth * kStripColumns;
        std::fill_n(to, depth * kStripColumns, T{});
        const int64_t columns = std::min(kStripColumns, out_channels - strip * kStripColumns);
        for (int64_t column = 0; column < columns; ++column) {
          const T* row = from + (strip * kStripColumns + column) * strides.output_channel;
          for (int64_t channel = 0; channel < in_channels; ++channel) {
            for (int64_t tap = 0; tap < packed.taps; ++tap) {
              to[(tap * in_channels + channel) * kStripColumns + column] =
                  row[channel * strides.input_channel + tap * strides.tap];
            }
          }
        }
      }
    });
  });
}

ConvBlocking ChooseConvBlocking(const ConvTask& task, int threads) {
  const int64_t positions = task.geometry.output_positions();
  const int64_t units = task.weight->strips * task.phases;
  ConvBlocking blocking;
  const int64_t fair_rows = CeilDiv(CeilDiv(positions, threads), kRowStep) * kRowStep;
  blocking.rows = std::clamp(fair_rows, kRowStep, kBlockRows);
  // Whole lines, or even shares of one, where that is possible.
  const ConvAxis& inner = task.geometry.axes[2];
  if (inner.output <= blocking.rows) {
    blocking.rows -= blocking.rows % inner.output;
  } else {
    blocking.rows = CeilDiv(inner.output, CeilDiv(inner.output, blocking.rows));
  }
  blocking.by_lines =
      task.geometry.channels <= kDirectChannels && inner.output >= kDirectPositions &&
      FindReach(inner, 0, std::min(blocking.rows, inner.output)).count * task.geometry.channels <=
          blocking.rows * kPanelPitch;
  blocking.row_blocks = CeilDiv(positions, blocking.rows);
  // With fewer row blocks than threads the columns are shared out too.
  const int64_t column_parts =
      std::max<int64_t>(1, threads / std::max<int64_t>(1, blocking.row_blocks));
  blocking.units = std::clamp<int64_t>(CeilDiv(units, column_parts), 1, kBlockUnits);
  blocking.unit_blocks = CeilDiv(units, blocking.units);
  blocking.parts = std::min<int64_t>(threads, blocking.row_blocks * blocking.unit_blocks);
  blocking.part_floats = blocking.rows * (kPanelPitch + blocking.units * kStripColumns);
  return blocking;
}

void RunConv(const ConvTask& task, const ConvBlocking& blocking, void* scratch) {
  const int64_t blocks = blocking.row_blocks * blocking.unit_blocks;
  const auto parts = static_cast<int>(blocking.parts);
  ParallelFor(parts, parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      float* own = static_cast<float*>(scratch) + part * blocking.part_floats;
      for (int64_t block = blocks * part / parts; block < blocks * (part + 1) / parts; ++block) {
        DispatchFloat(task.weight->dtype, [&](auto element) {
          RunBlock<decltype(element)>(task, blocking, block, own);
        });
      }
    }
  });
}

}  // namespace ltx::cpu
