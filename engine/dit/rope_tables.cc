#include "engine/dit/rope_tables.h"

#include <cmath>
#include <cstring>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::dit {
namespace {

constexpr double kPi = 3.14159265358979323846;

uint32_t BitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

/// Cosines and sines of one axis. A latent grid has few distinct coordinates per axis and many
/// tokens, so each distinct coordinate is evaluated once.
struct AxisAngles {
  /// Row of `cos` and `sin` for each [batch, token].
  std::vector<int32_t> row;
  /// [distinct coordinates, frequencies].
  std::vector<float> cos;
  std::vector<float> sin;
};

AxisAngles EvaluateAxis(const RopeSpec& spec, absl::Span<const float> grid,
                        absl::Span<const float> positions, int64_t batch, int64_t tokens,
                        int64_t axis) {
  const int64_t axes = static_cast<int64_t>(spec.max_position.size());
  AxisAngles angles;
  angles.row.reserve(batch * tokens);
  std::unordered_map<uint32_t, int32_t> row_of;
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t n = 0; n < tokens; ++n) {
      const float* interval = &positions[((b * axes + axis) * tokens + n) * 2];
      const float position = spec.use_middle ? (interval[0] + interval[1]) / 2.0f : interval[0];
      const float fraction = position / spec.max_position[axis];
      const float coordinate = fraction * 2.0f - 1.0f;
      const auto [entry, inserted] =
          row_of.emplace(BitsOf(coordinate), static_cast<int32_t>(row_of.size()));
      if (inserted) {
        for (const float frequency : grid) {
          const float angle = frequency * coordinate;
          angles.cos.push_back(std::cos(angle));
          angles.sin.push_back(std::sin(angle));
        }
      }
      angles.row.push_back(entry->second);
    }
  }
  return angles;
}

/// Where the entry at a flat index of a token's table comes from.
struct Source {
  int32_t axis = 0;
  /// Negative: an entry in front that does not rotate.
  int32_t frequency = -1;
};

/// `count` angles, each held `copies` times, at the end of `entries` places.
std::vector<Source> SourcesOf(int64_t entries, int64_t count, int64_t axes, int64_t copies) {
  std::vector<Source> sources(entries);
  const int64_t padding = entries - count * copies;
  for (int64_t i = padding; i < entries; ++i) {
    const int64_t angle = (i - padding) / copies;
    sources[i] = {static_cast<int32_t>(angle % axes), static_cast<int32_t>(angle / axes)};
  }
  return sources;
}

