#ifndef LTX_ENGINE_TEXT_TEXT_TOWER_H_
#define LTX_ENGINE_TEXT_TEXT_TOWER_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/checkpoint/text_config.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/stage_observer.h"
#include "engine/text/key_value_cache.h"
#include "kernels/device.h"

namespace ltx::text {

/// The language model that reads the prompt: Gemma 3 or Gemma 4 unified, a pre- and post-normed
/// causal transformer with alternating sliding-window and full attention. One implementation; the
/// differences of the families (norm form, score scale, rotary kinds, values from the key
/// projection, value norm, layer scalars) follow from the config.
///
/// Only a prompt's own tokens are run: attention is causal and padding is masked, so rows of
/// padding cannot change them.
class TextTower {
 public:
  /// Reads the weights below `language_model.model.` or `model.language_model.` (Gemma 3), or
  /// `model.` or `model.language_model.` (Gemma 4). NOT_FOUND or INVALID_ARGUMENT names the tensor
  /// that is missing, has another shape than the config says, or that the config has no use for.
  static absl::StatusOr<TextTower> Load(const checkpoint::GemmaConfig& config,
                                        const checkpoint::WeightLoader& loader);

  /// Is given one hidden state after the other; a failure ends the run.
  using StateReader = absl::FunctionRef<absl::Status(const Tensor& state)>;

  /// Reads a prompt and hands over its num_states() hidden states [1, n, hidden_size], each as soon
  /// as it is there: first the scaled embedding, then each layer's output, the last one after the
  /// final norm (and not before it). `ids` are the n tokens without padding; `first_position` is
  /// where they start in the padded row. INVALID_ARGUMENT for an id outside of the vocabulary.
  ///
  /// Stages: "layer<i>.attn_out" [1, n, hidden_size], after the output projection.
  absl::Status Forward(absl::Span<const int32_t> ids, int64_t first_position, StateReader read,
                       const StageObserver& observer = {}) const;

  /// For a text of at most `capacity` tokens that is read on.
  KeyValueCache MakeCache(int64_t capacity) const;
  /// Reads tokens behind those that `cache` holds, the first one at position 0: the beginning of a
  /// text at once, then one token at a time. The last state of the last token [1, 1, hidden_size].
  /// INVALID_ARGUMENT for an id outside of the vocabulary; INTERNAL beyond the cache's capacity.
  absl::StatusOr<Tensor> ReadOn(absl::Span<const int32_t> ids, KeyValueCache* cache) const;

  /// The embedding table as the map from a last state to scores. Not part of Load: a second copy of
  /// the largest tensor, and prompts need no scores.
  absl::StatusOr<LinearWeight> PrepareLogitHead() const;
  /// Scores of the next token for rows [1, m, hidden_size] of the last hidden state:
  /// [1, m, vocab_size], soft-capped if a Gemma 4 config says so.
  absl::StatusOr<Tensor> Logits(const Tensor& rows, const LinearWeight& head) const;

  const checkpoint::GemmaConfig& config() const { return config_; }
  int64_t num_states() const { return config_.num_hidden_layers + 1; }

 private:
  struct Layer {
    bool full_attention = false;
    int64_t heads = 0;
    int64_t kv_heads = 0;
    Tensor input_norm, post_attention_norm, pre_feedforward_norm, post_feedforward_norm;
    Tensor q_norm, k_norm;
    /// Undefined `v`: the values are the keys before their norm.
    LinearWeight q, k, v, o;
    LinearWeight gate, up, down;
    float scalar = 1.0f;
  };
  struct RopeTables {
    RopeTable local, global;
  };

  TextTower(const checkpoint::GemmaConfig& config, Device* device)
      : config_(config), device_(device) {}

  bool gemma3() const { return config_.family == checkpoint::GemmaFamily::kGemma3; }
  absl::StatusOr<Layer> LoadLayer(int64_t index, checkpoint::WeightLoader loader) const;
  absl::StatusOr<RopeTable> BuildRope(const checkpoint::GemmaRope& rope, int64_t head_dim,
                                      int64_t first_position, int64_t count) const;
  absl::StatusOr<Tensor> Embed(absl::Span<const int32_t> ids) const;
  absl::StatusOr<Tensor> Norm(const Tensor& x, const Tensor& weight) const;
  /// Keys and values of one layer.
  struct KeysAndValues {
    Tensor keys, values;
  };
  absl::StatusOr<KeysAndValues> ProjectKeysAndValues(const Layer& layer, const Tensor& x,
                                                     const RopeTable& rope) const;
  absl::StatusOr<Tensor> Attend(size_t index, const Tensor& x, const RopeTables& rope,
                                KeyValueCache* cache) const;
  absl::StatusOr<Tensor> FeedForward(const Layer& layer, const Tensor& x) const;
  absl::StatusOr<Tensor> RunLayer(size_t index, Tensor x, const RopeTables& rope,
                                  const StageObserver& observer, KeyValueCache* cache) const;
  absl::StatusOr<RopeTables> BuildRopes(int64_t first_position, int64_t count) const;

  checkpoint::GemmaConfig config_;
  Device* device_;
  DType dtype_ = DType::kF32;
  Tensor embedding_;
  /// sqrt(hidden_size) in the compute dtype.
  float embedding_scale_ = 1.0f;
  std::vector<Layer> layers_;
  Tensor final_norm_;
};

}  // namespace ltx::text

#endif  // LTX_ENGINE_TEXT_TEXT_TOWER_H_
