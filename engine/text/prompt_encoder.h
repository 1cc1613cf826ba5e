#ifndef LTX_ENGINE_TEXT_PROMPT_ENCODER_H_
#define LTX_ENGINE_TEXT_PROMPT_ENCODER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/checkpoint/text_config.h"
#include "engine/checkpoint/weight_set.h"
#include "engine/stage_observer.h"
#include "engine/text/embeddings_connector.h"
#include "engine/text/feature_extractor.h"
#include "engine/text/gemma_assets.h"
#include "engine/text/text_tower.h"
#include "engine/text/tokenizer.h"
#include "kernels/device.h"

namespace ltx::text {

/// What the diffusion transformer is told of one prompt. Nothing in it depends on size, step or
/// seed, so it may be kept and reused.
struct PromptContexts {
  Tensor video;  ///< [1, 1024, video width]
  Tensor audio;  ///< [1, 1024, audio width]; undefined in a model without audio connector.
  /// Tokens that were read, begin token included.
  int64_t num_tokens = 0;
  /// Tokens at the prompt's end that did not fit and had no effect.
  int64_t dropped_tokens = 0;
};

struct PromptEncoderOptions {
  /// kF32 or kBF16: of weights and activations.
  DType compute = DType::kBF16;
  TokenizerLimits limits;
  /// Taken instead of making one of the assets, which is large work: that of another encoder of the
  /// same files. `limits` must be its limits.
  std::shared_ptr<const Tokenizer> tokenizer;
};

/// The whole way from a prompt to its contexts: tokenizer, language model, feature extractor and
/// the connectors of both streams. Thread-compatible, except that Tokenize may be called by any
/// thread at any time.
class PromptEncoder {
 public:
  /// `assets` is the text encoder, `config` and `transformer` come from the file with the
  /// connectors: tensors `model.diffusion_model.video_embeddings_connector.*` and
  /// `...audio_embeddings_connector.*`, or the single `...embeddings_connector.*` of a video-only
  /// model. The feature extractor's `text_embedding_projection.*` may be in either. Both sets are
  /// only needed during the call.
  ///
  /// Every key and shape is checked: NOT_FOUND, INVALID_ARGUMENT or UNIMPLEMENTED name the one that
  /// does not fit.
  static absl::StatusOr<PromptEncoder> Load(Device* device, const GemmaAssets& assets,
                                            const checkpoint::TextProjectionConfig& config,
                                            const checkpoint::WeightSet& transformer,
                                            const PromptEncoderOptions& options);

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const std::shared_ptr<const Tokenizer>& shared_tokenizer() const { return tokenizer_; }
  const TextTower& tower() const { return tower_; }

  /// INVALID_ARGUMENT for text that is not UTF-8 or too long; an empty prompt is legal.
  ///
  /// Stages: "last_hidden_valid", "video_features_valid" and "audio_features_valid" [1, n, width],
  /// rows of the prompt's n tokens.
  absl::StatusOr<PromptContexts> Encode(absl::string_view prompt,
                                        const StageObserver& observer = {});

  /// The same for ids that were made before.
  absl::StatusOr<PromptContexts> EncodeTokens(const TokenizedPrompt& prompt,
                                              const StageObserver& observer = {});

 private:
  PromptEncoder(std::shared_ptr<const Tokenizer> tokenizer, TextTower tower,
                FeatureExtractor extractor, EmbeddingsConnector video,
                std::optional<EmbeddingsConnector> audio)
      : tokenizer_(std::move(tokenizer)),
        tower_(std::move(tower)),
        extractor_(std::move(extractor)),
        video_(std::move(video)),
        audio_(std::move(audio)) {}

  std::shared_ptr<const Tokenizer> tokenizer_;
  TextTower tower_;
  FeatureExtractor extractor_;
  EmbeddingsConnector video_;
  std::optional<EmbeddingsConnector> audio_;
};

}  // namespace ltx::text

#endif  // LTX_ENGINE_TEXT_PROMPT_ENCODER_H_
