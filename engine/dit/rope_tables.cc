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
  int64_t distinct = 0;
  /// [distinct, frequencies].
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
  angles.distinct = static_cast<int64_t>(row_of.size());
  return angles;
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

/// The table of cosines, or of sines, put together on the device from the few distinct rows.
absl::StatusOr<Tensor> Assemble(Device& device, const RopeSpec& spec,
                                const std::vector<AxisAngles>& axes, bool cosines, int64_t batch,
                                int64_t tokens, DType dtype) {
  const int64_t frequencies = spec.width / (2 * static_cast<int64_t>(axes.size()));
  std::vector<Tensor> parts;
  for (const AxisAngles& axis : axes) {
    LTX_ASSIGN_OR_RETURN(const Tensor distinct,
                         TensorFromFloats(device, cosines ? axis.cos : axis.sin,
                                          {axis.distinct, frequencies}, dtype));
    LTX_ASSIGN_OR_RETURN(Tensor part, device.GatherRows(distinct, axis.row));
    parts.push_back(std::move(part));
  }
  // Frequency-major, axis-minor.
  LTX_ASSIGN_OR_RETURN(Tensor table, device.Interleave(parts));
  const bool split = spec.kind == RopeTable::Kind::kSplit;
  if (!split) {
    LTX_ASSIGN_OR_RETURN(table, device.Interleave({table, table}));
  }
  const int64_t entries = split ? spec.width / 2 : spec.width;
  const int64_t padding = entries - table.dim(1);
  if (padding > 0) {
    const std::vector<float> still(padding, cosines ? 1.0f : 0.0f);
    LTX_ASSIGN_OR_RETURN(const Tensor row, TensorFromFloats(device, still, {1, padding}, dtype));
    const std::vector<int32_t> every_token(batch * tokens, 0);
    LTX_ASSIGN_OR_RETURN(const Tensor front, device.GatherRows(row, every_token));
    LTX_ASSIGN_OR_RETURN(table, device.Concat({front, table}, 1));
  }
  if (split) {
    LTX_ASSIGN_OR_RETURN(table, table.Reshape({batch, tokens, spec.heads, entries / spec.heads}));
    LTX_ASSIGN_OR_RETURN(table, device.Permute(table, {0, 2, 1, 3}));
  } else {
    LTX_ASSIGN_OR_RETURN(table, table.Reshape({batch, tokens, entries}));
  }
  return CopyForOwner(device, table, MemoryOwner::kCache);
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

absl::StatusOr<RopeTable> BuildRopeTable(Device& device, const RopeSpec& spec,
                                         absl::Span<const float> positions, int64_t batch,
                                         int64_t tokens, DType dtype) {
  LTX_RETURN_IF_ERROR(CheckArguments(spec, positions, batch, tokens));
  const int64_t axes = static_cast<int64_t>(spec.max_position.size());
  const std::vector<float> grid =
      FrequencyGrid(spec.theta, spec.width / (2 * axes), spec.double_precision);
  std::vector<AxisAngles> angles;
  for (int64_t axis = 0; axis < axes; ++axis) {
    angles.push_back(EvaluateAxis(spec, grid, positions, batch, tokens, axis));
  }
  RopeTable table;
  table.kind = spec.kind;
  LTX_ASSIGN_OR_RETURN(table.cos, Assemble(device, spec, angles, true, batch, tokens, dtype));
  LTX_ASSIGN_OR_RETURN(table.sin, Assemble(device, spec, angles, false, batch, tokens, dtype));
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
