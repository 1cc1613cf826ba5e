#include "engine/dit/attention.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "kernels/status_macros.h"

namespace ltx::dit {
namespace {

/// A copy of some columns.
absl::StatusOr<Tensor> Copy(Device& device, const Columns& columns) {
  return device.Slice(columns.tensor, columns.tensor.rank() - 1, columns.begin,
                      columns.begin + columns.width);
}

/// The same columns of the batch rows [begin, end).
absl::StatusOr<Columns> BatchRows(const Columns& columns, int64_t begin, int64_t end) {
  LTX_ASSIGN_OR_RETURN(Tensor rows, columns.tensor.Rows(begin, end));
  return Columns(std::move(rows), columns.begin, columns.width);
}

}  // namespace

absl::StatusOr<GatedAttention> GatedAttention::Load(checkpoint::WeightLoader loader,
                                                    const AttentionConfig& config) {
  using Part = checkpoint::WeightLoader::LinearPart;
  GatedAttention attention;
  attention.config_ = config;
  const int64_t inner = config.inner_dim();
  std::vector<Part> of_x = {{"to_q", inner}};
  const std::vector<Part> keys_and_values = {{"to_k", inner}, {"to_v", inner}};
  if (config.self) {
    of_x.insert(of_x.end(), keys_and_values.begin(), keys_and_values.end());
  } else {
    LTX_ASSIGN_OR_RETURN(attention.of_context_,
                         loader.FusedLinear(keys_and_values, config.context_dim));
  }
  if (config.gated) of_x.push_back({"to_gate_logits", config.heads});
  LTX_ASSIGN_OR_RETURN(attention.of_x_, loader.FusedLinear(of_x, config.query_dim));
  LTX_ASSIGN_OR_RETURN(attention.to_out_, loader.Linear("to_out.0", inner, config.query_dim));
  LTX_ASSIGN_OR_RETURN(attention.q_norm_, loader.Get("q_norm.weight", {inner}));
  LTX_ASSIGN_OR_RETURN(attention.k_norm_, loader.Get("k_norm.weight", {inner}));
  return attention;
}

absl::StatusOr<GatedAttention::Projections> GatedAttention::Project(
    Device& device, const AttentionInputs& inputs) const {
  const int64_t inner = config_.inner_dim();
  LTX_ASSIGN_OR_RETURN(const Tensor of_x, device.Linear(inputs.x, of_x_));
  Projections parts;
  parts.q = Columns(of_x, 0, inner);
  int64_t gate_begin = inner;
  if (config_.self) {
    parts.k = Columns(of_x, inner, inner);
    parts.v = Columns(of_x, 2 * inner, inner);
    gate_begin = 3 * inner;
  } else {
    LTX_ASSIGN_OR_RETURN(const Tensor of_context, device.Linear(inputs.context, of_context_));
    parts.k = Columns(of_context, 0, inner);
    parts.v = Columns(of_context, inner, inner);
  }
  if (config_.gated) parts.gate_logits = Columns(of_x, gate_begin, config_.heads);
  return parts;
}

NormRopeOptions GatedAttention::NormOptions(const AttentionInputs& inputs, bool key) const {
  NormRopeOptions options;
  options.heads = config_.heads;
  options.span = NormRopeOptions::Span::kFullWidth;
  options.weight = key ? k_norm_ : q_norm_;
  options.epsilon = config_.epsilon;
  options.rope = key && inputs.key_rope.defined() ? inputs.key_rope : inputs.rope;
  return options;
}

absl::Status GatedAttention::Observe(Device& device, const AttentionInputs& inputs,
                                     const Projections& parts,
                                     const StageObserver& observer) const {
  LTX_ASSIGN_OR_RETURN(const Tensor v, Copy(device, parts.v));
  observer("v", v);
  if (!inputs.keep.all_skipped) {
    LTX_ASSIGN_OR_RETURN(const Tensor q, Copy(device, parts.q));
    LTX_ASSIGN_OR_RETURN(const Tensor k, Copy(device, parts.k));
    AttentionInputs unrotated;
    LTX_ASSIGN_OR_RETURN(const Tensor q_normed,
                         device.NormRope(q, NormOptions(unrotated, /*key=*/false)));
    observer("q_normed", q_normed);
    LTX_ASSIGN_OR_RETURN(const Tensor k_normed,
                         device.NormRope(k, NormOptions(unrotated, /*key=*/true)));
    observer("k_normed", k_normed);
    LTX_ASSIGN_OR_RETURN(const Tensor q_roped,
                         device.NormRope(q, NormOptions(inputs, /*key=*/false)));
    observer("q_roped", q_roped);
  }
  if (!config_.gated) return absl::OkStatus();
  LTX_ASSIGN_OR_RETURN(const Tensor logits, Copy(device, parts.gate_logits));
  LTX_ASSIGN_OR_RETURN(const Tensor sigmoid, device.Apply(logits, Activation::kSigmoid));
  LTX_ASSIGN_OR_RETURN(const Tensor gates, device.Scale(sigmoid, 2.0f));
  observer("gates", gates);
  return absl::OkStatus();
}

absl::StatusOr<Tensor> GatedAttention::Attend(Device& device, const AttentionInputs& inputs,
                                              const Projections& parts) const {
  if (inputs.keep.all_skipped) return Copy(device, parts.v);
  const NormRopePart normed[] = {{parts.q, NormOptions(inputs, /*key=*/false)},
                                 {parts.k, NormOptions(inputs, /*key=*/true)}};
  LTX_RETURN_IF_ERROR(device.NormRopeInPlace(normed));
  AttentionOptions options;
  options.heads = config_.heads;
  options.kv_heads = config_.heads;
  options.scale = 1.0f / std::sqrt(static_cast<float>(config_.head_dim));
  options.bias = inputs.bias;
  const int64_t batch = parts.q.tensor.dim(0);
  const std::vector<Run> runs = RunsOf(inputs, batch);
  if (runs.size() == 1 && inputs.context_rows.empty()) {
    return device.Attention(parts.q, parts.k, parts.v, options);
  }
  std::vector<Tensor> pieces;
  for (const Run& run : runs) {
    LTX_ASSIGN_OR_RETURN(Tensor piece, AttendRun(device, inputs, parts, run, options));
    pieces.push_back(std::move(piece));
  }
  return pieces.size() == 1 ? pieces.front() : device.Concat(pieces, 0);
}

std::vector<GatedAttention::Run> GatedAttention::RunsOf(const AttentionInputs& inputs,
                                                        int64_t batch) const {
  std::vector<Run> runs;
  if (inputs.context_rows.empty()) {
    for (const BatchRun& run : dit::RunsOf(inputs.keep, batch)) {
      runs.push_back({run.begin, run.end, run.begin, run.end, run.kept});
    }
    return runs;
  }
  // Neighbours of one context become one longer sequence of queries, unless a bias tells them
  // apart.
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t row = inputs.context_rows[b];
    const bool joins = !runs.empty() && runs.back().context_begin == row && !inputs.bias.defined();
    if (!joins) runs.push_back({b, b, row, row + 1, true});
    runs.back().end = b + 1;
  }
  return runs;
}

