#include "engine/text/text_tower.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::text {
namespace {

using checkpoint::GemmaConfig;
using checkpoint::GemmaFamily;
using checkpoint::GemmaRope;
using checkpoint::WeightLoader;

/// The prefix of the tower's tensors. Published files and the writers of the public libraries
/// differ in it; the norm that both families have in their first layer tells which one is there.
absl::StatusOr<std::string> FindPrefix(GemmaFamily family, const WeightLoader& loader) {
  const std::string own = family == GemmaFamily::kGemma3 ? "language_model.model." : "model.";
  const std::string nested = "model.language_model.";
  constexpr absl::string_view kProbe = "layers.0.post_feedforward_layernorm.weight";
  for (const std::string& prefix : {own, nested}) {
    if (loader.Has(absl::StrCat(prefix, kProbe))) return prefix;
  }
  return absl::NotFoundError(absl::StrCat("text tower: neither ", own, kProbe, " nor ", nested,
                                          kProbe, " is in the text encoder's files"));
}

/// Angular steps per position, f32 as the reference evaluates them; zero for the part of a head
/// that does not rotate.
std::vector<float> InverseFrequencies(const GemmaRope& rope, int64_t head_dim) {
  std::vector<float> inverse(static_cast<size_t>(head_dim / 2), 0.0f);
  const auto rotating =
      rope.type == GemmaRope::Type::kProportional
          ? static_cast<int64_t>(rope.partial_rotary_factor * static_cast<double>(head_dim) / 2.0)
          : head_dim / 2;
  for (int64_t i = 0; i < rotating; ++i) {
    // The exponent's denominator is the whole head, also where only a part of it rotates.
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(head_dim);
    const auto power = static_cast<float>(std::pow(rope.theta, static_cast<double>(exponent)));
    inverse[static_cast<size_t>(i)] = 1.0f / power / static_cast<float>(rope.factor);
  }
  return inverse;
}

}  // namespace

absl::StatusOr<TextTower> TextTower::Load(const GemmaConfig& config, const WeightLoader& loader) {
  TextTower tower(config, &loader.device());
  tower.dtype_ = loader.compute_dtype();
  const float scale = std::sqrt(static_cast<float>(config.hidden_size));
  tower.embedding_scale_ = tower.dtype_ == DType::kBF16 ? RoundToBFloat16(scale) : scale;
  LTX_ASSIGN_OR_RETURN(const std::string prefix, FindPrefix(config.family, loader));
  WeightLoader tower_loader = loader.Sub(prefix);
  LTX_ASSIGN_OR_RETURN(tower.embedding_, tower_loader.Get("embed_tokens.weight",
                                                          {config.vocab_size, config.hidden_size}));
  for (int64_t i = 0; i < config.num_hidden_layers; ++i) {
    LTX_ASSIGN_OR_RETURN(Layer layer,
                         tower.LoadLayer(i, tower_loader.Sub(absl::StrCat("layers.", i, "."))));
    tower.layers_.push_back(std::move(layer));
  }
  LTX_ASSIGN_OR_RETURN(tower.final_norm_, tower_loader.Get("norm.weight", {config.hidden_size}));
  LTX_RETURN_IF_ERROR(tower_loader.Sub("layers.").CheckAllConsumed());
  return tower;
}

