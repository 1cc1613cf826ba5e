#include "engine/text/embeddings_connector.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/dit/rope_tables.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::text {
namespace {

using checkpoint::ConnectorConfig;
using checkpoint::WeightLoader;

/// Of every norm in the connector.
constexpr float kEpsilon = 1e-6f;
/// Base of the rotary frequencies. Not the transformer's positional_embedding_theta, which the
/// reference does not hand to the connectors.
constexpr double kRopeTheta = 10000.0;

}  // namespace

absl::StatusOr<EmbeddingsConnector> EmbeddingsConnector::Load(const ConnectorConfig& config,
                                                              WeightLoader loader) {
  EmbeddingsConnector connector(config, &loader.device(), loader.compute_dtype());
  LTX_ASSIGN_OR_RETURN(connector.registers_,
                       loader.Get("learnable_registers", {kNumRegisters, config.width()}));
  for (int64_t i = 0; i < config.num_layers; ++i) {
    LTX_ASSIGN_OR_RETURN(
        Block block,
        connector.LoadBlock(loader.Sub(absl::StrCat("transformer_1d_blocks.", i, "."))));
    connector.blocks_.push_back(std::move(block));
  }
  LTX_RETURN_IF_ERROR(loader.CheckAllConsumed());
  return connector;
}

absl::StatusOr<EmbeddingsConnector::Block> EmbeddingsConnector::LoadBlock(
    WeightLoader loader) const {
  const int64_t width = config_.width();
  Block block;
  LTX_ASSIGN_OR_RETURN(block.q, loader.Linear("attn1.to_q", width, width));
  LTX_ASSIGN_OR_RETURN(block.k, loader.Linear("attn1.to_k", width, width));
  LTX_ASSIGN_OR_RETURN(block.v, loader.Linear("attn1.to_v", width, width));
  LTX_ASSIGN_OR_RETURN(block.out, loader.Linear("attn1.to_out.0", width, width));
  LTX_ASSIGN_OR_RETURN(block.q_norm, loader.Get("attn1.q_norm.weight", {width}));
  LTX_ASSIGN_OR_RETURN(block.k_norm, loader.Get("attn1.k_norm.weight", {width}));
  if (config_.apply_gated_attention) {
    LTX_ASSIGN_OR_RETURN(block.gate,
                         loader.Linear("attn1.to_gate_logits", width, config_.num_attention_heads));
  }
  // The inner width of the feed-forward layer is four times the connector's.
  LTX_ASSIGN_OR_RETURN(block.ff_in,
                       loader.Linear("ff.net.0.proj", width, 4 * width, config_.ff_bias));
  LTX_ASSIGN_OR_RETURN(block.ff_out, loader.Linear("ff.net.2", 4 * width, width, config_.ff_bias));
  return block;
}

absl::StatusOr<RopeTable> EmbeddingsConnector::Rope(int64_t length) {
  if (const auto cached = ropes_.find(length); cached != ropes_.end()) return cached->second;
  dit::RopeSpec spec;
  spec.kind = config_.rope_type == checkpoint::RopeType::kInterleaved
                  ? RopeTable::Kind::kInterleaved
                  : RopeTable::Kind::kSplit;
  spec.width = config_.width();
  spec.heads = config_.num_attention_heads;
  spec.max_position = {static_cast<float>(config_.max_pos)};
  spec.theta = kRopeTheta;
  spec.double_precision = config_.double_precision_rope;
  spec.use_middle = false;
  std::vector<float> positions;
  for (int64_t p = 0; p < length; ++p) {
    // Start and end of an interval; only the start is read.
    positions.insert(positions.end(), 2, static_cast<float>(p));
  }
  LTX_ASSIGN_OR_RETURN(const RopeTable table,
                       dit::BuildRopeTable(*device_, spec, positions, /*batch=*/1, length, dtype_));
  ropes_.emplace(length, table);
  return table;
}

