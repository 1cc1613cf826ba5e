#include "engine/text/prompt_encoder.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/text/feature_rows.h"
#include "kernels/status_macros.h"

namespace ltx::text {
namespace {

using checkpoint::WeightLoader;
using checkpoint::WeightSet;

constexpr absl::string_view kVideoPrefix = "model.diffusion_model.video_embeddings_connector.";
constexpr absl::string_view kAudioPrefix = "model.diffusion_model.audio_embeddings_connector.";
/// Of models without audio.
constexpr absl::string_view kOnlyPrefix = "model.diffusion_model.embeddings_connector.";

bool HasPrefix(const WeightSet& weights, absl::string_view prefix) {
  const std::vector<std::string> names = weights.Names();
  for (const std::string& name : names) {
    if (absl::StartsWith(name, prefix)) return true;
  }
  return false;
}

/// A connector maps rows of its width to rows of its width.
absl::Status CheckWidth(absl::string_view stream, int64_t features, int64_t connector) {
  if (features == connector) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("text projection: the ", stream, " features are ", features, " wide, but the ",
                   stream, " connector (heads x head width) is ", connector, " wide"));
}

}  // namespace

absl::StatusOr<PromptEncoder> PromptEncoder::Load(Device* device, const GemmaAssets& assets,
                                                  const checkpoint::TextProjectionConfig& config,
                                                  const WeightSet& transformer,
                                                  const PromptEncoderOptions& options) {
  if (options.limits.max_tokens % EmbeddingsConnector::kNumRegisters != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("prompt encoder: max_tokens ", options.limits.max_tokens,
                     " is not a multiple of ", EmbeddingsConnector::kNumRegisters));
  }
  LTX_ASSIGN_OR_RETURN(const checkpoint::GemmaConfig gemma,
                       checkpoint::ParseGemmaConfig(assets.config));
  std::shared_ptr<const Tokenizer> tokenizer = options.tokenizer;
  if (tokenizer == nullptr) {
    LTX_ASSIGN_OR_RETURN(
        Tokenizer made,
        Tokenizer::Create(assets.tokenizer_json, assets.tokenizer_config_json, options.limits));
    tokenizer = std::make_shared<const Tokenizer>(std::move(made));
  }
  if (tokenizer->max_id() >= gemma.vocab_size) {
    return absl::InvalidArgumentError(absl::StrCat(
        "text encoder ", assets.source, ": the tokenizer has token id ", tokenizer->max_id(),
        ", but gemma_config.text_config.vocab_size is ", gemma.vocab_size));
  }
  const WeightLoader tower_loader(device, &assets.weights, options.compute,
                                  MemoryOwner::kWeightsText);
  const WeightLoader transformer_loader(device, &transformer, options.compute,
                                        MemoryOwner::kWeightsText);
  const bool has_audio = !HasPrefix(transformer, kOnlyPrefix);
  const auto& features = config.feature_extractor;
  const bool shared = features.form == checkpoint::FeatureExtractorConfig::Form::kV1;
  LTX_RETURN_IF_ERROR(CheckWidth("video", shared ? gemma.hidden_size : features.video_width,
                                 config.video_connector.width()));
  if (has_audio) {
    LTX_RETURN_IF_ERROR(CheckWidth("audio", shared ? gemma.hidden_size : features.audio_width,
                                   config.audio_connector.width()));
  }
  LTX_ASSIGN_OR_RETURN(TextTower tower, TextTower::Load(gemma, tower_loader));
  const bool beside_tower = HasPrefix(assets.weights, "text_embedding_projection.");
  LTX_ASSIGN_OR_RETURN(FeatureExtractor extractor,
                       FeatureExtractor::Load(features, gemma.hidden_size, tower.num_states(),
                                              beside_tower ? tower_loader : transformer_loader));
  LTX_ASSIGN_OR_RETURN(
      EmbeddingsConnector video,
      EmbeddingsConnector::Load(config.video_connector,
                                transformer_loader.Sub(has_audio ? kVideoPrefix : kOnlyPrefix)));
  LTX_RETURN_IF_ERROR(video.PrepareLength(options.limits.max_tokens));
  std::optional<EmbeddingsConnector> audio;
  if (has_audio) {
    LTX_ASSIGN_OR_RETURN(audio, EmbeddingsConnector::Load(config.audio_connector,
                                                          transformer_loader.Sub(kAudioPrefix)));
    LTX_RETURN_IF_ERROR(audio->PrepareLength(options.limits.max_tokens));
  }
  return PromptEncoder(std::move(tokenizer), std::move(tower), std::move(extractor),
                       std::move(video), std::move(audio));
}

absl::StatusOr<PromptContexts> PromptEncoder::Encode(absl::string_view prompt,
                                                     const StageObserver& observer) {
  LTX_ASSIGN_OR_RETURN(const TokenizedPrompt tokens, tokenizer_->Tokenize(prompt));
  return EncodeTokens(tokens, observer);
}

absl::StatusOr<PromptContexts> PromptEncoder::EncodeTokens(const TokenizedPrompt& prompt,
                                                           const StageObserver& observer) {
  const int64_t length = tokenizer_->limits().max_tokens;
  PromptContexts contexts;
  contexts.num_tokens = static_cast<int64_t>(prompt.ids.size());
  contexts.dropped_tokens = prompt.dropped_tokens;
  // The row is padded on the left, so the prompt's positions are the last ones.
  FeatureRows states = extractor_.StartRows();
  int64_t left = tower_.num_states();
  LTX_RETURN_IF_ERROR(
      tower_.Forward(prompt.ids, length - contexts.num_tokens, [&](const Tensor& state) {
        if (--left == 0 && observer) observer("last_hidden_valid", state);
        return states.Add(state);
      }));
  LTX_ASSIGN_OR_RETURN(Tensor rows, states.Take());
  LTX_ASSIGN_OR_RETURN(const FeatureExtractor::Features features, extractor_.Project(rows));
  rows = Tensor();
  if (observer) {
    observer("video_features_valid", features.video);
    observer("audio_features_valid", features.audio);
  }
  LTX_ASSIGN_OR_RETURN(contexts.video, video_.Forward(features.video, length));
  if (audio_.has_value()) {
    LTX_ASSIGN_OR_RETURN(contexts.audio, audio_->Forward(features.audio, length));
  }
  return contexts;
}

}  // namespace ltx::text
