#include "kernels/cpu/packed_conv.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/fast_math.h"
#include "kernels/cpu/operand_check.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/tile_product.h"
#include "kernels/cpu/vector.h"

namespace ltx::cpu {
namespace {

/// Rows of a block: a multiple of what the tile kernels hold in registers, and 120 KiB of panel,
/// which fits the second-level cache beside the weights that stream through it.
constexpr int64_t kBlockRows = 112;
constexpr int64_t kRowStep = 14;
/// Strips of a block: 512 columns, 224 KiB of sums.
constexpr int64_t kBlockUnits = 32;

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

/// To the start of the next line of the innermost axis.
void AdvanceLine(const ConvGeometry& geometry, OutputPosition* position) {
  position->at[2] = 0;
  for (int axis = 1; axis >= 0; --axis) {
    if (++position->at[axis] < geometry.axes[axis].output) return;
    position->at[axis] = 0;
  }
  ++position->batch;
}

/// Copies short runs without a call; a run of eight or more ends in a group that may overlap. A
/// shorter one of floats writes whole groups: what it spoils behind its end lies in the part of
/// the panel's row that is filled next, or in the row's slack.
inline void CopyRun(const float* from, int64_t count, float* to) {
  if (count < kLanes) return Store(to, LoadPart(from, count));
  for (int64_t i = 0; i + kLanes <= count; i += kLanes) Store(to + i, Load(from + i));
  Store(to + count - kLanes, Load(from + count - kLanes));
}
inline void CopyRun(const BFloat16* from, int64_t count, float* to) {
  if (count >= kLanes) {
    for (int64_t i = 0; i + kLanes <= count; i += kLanes) Store(to + i, Load(from + i));
    Store(to + count - kLanes, Load(from + count - kLanes));
    return;
  }
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i]);
}

/// Elements [begin, end) of the part of a patch that one line of the input gives, which is ordered
/// (tap, channel).
struct LineRun {
  int64_t begin;
  int64_t end;
  int64_t first_tap;  // the one that `begin` lies in
};

/// Writes a run for the output position whose tap 0 stands at `first` of the line.
template <typename T>
inline void GatherRun(const ConvAxis& axis, int64_t channels, const T* line, int64_t first,
                      const LineRun& run, float* to) {
  const int64_t last = first + (axis.kernel - 1) * axis.dilation;
  const bool inside = std::min(first, last) >= 0 && std::max(first, last) < axis.input;
  if (inside && axis.dilation == 1) {
    CopyRun(line + first * channels + run.begin, run.end - run.begin, to);
    return;
  }
  int64_t position = first + run.first_tap * axis.dilation;
  int64_t channel = run.begin - run.first_tap * channels;
  for (int64_t left = run.end - run.begin; left > 0;) {
    const int64_t count = std::min(left, channels - channel);
    const int64_t source = inside ? position : axis.Source(position);
    if (source < 0) {
      std::fill_n(to, count, 0.0f);
    } else {
      CopyRun(line + source * channels + channel, count, to);
    }
    to += count;
    left -= count;
    channel = 0;
    position += axis.dilation;
  }
}

/// Writes elements [begin, end) of the input patches of `rows` neighbours on the innermost axis,
/// from `position` on, to rows of the panel. A patch is ordered (tap on axis 0, on axis 1, on
/// axis 2, channel).
template <typename T>
void GatherPatches(const ConvGeometry& geometry, const T* input, const OutputPosition& position,
                   int64_t rows, int64_t begin, int64_t end, float* panel) {
  const auto& [outer, middle, inner] = geometry.axes;
  const int64_t channels = geometry.channels;
  const int64_t line_length = inner.kernel * channels;
  for (int64_t at = begin; at < end;) {
    const int64_t tap = at / line_length;
    LineRun run;
    run.begin = at - tap * line_length;
    run.end = std::min(end - tap * line_length, line_length);
    run.first_tap = run.begin / channels;
    const int64_t source0 = outer.Source(outer.Position(position.at[0], tap / middle.kernel));
    const int64_t source1 = middle.Source(middle.Position(position.at[1], tap % middle.kernel));
    float* to = panel + (at - begin);
    if (source0 < 0 || source1 < 0) {
      for (int64_t row = 0; row < rows; ++row) {
        std::fill_n(to + row * kPanelPitch, run.end - run.begin, 0.0f);
      }
    } else {
      const T* line = input + ((position.batch * outer.input + source0) * middle.input + source1) *
                                  inner.input * channels;
      int64_t first = inner.Position(position.at[2], 0);
      for (int64_t row = 0; row < rows; ++row) {
        GatherRun(inner, channels, line, first, run, to + row * kPanelPitch);
        first += inner.stride;
      }
    }
    at += run.end - run.begin;
  }
}

