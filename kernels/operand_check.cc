#include "kernels/operand_check.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace ltx {
namespace {

bool IsF32OrBF16(const Tensor& x) { return x.dtype() == DType::kF32 || x.dtype() == DType::kBF16; }

bool IsSummable(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF64;
}

}  // namespace

absl::Status OperandError(absl::string_view operation, absl::string_view problem,
                          std::initializer_list<const Tensor*> operands) {
  std::string message = absl::StrCat(operation, ": ", problem, "; operands");
  const char* separator = " ";
  for (const Tensor* operand : operands) {
    if (operand->defined()) {
      absl::StrAppend(&message, separator, operand->shape().ToString(), " ",
                      DTypeName(operand->dtype()));
    } else {
      absl::StrAppend(&message, separator, "undefined");
    }
    separator = ", ";
  }
  return absl::InternalError(message);
}

absl::Status CheckFloat(absl::string_view operation, const Tensor& x, int min_rank) {
  if (!x.defined()) return OperandError(operation, "needs its operand", {&x});
  if (!IsF32OrBF16(x)) {
    return absl::UnimplementedError(absl::StrCat(operation, ": dtype ", DTypeName(x.dtype()),
                                                 " is not supported, only F32 and BF16"));
  }
  if (x.rank() < min_rank) {
    return OperandError(operation, absl::StrCat("needs a rank of at least ", min_rank), {&x});
  }
  return absl::OkStatus();
}

absl::Status CheckSame(absl::string_view operation, const Tensor& x, const Tensor& y) {
  if (absl::Status status = CheckFloat(operation, x); !status.ok()) return status;
  if (!y.defined() || y.shape() != x.shape() || y.dtype() != x.dtype()) {
    return OperandError(operation, "operands must have one shape and dtype", {&x, &y});
  }
  return absl::OkStatus();
}

absl::Status CheckOptionalVector(absl::string_view operation, const Tensor& x, const Tensor& vector,
                                 int64_t length) {
  if (!vector.defined()) return absl::OkStatus();
  return CheckVector(operation, x, vector, length);
}

absl::Status CheckVector(absl::string_view operation, const Tensor& x, const Tensor& vector,
                         int64_t length) {
  if (!vector.defined() || vector.shape() != Shape({length}) || vector.dtype() != x.dtype()) {
    return OperandError(operation,
                        absl::StrCat("needs a vector of length ", length, " in the dtype of x"),
                        {&x, &vector});
  }
  return absl::OkStatus();
}

absl::Status CheckColumns(absl::string_view operation, const Columns& columns, int min_rank) {
  if (absl::Status status = CheckFloat(operation, columns.tensor, min_rank); !status.ok()) {
    return status;
  }
  if (columns.begin < 0 || columns.width < 0 || columns.begin > columns.pitch() - columns.width) {
    return OperandError(
        operation,
        absl::StrCat("columns [", columns.begin, ", ", columns.begin + columns.width, ")"),
        {&columns.tensor});
  }
  return absl::OkStatus();
}

absl::Status CheckRowVectors(absl::string_view operation, const Tensor& x,
                             const RowVectors& vectors) {
  const Tensor& rows = vectors.rows;
  const Tensor& index = vectors.index;
  if (!rows.defined() || rows.rank() != 2 || rows.dtype() != x.dtype()) {
    return OperandError(operation, "row vectors must be [U, W] in the dtype of x", {&x, &rows});
  }
  if (vectors.offset < 0 || vectors.offset + x.dim(-1) > rows.dim(1)) {
    return OperandError(operation,
                        absl::StrCat("row vectors at offset ", vectors.offset, " are too short"),
                        {&x, &rows});
  }
  const int64_t tokens = x.shape().num_rows();
  if (!index.defined()) {
    if (tokens > 0 && rows.dim(0) != 1 && rows.dim(0) != x.dim(0)) {
      return OperandError(operation, "without an index there must be one row, or one per batch",
                          {&x, &rows});
    }
    return absl::OkStatus();
  }
  if (index.dtype() != DType::kI32 || index.shape() != Shape({tokens})) {
    return OperandError(operation, "the row index must be I32 with one entry per token",
                        {&x, &rows, &index});
  }
  if (!index.host_accessible()) return absl::OkStatus();
  for (int64_t token = 0; token < tokens; ++token) {
    const int32_t row = index.data<int32_t>()[token];
    if (row < 0 || row >= rows.dim(0)) {
      return OperandError(operation, absl::StrCat("row index ", row, " of token ", token),
                          {&x, &rows, &index});
    }
  }
  return absl::OkStatus();
}