absl::StatusOr<TextTower::Layer> TextTower::LoadLayer(int64_t index, WeightLoader loader) const {
  Layer layer;
  layer.full_attention = config_.full_attention[static_cast<size_t>(index)];
  layer.heads = config_.num_attention_heads;
  // Only layers that take values from the key projection have a key/value head count of their own.
  const bool values_from_keys = layer.full_attention && config_.attention_k_eq_v;
  layer.kv_heads =
      values_from_keys ? config_.num_global_key_value_heads : config_.num_key_value_heads;
  const int64_t head_dim = layer.full_attention ? config_.global_head_dim : config_.head_dim;
  const int64_t width = config_.hidden_size;
  const std::pair<const char*, Tensor*> norms[] = {
      {"input_layernorm.weight", &layer.input_norm},
      {"post_attention_layernorm.weight", &layer.post_attention_norm},
      {"pre_feedforward_layernorm.weight", &layer.pre_feedforward_norm},
      {"post_feedforward_layernorm.weight", &layer.post_feedforward_norm}};
  for (const auto& [name, norm] : norms) {
    LTX_ASSIGN_OR_RETURN(*norm, loader.Get(name, {width}));
  }
  LTX_ASSIGN_OR_RETURN(layer.q_norm, loader.Get("self_attn.q_norm.weight", {head_dim}));
  LTX_ASSIGN_OR_RETURN(layer.k_norm, loader.Get("self_attn.k_norm.weight", {head_dim}));
  const int64_t q_width = layer.heads * head_dim;
  const int64_t kv_width = layer.kv_heads * head_dim;
  LTX_ASSIGN_OR_RETURN(layer.q, loader.Linear("self_attn.q_proj", width, q_width, false));
  LTX_ASSIGN_OR_RETURN(layer.k, loader.Linear("self_attn.k_proj", width, kv_width, false));
  if (!values_from_keys) {
    LTX_ASSIGN_OR_RETURN(layer.v, loader.Linear("self_attn.v_proj", width, kv_width, false));
  }
  LTX_ASSIGN_OR_RETURN(layer.o, loader.Linear("self_attn.o_proj", q_width, width, false));
  const int64_t inner = config_.intermediate_size;
  LTX_ASSIGN_OR_RETURN(layer.gate, loader.Linear("mlp.gate_proj", width, inner, false));
  LTX_ASSIGN_OR_RETURN(layer.up, loader.Linear("mlp.up_proj", width, inner, false));
  LTX_ASSIGN_OR_RETURN(layer.down, loader.Linear("mlp.down_proj", inner, width, false));
  if (!gemma3()) {
    LTX_ASSIGN_OR_RETURN(const std::vector<float> scalar, loader.GetHost("layer_scalar", {1}));
    layer.scalar = dtype_ == DType::kBF16 ? RoundToBFloat16(scalar[0]) : scalar[0];
  }
  return layer;
}

absl::StatusOr<RopeTable> TextTower::BuildRope(const GemmaRope& rope, int64_t head_dim,
                                               int64_t first_position, int64_t count) const {
  const std::vector<float> inverse = InverseFrequencies(rope, head_dim);
  std::vector<float> cosines, sines;
  cosines.reserve(inverse.size() * static_cast<size_t>(count));
  sines.reserve(cosines.capacity());
  for (int64_t i = 0; i < count; ++i) {
    const auto position = static_cast<float>(first_position + i);
    for (const float step : inverse) {
      const float angle = step * position;
      cosines.push_back(std::cos(angle));
      sines.push_back(std::sin(angle));
    }
  }
  const Shape shape = {1, 1, count, head_dim / 2};
  RopeTable table;
  LTX_ASSIGN_OR_RETURN(table.cos, TensorFromFloats(*device_, cosines, shape, dtype_));
  LTX_ASSIGN_OR_RETURN(table.sin, TensorFromFloats(*device_, sines, shape, dtype_));
  return table;
}

absl::StatusOr<Tensor> TextTower::Embed(absl::Span<const int32_t> ids) const {
  std::vector<int32_t> rows(ids.begin(), ids.end());
  for (int32_t& id : rows) {
    // Placeholders of other modalities have no meaning in a prompt. Gemma 4 reads them as padding,
    // Gemma 3 only where its table has no row for them.
    const bool image = config_.image_token_id == id;
    if (gemma3() ? image && id >= config_.vocab_size
                 : image || config_.video_token_id == id || config_.audio_token_id == id) {
      id = gemma3() ? 0 : static_cast<int32_t>(config_.pad_token_id);
    }
    if (id < 0 || id >= config_.vocab_size) {
      return absl::InvalidArgumentError(absl::StrCat(
          "text tower: token id ", id, " is outside of the vocabulary of ", config_.vocab_size));
    }
  }
  LTX_ASSIGN_OR_RETURN(Tensor x, device_->GatherRows(embedding_, rows));
  LTX_ASSIGN_OR_RETURN(x, x.Reshape({1, static_cast<int64_t>(rows.size()), config_.hidden_size}));
  return device_->Scale(x, embedding_scale_);
}

