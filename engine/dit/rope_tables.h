#ifndef LTX_ENGINE_DIT_ROPE_TABLES_H_
#define LTX_ENGINE_DIT_ROPE_TABLES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/device.h"

namespace ltx::dit {

/// Rotary position tables of the transformer (reference: rope.py).
struct RopeSpec {
  RopeTable::Kind kind = RopeTable::Kind::kSplit;
  /// Inner width of the attention the table is for: heads * head width.
  int64_t width = 0;
  int64_t heads = 1;
  /// One per axis, in the unit of that axis: positions are divided by it.
  std::vector<float> max_position;
  double theta = 10000.0;
  /// The frequency grid is built in double and rounded once, else every step rounds to f32.
  bool double_precision = true;
  /// Positions are intervals; the table takes their middle, else their start.
  bool use_middle = true;
};

/// g_k = theta^(k / (count - 1)) * pi / 2 for k in [0, count). The two precisions differ by whole
/// radians at the top of the grid, where angles reach 15708.
std::vector<float> FrequencyGrid(double theta, int64_t count, bool double_precision);

/// Tables [batch, heads, N, width / heads / 2] if split, [batch, N, width] if interleaved,
/// evaluated in f32 and rounded to `dtype`, owner kCache. `positions` [batch, axes, tokens, 2]
/// holds interval starts and ends. The angle of frequency k on axis a is g_k * (2 p /
/// max_position[a] - 1), at flat index k * axes + a (every one twice in a row if interleaved);
/// places that no frequency fills stand in front and do not rotate.
///
/// INVALID_ARGUMENT for a position count that does not fit, a position that is not finite, or a
/// width that the heads do not divide into even parts.
absl::StatusOr<RopeTable> BuildRopeTable(Device& device, const RopeSpec& spec,
                                         absl::Span<const float> positions, int64_t batch,
                                         int64_t tokens, DType dtype);

/// The first axis of positions [batch, axes, tokens, 2] as [batch, 1, tokens, 2]: cross-modal
/// attention compares times only.
std::vector<float> FirstAxisPositions(absl::Span<const float> positions, int64_t batch,
                                      int64_t axes, int64_t tokens);

}  // namespace ltx::dit

#endif  // LTX_ENGINE_DIT_ROPE_TABLES_H_