absl::Status CheckLinearWeight(const Tensor& weight, const Tensor& bias) {
  LTX_RETURN_IF_ERROR(CheckFloat("PrepareLinear", weight));
  if (weight.rank() != 2) return OperandError("PrepareLinear", "weight must be [N, K]", {&weight});
  return CheckOptionalVector("PrepareLinear", weight, bias, weight.dim(0));
}

absl::Status CheckLinearInput(const Tensor& x, const LinearWeight& weight, DType dtype) {
  LTX_RETURN_IF_ERROR(CheckFloat("Linear", x, 1));
  if (x.dim(-1) == weight.in_features && x.dtype() == dtype) return absl::OkStatus();
  return OperandError("Linear",
                      absl::StrCat("weight is [", weight.out_features, ", ", weight.in_features,
                                   "] ", DTypeName(dtype)),
                      {&x});
}

absl::Status CheckTokens(absl::string_view operation, const Tensor& a, const Tensor& b,
                         const Tensor& per_token) {
  LTX_RETURN_IF_ERROR(CheckSame(operation, a, b));
  if (a.rank() != 3) return OperandError(operation, "latents must be [B, T, C]", {&a, &b});
  if (!per_token.defined() || per_token.dtype() != DType::kF32 ||
      per_token.shape() != Shape({a.dim(0), a.dim(1)})) {
    return OperandError(operation, "needs one F32 value per token, [B, T]", {&a, &per_token});
  }
  return absl::OkStatus();
}

absl::Status CheckWeightedSum(absl::Span<const WeightedTerm> terms, DType dtype) {
  if (terms.empty() || terms.size() > kMaxWeightedTerms) {
    return OperandError("WeightedSum", absl::StrCat("has ", terms.size(), " terms"), {});
  }
  const Tensor& first = terms.front().x;
  for (const WeightedTerm& term : terms) {
    if (!term.x.defined() || term.x.rank() != 3 || term.x.shape() != first.shape()) {
      return OperandError("WeightedSum", "terms must be [B, T, C] alike", {&first, &term.x});
    }
    const auto weights = static_cast<int64_t>(term.weights.size());
    if (weights != 1 && weights != first.dim(0) * first.dim(1)) {
      return OperandError("WeightedSum", absl::StrCat("a term has ", weights, " weights"),
                          {&term.x});
    }
  }
  const auto summable = [](const WeightedTerm& term) { return IsSummable(term.x.dtype()); };
  if (!IsSummable(dtype) || !std::all_of(terms.begin(), terms.end(), summable)) {
    return absl::UnimplementedError("WeightedSum takes and gives F32, BF16 and F64");
  }
  return absl::OkStatus();
}

absl::Status CheckGuide(const Tensor& cond, const Tensor& uncond, const Tensor& perturbed,
                        const Tensor& isolated) {
  LTX_RETURN_IF_ERROR(CheckFloat("Guide", cond, 1));
  for (const Tensor* other : {&uncond, &perturbed, &isolated}) {
    if (other->defined()) LTX_RETURN_IF_ERROR(CheckSame("Guide", cond, *other));
  }
  return absl::OkStatus();
}

absl::Status CheckOuterSum(const Columns& a, const Tensor& b) {
  LTX_RETURN_IF_ERROR(CheckColumns("OuterSum", a, 2));
  LTX_RETURN_IF_ERROR(CheckFloat("OuterSum", b, 2));
  if (a.tensor.rank() != 2 || b.rank() != 2 || a.width != b.dim(1) ||
      a.tensor.dtype() != b.dtype()) {
    return OperandError("OuterSum", "needs [L, W] and [U, W] of one dtype", {&a.tensor, &b});
  }
  return absl::OkStatus();
}

absl::Status CheckSpatialNoise(const Tensor& x, const Tensor& draw, const Tensor& channel_scale) {
  constexpr absl::string_view kName = "AddSpatialNoise";
  LTX_RETURN_IF_ERROR(CheckFloat(kName, x));
  if (x.rank() != 5) return OperandError(kName, "x must be [B, T, H, W, C]", {&x});
  LTX_RETURN_IF_ERROR(CheckVector(kName, x, channel_scale, x.dim(4)));
  if (!draw.defined() || draw.shape() != Shape({x.dim(2), x.dim(3)}) || draw.dtype() != x.dtype()) {
    return OperandError(kName, "the draw must be [H, W] in the dtype of x", {&x, &draw});
  }
  return absl::OkStatus();
}

absl::StatusOr<Shape> MagnitudeShape(const Tensor& x) {
  LTX_RETURN_IF_ERROR(CheckFloat("Magnitude", x, 1));
  if (x.dim(-1) % 2 != 0) {
    return OperandError("Magnitude", "the last axis must hold as many real as imaginary parts",
                        {&x});
  }
  Shape shape = x.shape();
  shape.set_dim(-1, x.dim(-1) / 2);
  return shape;
}

}  // namespace ltx