absl::Status CheckArguments(const RopeSpec& spec, absl::Span<const float> positions, int64_t batch,
                            int64_t tokens) {
  const int64_t axes = static_cast<int64_t>(spec.max_position.size());
  if (axes == 0 || spec.heads < 1 || spec.width < 2 || spec.width % (2 * spec.heads) != 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "rope: width %d with %d heads and %d axes; needs at least one axis and heads of even width",
        spec.width, spec.heads, axes));
  }
  if (static_cast<int64_t>(positions.size()) != batch * axes * tokens * 2) {
    return absl::InvalidArgumentError(
        absl::StrFormat("positions hold %d values; [%d, %d, %d, 2] needs %d", positions.size(),
                        batch, axes, tokens, batch * axes * tokens * 2));
  }
  for (size_t i = 0; i < positions.size(); ++i) {
    if (!std::isfinite(positions[i])) {
      return absl::InvalidArgumentError(
          absl::StrFormat("positions[%d] is %g; it must be finite", i, positions[i]));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<float> FrequencyGrid(double theta, int64_t count, bool double_precision) {
  std::vector<float> grid(count);
  if (double_precision) {
    const double step = count > 1 ? 1.0 / static_cast<double>(count - 1) : 0.0;
    for (int64_t k = 0; k < count; ++k) {
      const double exponent = (count > 1 && k == count - 1) ? 1.0 : static_cast<double>(k) * step;
      grid[k] = static_cast<float>(std::pow(theta, exponent) * kPi / 2.0);
    }
    return grid;
  }
  const float base = static_cast<float>(theta);
  const float step = count > 1 ? 1.0f / static_cast<float>(count - 1) : 0.0f;
  for (int64_t k = 0; k < count; ++k) {
    // torch.linspace: the upper half counts down from the end, with one rounding.
    const float exponent = (k < count / 2 || count == 1)
                               ? step * static_cast<float>(k)
                               : std::fma(-step, static_cast<float>(count - k - 1), 1.0f);
    grid[k] = std::pow(base, exponent) * static_cast<float>(kPi) / 2.0f;
  }
  return grid;
}

absl::StatusOr<RopeValues> ComputeRopeValues(const RopeSpec& spec,
                                             absl::Span<const float> positions, int64_t batch,
                                             int64_t tokens) {
  LTX_RETURN_IF_ERROR(CheckArguments(spec, positions, batch, tokens));
  const int64_t axes = static_cast<int64_t>(spec.max_position.size());
  const int64_t frequencies = spec.width / (2 * axes);
  const std::vector<float> grid = FrequencyGrid(spec.theta, frequencies, spec.double_precision);
  std::vector<AxisAngles> angles;
  for (int64_t axis = 0; axis < axes; ++axis) {
    angles.push_back(EvaluateAxis(spec, grid, positions, batch, tokens, axis));
  }

  RopeValues values;
  const bool split = spec.kind == RopeTable::Kind::kSplit;
  const int64_t entries = split ? spec.width / 2 : spec.width;
  const int64_t copies = split ? 1 : 2;
  const int64_t heads = split ? spec.heads : 1;
  const int64_t per_head = entries / heads;
  values.shape = split ? Shape{batch, heads, tokens, per_head} : Shape{batch, tokens, entries};
  values.cos.resize(batch * tokens * entries);
  values.sin.resize(batch * tokens * entries);
  const std::vector<Source> sources = SourcesOf(entries, axes * frequencies, axes, copies);
  float* cos = values.cos.data();
  float* sin = values.sin.data();
  std::vector<const float*> axis_cos(axes);
  std::vector<const float*> axis_sin(axes);
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t n = 0; n < tokens; ++n) {
        for (int64_t axis = 0; axis < axes; ++axis) {
          const size_t row = static_cast<size_t>(angles[axis].row[b * tokens + n]) * frequencies;
          axis_cos[axis] = angles[axis].cos.data() + row;
          axis_sin[axis] = angles[axis].sin.data() + row;
        }
        for (int64_t j = h * per_head; j < (h + 1) * per_head; ++j) {
          const Source source = sources[j];
          *cos++ = source.frequency < 0 ? 1.0f : axis_cos[source.axis][source.frequency];
          *sin++ = source.frequency < 0 ? 0.0f : axis_sin[source.axis][source.frequency];
        }
      }
    }
  }
  return values;
}

absl::StatusOr<RopeTable> BuildRopeTable(Device& device, const RopeSpec& spec,
                                         absl::Span<const float> positions, int64_t batch,
                                         int64_t tokens, DType dtype) {
  LTX_ASSIGN_OR_RETURN(const RopeValues values, ComputeRopeValues(spec, positions, batch, tokens));
  RopeTable table;
  table.kind = spec.kind;
  LTX_ASSIGN_OR_RETURN(
      table.cos, TensorFromFloats(device, values.cos, values.shape, dtype, MemoryOwner::kCache));
  LTX_ASSIGN_OR_RETURN(
      table.sin, TensorFromFloats(device, values.sin, values.shape, dtype, MemoryOwner::kCache));
  return table;
}

std::vector<float> FirstAxisPositions(absl::Span<const float> positions, int64_t batch,
                                      int64_t axes, int64_t tokens) {
  std::vector<float> first;
  first.reserve(batch * tokens * 2);
  for (int64_t b = 0; b < batch; ++b) {
    const float* begin = positions.data() + b * axes * tokens * 2;
    first.insert(first.end(), begin, begin + tokens * 2);
  }
  return first;
}

}  // namespace ltx::dit