absl::StatusOr<Tensor> GatedAttention::AttendRun(Device& device, const AttentionInputs& inputs,
                                                 const Projections& parts, const Run& run,
                                                 AttentionOptions options) const {
  LTX_ASSIGN_OR_RETURN(const Columns v, BatchRows(parts.v, run.context_begin, run.context_end));
  // Samples that skip attention take no part in it; their values go on as they are.
  if (!run.kept) return Copy(device, v);
  LTX_ASSIGN_OR_RETURN(const Columns k, BatchRows(parts.k, run.context_begin, run.context_end));
  LTX_ASSIGN_OR_RETURN(Columns q, BatchRows(parts.q, run.begin, run.end));
  if (inputs.bias.defined() && inputs.bias.dim(0) > 1) {
    LTX_ASSIGN_OR_RETURN(options.bias, inputs.bias.Rows(run.begin, run.end));
  }
  const Shape shape = q.shape();
  if (shape.dim(0) != k.tensor.dim(0)) {
    LTX_ASSIGN_OR_RETURN(q.tensor,
                         q.tensor.Reshape({1, shape.dim(0) * shape.dim(1), q.tensor.dim(2)}));
  }
  LTX_ASSIGN_OR_RETURN(const Tensor attended, device.Attention(q, k, v, options));
  return attended.Reshape(shape);
}

absl::StatusOr<Tensor> GatedAttention::Forward(Device& device, AttentionInputs inputs,
                                               const StageObserver& observer) const {
  if (inputs.context.defined() == config_.self) {
    return absl::InternalError(
        "a context belongs to attention over another sequence, and only to it");
  }
  LTX_ASSIGN_OR_RETURN(const Projections parts, Project(device, inputs));
  inputs.x = Tensor();
  inputs.context = Tensor();
  if (observer) LTX_RETURN_IF_ERROR(Observe(device, inputs, parts, observer));
  LTX_ASSIGN_OR_RETURN(Tensor out, Attend(device, inputs, parts));
  if (config_.gated) LTX_RETURN_IF_ERROR(device.HeadGate(&out, parts.gate_logits));
  return device.Linear(out, to_out_);
}

}  // namespace ltx::dit
