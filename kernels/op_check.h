#ifndef LTX_KERNELS_OP_CHECK_H_
#define LTX_KERNELS_OP_CHECK_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/operand_check.h"

namespace ltx {

/// Checks of whole operations, the same on every device; errors as in operand_check.h.

/// Operands of the modulating norms.
absl::Status CheckModulation(absl::string_view operation, const Tensor& x, const RowVectors& scale,
                             const RowVectors& shift);
absl::Status CheckRmsNormInto(const Tensor& x, const Columns& columns);
absl::Status CheckResidualNorm(const Tensor& state, const ResidualUpdate& update,
                               absl::Span<const NormReading> readings);
absl::Status CheckGroupNorm(const Tensor& x, const Tensor& weight, const Tensor& bias,
                            const GroupNormOptions& options);

absl::Status CheckNormRope(absl::string_view operation, const Columns& x,
                           const NormRopeOptions& options);
absl::Status CheckRope(const Tensor& x, int64_t heads, const RopeTable& rope);
absl::Status CheckAttention(const Columns& q, const Columns& k, const Columns& v,
                            const AttentionOptions& options);
absl::Status CheckHeadGate(const Tensor& x, const Columns& logits);

/// Taps of the filters of AntiAliasedSnake.
inline constexpr int64_t kSnakeTaps = 12;
absl::Status CheckAntiAliasedSnake(const Tensor& x, const Tensor& up, const Tensor& down,
                                   const Tensor& alpha, const Tensor& inverse_beta);

/// A convolution's weight [N, C, one to three extents] and bias [N], or, if `transposed`, [C, N, k]
/// and [N].
absl::Status CheckConvWeight(const Tensor& weight, const Tensor& bias, bool transposed);
/// The input of a convolution with a defined weight that was prepared in `dtype`, for the
/// transposed kind if `prepared_transposed`.
absl::Status CheckConvInput(absl::string_view operation, const Tensor& x, const ConvWeight& weight,
                            DType dtype, bool prepared_transposed, bool transposed);

}  // namespace ltx

#endif  // LTX_KERNELS_OP_CHECK_H_