absl::StatusOr<Tensor> TextTower::Norm(const Tensor& x, const Tensor& weight) const {
  return device_->RmsNorm(x, weight, static_cast<float>(config_.rms_norm_eps),
                          /*one_plus_weight=*/gemma3());
}

absl::StatusOr<TextTower::KeysAndValues> TextTower::ProjectKeysAndValues(
    const Layer& layer, const Tensor& x, const RopeTable& rope) const {
  KeysAndValues result;
  LTX_ASSIGN_OR_RETURN(const Tensor k, device_->Linear(x, layer.k));
  result.values = k;
  if (layer.v.defined()) {
    LTX_ASSIGN_OR_RETURN(result.values, device_->Linear(x, layer.v));
  }
  NormRopeOptions norm;
  norm.heads = layer.kv_heads;
  norm.span = NormRopeOptions::Span::kPerHead;
  norm.epsilon = static_cast<float>(config_.rms_norm_eps);
  if (!gemma3()) {
    LTX_ASSIGN_OR_RETURN(result.values, device_->NormRope(result.values, norm));
  }
  norm.weight = layer.k_norm;
  norm.one_plus_weight = gemma3();
  norm.rope = rope;
  LTX_ASSIGN_OR_RETURN(result.keys, device_->NormRope(k, norm));
  return result;
}

absl::StatusOr<Tensor> TextTower::Attend(size_t index, const Tensor& x, const RopeTables& rope,
                                         KeyValueCache* cache) const {
  const Layer& layer = layers_[index];
  const RopeTable& table = layer.full_attention ? rope.global : rope.local;
  LTX_ASSIGN_OR_RETURN(KeysAndValues kv, ProjectKeysAndValues(layer, x, table));
  AttentionOptions options;
  options.heads = layer.heads;
  options.kv_heads = layer.kv_heads;
  options.scale = static_cast<float>(config_.attention_scale);
  options.causal = true;
  options.window = layer.full_attention ? 0 : config_.sliding_window;
  if (cache != nullptr) {
    LTX_ASSIGN_OR_RETURN(const KeyValueCache::Visible visible,
                         cache->Append(index, kv.keys, kv.values));
    kv = {visible.keys, visible.values};
    if (visible.mask.defined()) {
      options.causal = false;
      options.window = 0;
      options.key_mask = visible.mask;
    }
  }
  NormRopeOptions norm;
  norm.heads = layer.heads;
  norm.span = NormRopeOptions::Span::kPerHead;
  norm.epsilon = static_cast<float>(config_.rms_norm_eps);
  norm.weight = layer.q_norm;
  norm.one_plus_weight = gemma3();
  norm.rope = table;
  LTX_ASSIGN_OR_RETURN(Tensor q, device_->Linear(x, layer.q));
  LTX_ASSIGN_OR_RETURN(q, device_->NormRope(q, norm));
  LTX_ASSIGN_OR_RETURN(const Tensor heads, device_->Attention(q, kv.keys, kv.values, options));
  return device_->Linear(heads, layer.o);
}

absl::StatusOr<Tensor> TextTower::FeedForward(const Layer& layer, const Tensor& x) const {
  LTX_ASSIGN_OR_RETURN(const Tensor gate, device_->Linear(x, layer.gate));
  LTX_ASSIGN_OR_RETURN(const Tensor up, device_->Linear(x, layer.up));
  LTX_ASSIGN_OR_RETURN(const Tensor inner, device_->GeluTanhMul(gate, up));
  return device_->Linear(inner, layer.down);
}

