#include "kernels/op_check.h"

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace ltx {
namespace {

bool IsOneOr(int64_t extent, int64_t full) { return extent == 1 || extent == full; }

absl::Status CheckTables(absl::string_view operation, const Columns& columns, int64_t heads,
                         const RopeTable& rope) {
  if (!rope.defined()) return absl::OkStatus();
  LTX_RETURN_IF_ERROR(CheckSame(operation, rope.cos, rope.sin));
  const Tensor& x = columns.tensor;
  if (rope.cos.dtype() != x.dtype()) {
    return OperandError(operation, "rope tables must have the dtype of x", {&x, &rope.cos});
  }
  const Shape& table = rope.cos.shape();
  const int64_t width = columns.width;
  bool fits = false;
  if (rope.kind == RopeTable::Kind::kSplit) {
    fits = table.rank() == 4 && IsOneOr(table.dim(0), x.dim(0)) && IsOneOr(table.dim(1), heads) &&
           table.dim(2) == x.dim(1) && 2 * table.dim(3) == width / heads;
  } else {
    fits = table.rank() == 3 && IsOneOr(table.dim(0), x.dim(0)) && table.dim(1) == x.dim(1) &&
           table.dim(2) == width && width / heads % 2 == 0;
  }
  if (!fits) {
    return OperandError(operation, absl::StrCat("rope tables do not fit ", heads, " heads of x"),
                        {&x, &rope.cos});
  }
  return absl::OkStatus();
}

absl::Status CheckHeads(absl::string_view operation, const Columns& x, int64_t heads) {
  LTX_RETURN_IF_ERROR(CheckColumns(operation, x));
  if (x.tensor.rank() != 3 || heads < 1 || x.width % heads != 0) {
    return OperandError(
        operation,
        absl::StrCat("x must be [B, N, heads * d] for ", heads, " heads, its width is ", x.width),
        {&x.tensor});
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckModulation(absl::string_view operation, const Tensor& x, const RowVectors& scale,
                             const RowVectors& shift) {
  LTX_RETURN_IF_ERROR(CheckFloat(operation, x, 2));
  LTX_RETURN_IF_ERROR(CheckRowVectors(operation, x, scale));
  return CheckRowVectors(operation, x, shift);
}

absl::Status CheckRmsNormInto(const Tensor& x, const Columns& columns) {
  constexpr absl::string_view kName = "RmsNormInto";
  LTX_RETURN_IF_ERROR(CheckFloat(kName, x, 1));
  LTX_RETURN_IF_ERROR(CheckColumns(kName, columns));
  if (columns.tensor.dtype() == x.dtype() && columns.shape() == x.shape()) return absl::OkStatus();
  return OperandError(
      kName, absl::StrCat("x does not fit ", columns.width, " columns from ", columns.begin),
      {&x, &columns.tensor});
}

absl::Status CheckResidualNorm(const Tensor& state, const ResidualUpdate& update,
                               absl::Span<const NormReading> readings) {
  constexpr absl::string_view kName = "ResidualNorm";
  LTX_RETURN_IF_ERROR(CheckFloat(kName, state, 3));
  for (const NormReading& reading : readings) {
    if (!reading.scale.rows.defined() && !reading.shift.rows.defined()) continue;
    LTX_RETURN_IF_ERROR(CheckModulation(kName, state, reading.scale, reading.shift));
  }
  if (!update.value.defined()) return absl::OkStatus();
  const Tensor& value = update.value;
  LTX_RETURN_IF_ERROR(CheckFloat(kName, value, 3));
  if (value.dtype() != state.dtype() || value.dim(1) != state.dim(1) ||
      value.dim(2) != state.dim(2) || update.first_batch < 0 ||
      update.first_batch + value.dim(0) > state.dim(0)) {
    return OperandError(
        kName,
        absl::StrCat("an update at batch row ", update.first_batch, " does not fit the state"),
        {&state, &value});
  }
  if (!update.gate.rows.defined()) return absl::OkStatus();
  return CheckRowVectors(kName, value, update.gate);
}

absl::Status CheckGroupNorm(const Tensor& x, const Tensor& weight, const Tensor& bias,
                            const GroupNormOptions& options) {
  LTX_RETURN_IF_ERROR(CheckFloat("GroupNorm", x, 2));
  const int64_t channels = x.dim(-1);
  LTX_RETURN_IF_ERROR(CheckVector("GroupNorm", x, weight, channels));
  LTX_RETURN_IF_ERROR(CheckVector("GroupNorm", x, bias, channels));
  if (options.groups < 1 || channels % options.groups != 0) {
    return OperandError(
        "GroupNorm", absl::StrCat("channels do not divide into ", options.groups, " groups"), {&x});
  }
  return absl::OkStatus();
}

absl::Status CheckNormRope(absl::string_view operation, const Columns& x,
                           const NormRopeOptions& options) {
  LTX_RETURN_IF_ERROR(CheckHeads(operation, x, options.heads));
  const bool per_head = options.span == NormRopeOptions::Span::kPerHead;
  LTX_RETURN_IF_ERROR(CheckOptionalVector(operation, x.tensor, options.weight,
                                          per_head ? x.width / options.heads : x.width));
  return CheckTables(operation, x, options.heads, options.rope);
}

absl::Status CheckRope(const Tensor& x, int64_t heads, const RopeTable& rope) {
  LTX_RETURN_IF_ERROR(CheckHeads("Rope", x, heads));
  if (!rope.defined()) return OperandError("Rope", "needs tables", {&x, &rope.cos});
  return CheckTables("Rope", x, heads, rope);
}

absl::Status CheckAttention(const Columns& q, const Columns& k, const Columns& v,
                            const AttentionOptions& options) {
  constexpr absl::string_view kName = "Attention";
  for (const Columns* operand : {&q, &k, &v}) LTX_RETURN_IF_ERROR(CheckColumns(kName, *operand));
  const Tensor& queries = q.tensor;
  const Tensor& keys = k.tensor;
  const Tensor& values = v.tensor;
  const bool alike = queries.rank() == 3 && keys.rank() == 3 && values.rank() == 3 &&
                     keys.dtype() == queries.dtype() && values.dtype() == queries.dtype() &&
                     keys.dim(0) == queries.dim(0) && values.dim(0) == queries.dim(0) &&
                     values.dim(1) == keys.dim(1);
  if (!alike) {
    return OperandError(kName, "q, k, v must be [B, N, heads * d] of one batch size and dtype",
                        {&queries, &keys, &values});
  }
  const int64_t heads = options.heads;
  const int64_t kv_heads = options.kv_heads;
  if (heads < 1 || kv_heads < 1 || heads % kv_heads != 0 || q.width % heads != 0 ||
      k.width % kv_heads != 0 || v.width % kv_heads != 0 || q.width / heads != k.width / kv_heads) {
    return OperandError(
        kName,
        absl::StrCat("widths ", q.width, ", ", k.width, ", ", v.width, " do not fit ", heads,
                     " query heads and ", kv_heads, " key/value heads"),
        {&queries, &keys, &values});
  }
  if (options.causal && queries.dim(1) != keys.dim(1)) {
    return OperandError(kName, "causal needs as many keys as queries", {&queries, &keys});
  }
  const Tensor& mask = options.key_mask;
  if (mask.defined() &&
      (mask.dtype() != DType::kU8 || mask.shape() != Shape({keys.dim(0), keys.dim(1)}))) {
    return OperandError(kName, "the key mask must be U8 [B, Nk]", {&queries, &keys, &mask});
  }
  const Tensor& bias = options.bias;
  if (bias.defined()) {
    const bool fits = bias.dtype() == DType::kF32 && bias.rank() == 4 &&
                      (bias.dim(0) == 1 || bias.dim(0) == queries.dim(0)) && bias.dim(1) == 1 &&
                      (bias.dim(2) == 1 || bias.dim(2) == queries.dim(1)) &&
                      bias.dim(3) == keys.dim(1);
    if (!fits) {
      return OperandError(kName, "the bias must be F32 [B or 1, 1, Nq or 1, Nk]",
                          {&queries, &keys, &bias});
    }
  }
  return absl::OkStatus();
}

absl::Status CheckHeadGate(const Tensor& x, const Columns& logits) {
  LTX_RETURN_IF_ERROR(CheckFloat("HeadGate", x));
  LTX_RETURN_IF_ERROR(CheckColumns("HeadGate", logits));
  const Tensor& gates = logits.tensor;
  const bool fits = x.rank() == 3 && gates.rank() == 3 && gates.dtype() == x.dtype() &&
                    gates.dim(0) == x.dim(0) && gates.dim(1) == x.dim(1) && logits.width > 0 &&
                    x.dim(2) % logits.width == 0;
  if (!fits) {
    return OperandError("HeadGate", "needs x [B, N, heads * d] and logits [B, N, heads]",
                        {&x, &gates});
  }
  return absl::OkStatus();
}

absl::Status CheckAntiAliasedSnake(const Tensor& x, const Tensor& up, const Tensor& down,
                                   const Tensor& alpha, const Tensor& inverse_beta) {
  constexpr absl::string_view kName = "AntiAliasedSnake";
  LTX_RETURN_IF_ERROR(CheckFloat(kName, x));
  if (x.dtype() != DType::kF32) {
    return absl::UnimplementedError("AntiAliasedSnake: only F32 is supported");
  }
  if (x.rank() != 3) return OperandError(kName, "x must be [B, T, C]", {&x});
  LTX_RETURN_IF_ERROR(CheckVector(kName, x, up, kSnakeTaps));
  LTX_RETURN_IF_ERROR(CheckVector(kName, x, down, kSnakeTaps));
  LTX_RETURN_IF_ERROR(CheckVector(kName, x, alpha, x.dim(2)));
  LTX_RETURN_IF_ERROR(CheckVector(kName, x, inverse_beta, x.dim(2)));
  return absl::OkStatus();
}

absl::Status CheckConvWeight(const Tensor& weight, const Tensor& bias, bool transposed) {
  const absl::string_view operation = transposed ? "PrepareConvTranspose1d" : "PrepareConv";
  LTX_RETURN_IF_ERROR(CheckFloat(operation, weight));
  if (transposed ? weight.rank() != 3 : weight.rank() < 3 || weight.rank() > 5) {
    return OperandError(operation,
                        transposed ? "weight must be [C, N, k]"
                                   : "weight must be [N, C, one to three kernel extents]",
                        {&weight});
  }
  if (Shape(weight.shape().dims().subspan(2)).num_elements() == 0) {
    return OperandError(operation, "kernel extents must be positive", {&weight});
  }
  return CheckOptionalVector(operation, weight, bias, weight.dim(transposed ? 1 : 0));
}

absl::Status CheckConvInput(absl::string_view operation, const Tensor& x, const ConvWeight& weight,
                            DType dtype, bool prepared_transposed, bool transposed) {
  LTX_RETURN_IF_ERROR(CheckFloat(operation, x));
  if (prepared_transposed != transposed) {
    return OperandError(operation, "the weight was prepared for the other kind of convolution",
                        {&x});
  }
  if (x.rank() != weight.kernel.rank() + 2 || x.dim(-1) != weight.in_channels ||
      x.dtype() != dtype) {
    return OperandError(operation,
                        absl::StrCat("weight has ", weight.in_channels, " input channels, kernel ",
                                     weight.kernel.ToString(), ", ", DTypeName(dtype)),
                        {&x});
  }
  return absl::OkStatus();
}

}  // namespace ltx