/// Adds the product of patch elements [begin, end) with the weights of units [first_unit,
/// first_unit + unit_count) to the tile.
template <typename T>
void AccumulateUnits(const ConvTask& task, const float* panel, int64_t rows, int64_t begin,
                     int64_t end, int64_t first_unit, int64_t unit_count, float* tile) {
  const int64_t channels = task.geometry.channels;
  const int64_t strips = task.weight->strips;
  const int64_t strip_stride = task.weight->taps * channels * kStripColumns;
  const T* weight = task.weight->weight.data<T>();
  const int64_t tile_pitch = unit_count * kStripColumns;
  if (task.phases == 1) {
    AccumulateTile(panel, rows, weight + first_unit * strip_stride + begin * kStripColumns,
                   strip_stride, unit_count, end - begin, tile, tile_pitch);
    return;
  }
  for (int64_t unit = first_unit; unit < first_unit + unit_count;) {
    const int64_t phase = unit / strips;
    const int64_t strip = unit - phase * strips;
    const int64_t count = std::min(strips - strip, first_unit + unit_count - unit);
    for (int64_t at = begin; at < end;) {
      const int64_t phase_tap = at / channels;
      const int64_t stop = std::min(end, (phase_tap + 1) * channels);
      const int64_t tap = phase + phase_tap * task.phases;
      if (tap < task.weight->taps) {
        const int64_t depth_row = tap * channels + (at - phase_tap * channels);
        AccumulateTile(panel + (at - begin), rows,
                       weight + strip * strip_stride + depth_row * kStripColumns, strip_stride,
                       count, stop - at, tile + (unit - first_unit) * kStripColumns, tile_pitch);
      }
      at = stop;
    }
    unit += count;
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

/// Writes the tile of rows [first_row, first_row + rows) to the output.
template <typename T>
void WriteTile(const ConvTask& task, const float* tile, int64_t first_row, int64_t rows,
               int64_t first_unit, int64_t unit_count) {
  const int64_t strips = task.weight->strips;
  const int64_t positions_per_batch = task.geometry.output_positions() / task.geometry.batch;
  const float* bias = task.weight->bias.defined() ? task.weight->bias.data<float>() : nullptr;
  DispatchActivation(task.activation, [&](auto function) {
    int64_t position = first_row % positions_per_batch;
    int64_t batch_start = first_row / positions_per_batch * task.batch_elements;
    for (int64_t row = 0; row < rows; ++row, ++position) {
      if (position == positions_per_batch) {
        position = 0;
        batch_start += task.batch_elements;
      }
      for (int64_t unit = first_unit; unit < first_unit + unit_count;) {
        const int64_t phase = task.phases == 1 ? 0 : unit / strips;
        const int64_t strip = unit - phase * strips;
        const int64_t count = std::min(strips - strip, first_unit + unit_count - unit);
        const int64_t column = strip * kStripColumns;
        const int64_t columns = std::min(count * kStripColumns, task.out_channels - column);
        // A phase is cropped whole or not at all: crop is a multiple of the output channels.
        const int64_t element =
            (position * task.phases + phase) * task.out_channels + column - task.crop;
        if (element >= 0 && element < task.batch_elements) {
          const int64_t at = batch_start + element;
          Finish(tile + (row * unit_count + unit - first_unit) * kStripColumns,
                 bias == nullptr ? nullptr : bias + column,
                 task.residual == nullptr ? nullptr : static_cast<const T*>(task.residual) + at,
                 columns, function, static_cast<T*>(task.output) + at);
        }
        unit += count;
      }
    }
  });
}

template <typename T>
void RunBlock(const ConvTask& task, const ConvBlocking& blocking, int64_t block, float* scratch) {
  const int64_t row_block = block / blocking.unit_blocks;
  const int64_t unit_block = block - row_block * blocking.unit_blocks;
  const int64_t first_row = row_block * blocking.rows;
  const int64_t rows = std::min(blocking.rows, task.geometry.output_positions() - first_row);
  const int64_t first_unit = unit_block * blocking.units;
  const int64_t units = std::min(blocking.units, task.weight->strips * task.phases - first_unit);
  float* panel = scratch;
  float* tile = scratch + blocking.rows * kPanelPitch;
  std::fill_n(tile, rows * units * kStripColumns, 0.0f);
  const int64_t depth = task.geometry.depth();
  for (int64_t begin = 0; begin < depth; begin += kPanelDepth) {
    const int64_t end = std::min(depth, begin + kPanelDepth);
    OutputPosition position = Locate(task.geometry, first_row);
    for (int64_t row = 0; row < rows;) {
      const int64_t neighbours =
          std::min(rows - row, task.geometry.axes[2].output - position.at[2]);
      GatherPatches(task.geometry, static_cast<const T*>(task.input), position, neighbours, begin,
                    end, panel + row * kPanelPitch);
      row += neighbours;
      AdvanceLine(task.geometry, &position);
    }
    AccumulateUnits<T>(task, panel, rows, begin, end, first_unit, units, tile);
  }
  WriteTile<T>(task, tile, first_row, rows, first_unit, units);
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