absl::StatusOr<Tensor> TextTower::RunLayer(size_t index, Tensor x, const RopeTables& rope,
                                           const StageObserver& observer,
                                           KeyValueCache* cache) const {
  const Layer& layer = layers_[index];
  LTX_ASSIGN_OR_RETURN(Tensor half, Norm(x, layer.input_norm));
  LTX_ASSIGN_OR_RETURN(half, Attend(index, half, rope, cache));
  if (observer) observer(absl::StrCat("layer", index, ".attn_out"), half);
  LTX_ASSIGN_OR_RETURN(half, Norm(half, layer.post_attention_norm));
  LTX_ASSIGN_OR_RETURN(x, device_->Add(x, half));
  LTX_ASSIGN_OR_RETURN(half, Norm(x, layer.pre_feedforward_norm));
  LTX_ASSIGN_OR_RETURN(half, FeedForward(layer, half));
  LTX_ASSIGN_OR_RETURN(half, Norm(half, layer.post_feedforward_norm));
  LTX_ASSIGN_OR_RETURN(x, device_->Add(x, half));
  if (gemma3()) return x;
  return device_->Scale(x, layer.scalar);
}

absl::StatusOr<TextTower::RopeTables> TextTower::BuildRopes(int64_t first_position,
                                                            int64_t count) const {
  RopeTables rope;
  LTX_ASSIGN_OR_RETURN(rope.local,
                       BuildRope(config_.local_rope, config_.head_dim, first_position, count));
  LTX_ASSIGN_OR_RETURN(
      rope.global, BuildRope(config_.global_rope, config_.global_head_dim, first_position, count));
  return rope;
}

absl::Status TextTower::Forward(absl::Span<const int32_t> ids, int64_t first_position,
                                StateReader read, const StageObserver& observer) const {
  LTX_ASSIGN_OR_RETURN(const RopeTables rope,
                       BuildRopes(first_position, static_cast<int64_t>(ids.size())));
  LTX_ASSIGN_OR_RETURN(Tensor x, Embed(ids));
  for (size_t i = 0; i < layers_.size(); ++i) {
    LTX_RETURN_IF_ERROR(read(x));
    LTX_ASSIGN_OR_RETURN(x, RunLayer(i, std::move(x), rope, observer, nullptr));
  }
  LTX_ASSIGN_OR_RETURN(x, Norm(x, final_norm_));
  return read(x);
}

KeyValueCache TextTower::MakeCache(int64_t capacity) const {
  std::vector<bool> windowed;
  for (const Layer& layer : layers_) windowed.push_back(!layer.full_attention);
  return KeyValueCache(device_, std::move(windowed), config_.sliding_window, capacity);
}

absl::StatusOr<Tensor> TextTower::ReadOn(absl::Span<const int32_t> ids,
                                         KeyValueCache* cache) const {
  const auto count = static_cast<int64_t>(ids.size());
  LTX_RETURN_IF_ERROR(cache->Begin(count));
  LTX_ASSIGN_OR_RETURN(const RopeTables rope, BuildRopes(cache->size(), count));
  LTX_ASSIGN_OR_RETURN(Tensor x, Embed(ids));
  for (size_t i = 0; i < layers_.size(); ++i) {
    LTX_ASSIGN_OR_RETURN(x, RunLayer(i, std::move(x), rope, {}, cache));
  }
  cache->End();
  LTX_ASSIGN_OR_RETURN(x, device_->Slice(x, 1, count - 1, count));
  return Norm(x, final_norm_);
}

absl::StatusOr<LinearWeight> TextTower::PrepareLogitHead() const {
  if (!config_.tie_word_embeddings) {
    return absl::UnimplementedError("text tower: tie_word_embeddings false");
  }
  return device_->PrepareLinear(embedding_, Tensor(), MemoryOwner::kWeightsText);
}

absl::StatusOr<Tensor> TextTower::Logits(const Tensor& rows, const LinearWeight& head) const {
  LTX_ASSIGN_OR_RETURN(Tensor logits, device_->Linear(rows, head));
  // The reference's Gemma 3 class leaves the cap out even where the config names one.
  if (gemma3() || !config_.final_logit_softcapping.has_value()) return logits;
  return device_->SoftCap(logits, static_cast<float>(*config_.final_logit_softcapping));
}

}  // namespace ltx::text
