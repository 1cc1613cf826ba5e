#include "engine/text/duration_head.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::text {

using checkpoint::DurationHeadConfig;
using checkpoint::WeightLoader;

absl::StatusOr<DurationHead::Stream> DurationHead::LoadStream(absl::string_view name, int64_t width,
                                                              WeightLoader* loader) const {
  Stream stream;
  LTX_ASSIGN_OR_RETURN(stream.projection, loader->Linear(absl::StrCat(name, "_input_proj"), width,
                                                         config_.pooler_hidden_dim));
  LTX_ASSIGN_OR_RETURN(stream.embedding, loader->Get(absl::StrCat(name, "_modality_emb"),
                                                     {config_.pooler_hidden_dim}));
  return stream;
}

absl::StatusOr<DurationHead> DurationHead::Load(const DurationHeadConfig& config,
                                                WeightLoader loader) {
  const int64_t h = config.pooler_hidden_dim;
  DurationHead head(config, &loader.device());
  LTX_ASSIGN_OR_RETURN(head.video_, head.LoadStream("video", config.cross_attention_dim, &loader));
  LTX_ASSIGN_OR_RETURN(head.audio_,
                       head.LoadStream("audio", config.audio_cross_attention_dim, &loader));
  WeightLoader pooler = loader.Sub("attention_pooler.");
  LTX_ASSIGN_OR_RETURN(const Tensor queries, pooler.Get("query_tokens", {config.num_queries, h}));
  LTX_ASSIGN_OR_RETURN(head.queries_, queries.Reshape({1, config.num_queries, h}));
  LTX_ASSIGN_OR_RETURN(const Tensor weight, pooler.Get("cross_attn.in_proj_weight", {3 * h, h}));
  LTX_ASSIGN_OR_RETURN(const Tensor bias, pooler.Get("cross_attn.in_proj_bias", {3 * h}));
  // The file stacks the maps of queries, keys and values.
  LinearWeight* const maps[] = {&head.q_, &head.k_, &head.v_};
  for (int64_t i = 0; i < 3; ++i) {
    LTX_ASSIGN_OR_RETURN(const Tensor rows, weight.Rows(i * h, (i + 1) * h));
    LTX_ASSIGN_OR_RETURN(const Tensor offsets, bias.Rows(i * h, (i + 1) * h));
    LTX_ASSIGN_OR_RETURN(*maps[i], head.device_->PrepareLinear(rows, offsets, loader.owner()));
  }
  LTX_ASSIGN_OR_RETURN(head.out_, pooler.Linear("cross_attn.out_proj", h, h));
  LTX_ASSIGN_OR_RETURN(head.hidden_,
                       loader.Linear("mlp_hidden", config.num_queries * h, config.mlp_hidden));
  LTX_ASSIGN_OR_RETURN(head.seconds_, loader.Linear("mlp_out", config.mlp_hidden, 1));
  LTX_RETURN_IF_ERROR(loader.CheckAllConsumed());
  return head;
}

absl::StatusOr<Tensor> DurationHead::Tokens(const Tensor& video, const Tensor& audio) const {
  const std::pair<const Tensor*, const Stream*> streams[] = {{&video, &video_}, {&audio, &audio_}};
  std::vector<Tensor> parts;
  for (const auto& [context, stream] : streams) {
    if (!context->defined()) continue;
    if (context->rank() != 3 || context->dim(0) != 1 ||
        context->dim(2) != stream->projection.in_features) {
      return absl::InvalidArgumentError(
          absl::StrCat("duration head: a context of shape ", context->shape().ToString(),
                       " instead of [1, tokens, ", stream->projection.in_features, "]"));
    }
    LTX_ASSIGN_OR_RETURN(const Tensor projected, device_->Linear(*context, stream->projection));
    LTX_ASSIGN_OR_RETURN(Tensor tokens,
                         device_->ScaleShiftChannels(projected, Tensor(), stream->embedding));
    parts.push_back(std::move(tokens));
  }
  if (parts.empty()) {
    return absl::InvalidArgumentError("duration head: neither a video nor an audio context");
  }
  return device_->Concat(parts, 1);
}

absl::StatusOr<Tensor> DurationHead::Pool(const Tensor& tokens) const {
  LTX_ASSIGN_OR_RETURN(const Tensor q, device_->Linear(queries_, q_));
  LTX_ASSIGN_OR_RETURN(const Tensor k, device_->Linear(tokens, k_));
  LTX_ASSIGN_OR_RETURN(const Tensor v, device_->Linear(tokens, v_));
  AttentionOptions options;
  options.heads = config_.num_pooler_heads;
  options.kv_heads = config_.num_pooler_heads;
  options.scale =
      1.0f / std::sqrt(static_cast<float>(config_.pooler_hidden_dim / config_.num_pooler_heads));
  LTX_ASSIGN_OR_RETURN(const Tensor heads, device_->Attention(q, k, v, options));
  return device_->Linear(heads, out_);
}

absl::StatusOr<float> DurationHead::PredictSeconds(const Tensor& video, const Tensor& audio,
                                                   const StageObserver& observer) const {
  LTX_ASSIGN_OR_RETURN(const Tensor tokens, Tokens(video, audio));
  if (observer) observer("tokens", tokens);
  LTX_ASSIGN_OR_RETURN(const Tensor pooled, Pool(tokens));
  if (observer) observer("pooled", pooled);
  LTX_ASSIGN_OR_RETURN(Tensor x,
                       pooled.Reshape({1, config_.num_queries * config_.pooler_hidden_dim}));
  LinearOptions gelu;
  gelu.activation = Activation::kGeluTanh;
  LTX_ASSIGN_OR_RETURN(x, device_->Linear(x, hidden_, gelu));
  LTX_ASSIGN_OR_RETURN(x, device_->Linear(x, seconds_));
  LTX_ASSIGN_OR_RETURN(x, device_->Apply(x, Activation::kExp));
  LTX_ASSIGN_OR_RETURN(const std::vector<float> seconds, ToFloats(*device_, x));
  if (!std::isfinite(seconds[0])) {
    return absl::InternalError("duration head: the predicted duration is not finite");
  }
  return seconds[0];
}

}  // namespace ltx::text
