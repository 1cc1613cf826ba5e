#ifndef LTX_ENGINE_DIT_ATTENTION_H_
#define LTX_ENGINE_DIT_ATTENTION_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/dit/perturbations.h"
#include "engine/stage_observer.h"
#include "kernels/device.h"

namespace ltx::dit {

struct AttentionConfig {
  /// Width of the stream that asks, and of the result.
  int64_t query_dim = 0;
  /// Width of the sequence that keys and values come from.
  int64_t context_dim = 0;
  int64_t heads = 0;
  int64_t head_dim = 0;
  float epsilon = 1e-6f;
  /// Keys and values come from the queries' own sequence, so that one product makes all of them.
  bool self = false;
  /// Scale each head by 2 sigmoid(logit), the logits being a linear function of the query input.
  bool gated = false;

  int64_t inner_dim() const { return heads * head_dim; }
};

struct AttentionInputs {
  /// [B, Nq, query_dim].
  Tensor x;
  /// [B, Nk, context_dim]; undefined in self-attention.
  Tensor context;
  /// The row of `context` that each of the B samples attends to; empty: its own. Samples that share
  /// a row share its keys and values.
  std::vector<int32_t> context_rows;
  /// f32 [B or 1, 1, Nq or 1, Nk] or undefined.
  Tensor bias;
  /// Undefined: no rotation.
  RopeTable rope;
  /// Table of the keys; undefined: `rope`.
  RopeTable key_rope;
  /// Samples that skip attention pass their values through instead; self-attention only.
  KeepFlags keep;
};

/// Multi-head attention with q/k RMS norm over all heads together, rotary positions and per-head
/// gates (reference: attention.py, Attention).
class GatedAttention {
 public:
  GatedAttention() = default;
  /// Reads to_q, to_k, to_v, to_out.0, q_norm, k_norm and, if gated, to_gate_logits.
  static absl::StatusOr<GatedAttention> Load(checkpoint::WeightLoader loader,
                                             const AttentionConfig& config);

  /// -> [B, Nq, query_dim]. The observer sees "v", "q_normed", "k_normed", "q_roped", "gates".
  /// Moved-in inputs are released once they are projected.
  absl::StatusOr<Tensor> Forward(Device& device, AttentionInputs inputs,
                                 const StageObserver& observer = nullptr) const;

 private:
  /// Parts of the fused products of one call.
  struct Projections {
    Columns q;
    Columns k;
    Columns v;
    /// Undefined if not gated.
    Columns gate_logits;
  };
  absl::StatusOr<Projections> Project(Device& device, const AttentionInputs& inputs) const;
  /// The norm and rotation of q (`key` false) or k.
  NormRopeOptions NormOptions(const AttentionInputs& inputs, bool key) const;
  /// -> [B, Nq, inner_dim], before the gates; changes q and k in place.
  absl::StatusOr<Tensor> Attend(Device& device, const AttentionInputs& inputs,
                                const Projections& parts) const;
  /// One piece of Attend: samples that attend alike.
  struct Run {
    int64_t begin = 0;
    int64_t end = 0;
    /// The first of the context's rows, of which there are as many as samples, or one for all.
    int64_t context_begin = 0;
    int64_t context_end = 0;
    bool kept = true;
  };
  std::vector<Run> RunsOf(const AttentionInputs& inputs, int64_t batch) const;
  absl::StatusOr<Tensor> AttendRun(Device& device, const AttentionInputs& inputs,
                                   const Projections& parts, const Run& run,
                                   AttentionOptions options) const;
  absl::Status Observe(Device& device, const AttentionInputs& inputs, const Projections& parts,
                       const StageObserver& observer) const;

  AttentionConfig config_;
  /// to_q | to_k | to_v | to_gate_logits in self-attention, else to_q | to_gate_logits.
  LinearWeight of_x_;
  /// to_k | to_v; undefined in self-attention.
  LinearWeight of_context_;
  LinearWeight to_out_;
  Tensor q_norm_;
  Tensor k_norm_;
};

}  // namespace ltx::dit

#endif  // LTX_ENGINE_DIT_ATTENTION_H_
