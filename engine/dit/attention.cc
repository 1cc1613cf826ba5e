#include "engine/dit/attention.h"

#include <cmath>

#include "kernels/status_macros.h"

namespace ltx::dit {

absl::StatusOr<GatedAttention> GatedAttention::Load(checkpoint::WeightLoader loader,
                                                    const AttentionConfig& config) {
  GatedAttention attention;
  attention.config_ = config;
  const int64_t inner = config.inner_dim();
  LTX_ASSIGN_OR_RETURN(attention.to_q_, loader.Linear("to_q", config.query_dim, inner));
  LTX_ASSIGN_OR_RETURN(attention.to_k_, loader.Linear("to_k", config.context_dim, inner));
  LTX_ASSIGN_OR_RETURN(attention.to_v_, loader.Linear("to_v", config.context_dim, inner));
  LTX_ASSIGN_OR_RETURN(attention.to_out_, loader.Linear("to_out.0", inner, config.query_dim));
  LTX_ASSIGN_OR_RETURN(attention.q_norm_, loader.Get("q_norm.weight", {inner}));
  LTX_ASSIGN_OR_RETURN(attention.k_norm_, loader.Get("k_norm.weight", {inner}));
  if (config.gated) {
    LTX_ASSIGN_OR_RETURN(attention.to_gate_logits_,
                         loader.Linear("to_gate_logits", config.query_dim, config.heads));
  }
  return attention;
}

absl::StatusOr<Tensor> GatedAttention::NormAndRotate(Device& device, const Tensor& x,
                                                     const Tensor& weight,
                                                     const RopeTable& rope) const {
  NormRopeOptions options;
  options.heads = config_.heads;
  options.span = NormRopeOptions::Span::kFullWidth;
  options.weight = weight;
  options.epsilon = config_.epsilon;
  options.rope = rope;
  return device.NormRope(x, options);
}

absl::Status GatedAttention::Observe(Device& device, const Tensor& q, const Tensor& k,
                                     const Tensor& rotated_q, const Tensor& v,
                                     const StageObserver& observer) const {
  LTX_ASSIGN_OR_RETURN(const Tensor q_normed, NormAndRotate(device, q, q_norm_, {}));
  LTX_ASSIGN_OR_RETURN(const Tensor k_normed, NormAndRotate(device, k, k_norm_, {}));
  observer("v", v);
  observer("q_normed", q_normed);
  observer("k_normed", k_normed);
  observer("q_roped", rotated_q);
  return absl::OkStatus();
}

absl::StatusOr<Tensor> GatedAttention::Forward(Device& device, const AttentionInputs& inputs,
                                               const StageObserver& observer) const {
  const Tensor& context = inputs.context.defined() ? inputs.context : inputs.x;
  LTX_ASSIGN_OR_RETURN(const Tensor v, device.Linear(context, to_v_));
  Tensor out;
  if (inputs.keep.all_skipped) {
    LTX_ASSIGN_OR_RETURN(out, device.Scale(v, 1.0f));
  } else {
    LTX_ASSIGN_OR_RETURN(Tensor q, device.Linear(inputs.x, to_q_));
    LTX_ASSIGN_OR_RETURN(Tensor k, device.Linear(context, to_k_));
    LTX_ASSIGN_OR_RETURN(Tensor rotated_q, NormAndRotate(device, q, q_norm_, inputs.rope));
    if (observer) LTX_RETURN_IF_ERROR(Observe(device, q, k, rotated_q, v, observer));
    q = std::move(rotated_q);
    const RopeTable& key_rope = inputs.key_rope.defined() ? inputs.key_rope : inputs.rope;
    LTX_ASSIGN_OR_RETURN(k, NormAndRotate(device, k, k_norm_, key_rope));
    AttentionOptions options;
    options.heads = config_.heads;
    options.kv_heads = config_.heads;
    options.scale = 1.0f / std::sqrt(static_cast<float>(config_.head_dim));
    options.bias = inputs.bias;
    LTX_ASSIGN_OR_RETURN(out, device.Attention(q, k, v, options));
    if (!inputs.keep.all_kept()) {
      LTX_ASSIGN_OR_RETURN(out, device.BlendBatch(out, v, inputs.keep.weights));
    }
  }
  if (config_.gated) {
    LTX_ASSIGN_OR_RETURN(const Tensor logits, device.Linear(inputs.x, to_gate_logits_));
    if (observer) {
      LTX_ASSIGN_OR_RETURN(const Tensor sigmoid, device.Apply(logits, Activation::kSigmoid));
      LTX_ASSIGN_OR_RETURN(const Tensor gates, device.Scale(sigmoid, 2.0f));
      observer("gates", gates);
    }
    LTX_RETURN_IF_ERROR(device.HeadGate(&out, logits));
  }
  return device.Linear(out, to_out_);
}

}  // namespace ltx::dit