absl::StatusOr<Tensor> EmbeddingsConnector::AppendRegisters(const Tensor& features,
                                                            int64_t length) const {
  const int64_t tokens = features.dim(1);
  if (tokens == length) return features;
  std::vector<int32_t> rows;
  for (int64_t p = tokens; p < length; ++p) {
    rows.push_back(static_cast<int32_t>(p % kNumRegisters));
  }
  LTX_ASSIGN_OR_RETURN(Tensor registers, device_->GatherRows(registers_, rows));
  LTX_ASSIGN_OR_RETURN(registers, registers.Reshape({1, length - tokens, config_.width()}));
  return device_->Concat({features, registers}, 1);
}

absl::StatusOr<Tensor> EmbeddingsConnector::Attend(const Block& block, const Tensor& x,
                                                   const RopeTable& rope) const {
  NormRopeOptions norm;
  norm.heads = config_.num_attention_heads;
  norm.span = NormRopeOptions::Span::kFullWidth;
  norm.epsilon = kEpsilon;
  norm.rope = rope;
  LTX_ASSIGN_OR_RETURN(Tensor q, device_->Linear(x, block.q));
  norm.weight = block.q_norm;
  LTX_ASSIGN_OR_RETURN(q, device_->NormRope(q, norm));
  LTX_ASSIGN_OR_RETURN(Tensor k, device_->Linear(x, block.k));
  norm.weight = block.k_norm;
  LTX_ASSIGN_OR_RETURN(k, device_->NormRope(k, norm));
  LTX_ASSIGN_OR_RETURN(const Tensor v, device_->Linear(x, block.v));
  AttentionOptions options;
  options.heads = config_.num_attention_heads;
  options.kv_heads = config_.num_attention_heads;
  options.scale = 1.0f / std::sqrt(static_cast<float>(config_.attention_head_dim));
  LTX_ASSIGN_OR_RETURN(Tensor heads, device_->Attention(q, k, v, options));
  if (block.gate.defined()) {
    LTX_ASSIGN_OR_RETURN(const Tensor logits, device_->Linear(x, block.gate));
    LTX_RETURN_IF_ERROR(device_->HeadGate(&heads, logits));
  }
  return device_->Linear(heads, block.out);
}

absl::StatusOr<Tensor> EmbeddingsConnector::RunBlock(const Block& block, Tensor x,
                                                     const RopeTable& rope) const {
  LTX_ASSIGN_OR_RETURN(Tensor half, device_->RmsNorm(x, Tensor(), kEpsilon));
  LTX_ASSIGN_OR_RETURN(half, Attend(block, half, rope));
  LTX_ASSIGN_OR_RETURN(x, device_->Add(x, half));
  LTX_ASSIGN_OR_RETURN(half, device_->RmsNorm(x, Tensor(), kEpsilon));
  LinearOptions gelu;
  gelu.activation = Activation::kGeluTanh;
  LTX_ASSIGN_OR_RETURN(half, device_->Linear(half, block.ff_in, gelu));
  LTX_ASSIGN_OR_RETURN(half, device_->Linear(half, block.ff_out));
  return device_->Add(x, half);
}

absl::StatusOr<Tensor> EmbeddingsConnector::Forward(const Tensor& features, int64_t length,
                                                    const StageObserver& observer) {
  if (length < features.dim(1) || length % kNumRegisters != 0) {
    return absl::InvalidArgumentError(absl::StrCat("connector: length ", length,
                                                   " must be a multiple of ", kNumRegisters,
                                                   " and hold all ", features.dim(1), " tokens"));
  }
  LTX_ASSIGN_OR_RETURN(const RopeTable rope, Rope(length));
  LTX_ASSIGN_OR_RETURN(Tensor x, AppendRegisters(features, length));
  if (observer) {
    observer("rope_cos", rope.cos);
    observer("rope_sin", rope.sin);
    observer("with_registers", x);
  }
  for (size_t i = 0; i < blocks_.size(); ++i) {
    LTX_ASSIGN_OR_RETURN(x, RunBlock(blocks_[i], std::move(x), rope));
    if (observer) observer(absl::StrCat("block", i), x);
  }
  return device_->RmsNorm(x, Tensor(), kEpsilon);
}

}  // namespace ltx::text
