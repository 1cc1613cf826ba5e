#ifndef LTX_KERNELS_OPERAND_CHECK_H_
#define LTX_KERNELS_OPERAND_CHECK_H_

#include <initializer_list>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/op_types.h"
#include "kernels/tensor.h"

namespace ltx {

/// Checks of operands. Each failure names the operation and what it was given: INTERNAL for
/// operands that do not fit together, UNIMPLEMENTED for a dtype other than f32 and bf16.

/// INTERNAL "<operation>: <problem>; operands <shape dtype>, ...".
absl::Status OperandError(absl::string_view operation, absl::string_view problem,
                          std::initializer_list<const Tensor*> operands);

/// `x` is given, of rank >= `min_rank`, and f32 or bf16.
absl::Status CheckFloat(absl::string_view operation, const Tensor& x, int min_rank = 0);

/// `x` passes CheckFloat and `y` has its shape and dtype.
absl::Status CheckSame(absl::string_view operation, const Tensor& x, const Tensor& y);

/// `vector` is undefined, or [length] of x's dtype.
absl::Status CheckOptionalVector(absl::string_view operation, const Tensor& x, const Tensor& vector,
                                 int64_t length);
/// As CheckOptionalVector, and given.
absl::Status CheckVector(absl::string_view operation, const Tensor& x, const Tensor& vector,
                         int64_t length);

/// `columns` lie inside a tensor that passes CheckFloat.
absl::Status CheckColumns(absl::string_view operation, const Columns& columns, int min_rank = 1);

/// `vectors` gives every token of x [B, ..., D] a row, with every index in range. An index that the
/// host cannot read is checked for shape and dtype only; kernels must not read past the rows.
absl::Status CheckRowVectors(absl::string_view operation, const Tensor& x,
                             const RowVectors& vectors);

// Operations whose operands need more than the above.

/// weight [N, K] and its bias, for PrepareLinear.
absl::Status CheckLinearWeight(const Tensor& weight, const Tensor& bias);
/// x [..., K] for a weight prepared in `dtype`, for Linear.
absl::Status CheckLinearInput(const Tensor& x, const LinearWeight& weight, DType dtype);
/// a and b are alike, [B, T, C], and per_token is f32 [B, T].
absl::Status CheckTokens(absl::string_view operation, const Tensor& a, const Tensor& b,
                         const Tensor& per_token);
/// 1 to kMaxWeightedTerms terms alike, [B, T, C], with a weight each or one per token, for a result
/// of `dtype`.
absl::Status CheckWeightedSum(absl::Span<const WeightedTerm> terms, DType dtype);
/// Passes of one step, alike; only cond need be given.
absl::Status CheckGuide(const Tensor& cond, const Tensor& uncond, const Tensor& perturbed,
                        const Tensor& isolated);
absl::Status CheckOuterSum(const Columns& a, const Tensor& b);
absl::Status CheckSpatialNoise(const Tensor& x, const Tensor& draw, const Tensor& channel_scale);
/// The shape of Magnitude's result.
absl::StatusOr<Shape> MagnitudeShape(const Tensor& x);

/// Calls body with a value of the element type (float or BFloat16) of a checked dtype.
template <typename Body>
auto DispatchFloat(DType dtype, const Body& body) {
  if (dtype == DType::kBF16) return body(BFloat16{});
  return body(float{});
}

}  // namespace ltx

#endif  // LTX_KERNELS_OPERAND_CHECK_H_
