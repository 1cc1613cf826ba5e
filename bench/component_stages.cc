#include "bench/component_stages.h"

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bench/dit_stage.h"
#include "bench/random_tensor.h"
#include "engine/audio_vae/audio_decoder.h"
#include "engine/audio_vae/decode_audio.h"
#include "engine/audio_vae/latent_grid.h"
#include "engine/audio_vae/vocoder.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/checkpoint/weight_set.h"
#include "engine/text/embeddings_connector.h"
#include "engine/text/feature_extractor.h"
#include "engine/text/feature_rows.h"
#include "engine/text/gemma_assets.h"
#include "engine/text/prompt_encoder.h"
#include "engine/text/text_tower.h"
#include "engine/upsampler/latent_upsampler.h"
#include "engine/video_vae/conv_decoder.h"
#include "engine/video_vae/statistics.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::bench {
namespace {

using checkpoint::ModelSet;
using checkpoint::WeightLoader;
using checkpoint::WeightSet;
using nlohmann::json;
using Results = absl::StatusOr<std::vector<Tensor>>;

constexpr absl::string_view kVideoConnector = "model.diffusion_model.video_embeddings_connector.";
constexpr absl::string_view kAudioConnector = "model.diffusion_model.audio_embeddings_connector.";

absl::StatusOr<WeightSet> WeightsOf(
    const std::shared_ptr<const checkpoint::SafetensorsFile>& file) {
  WeightSet weights;
  LTX_RETURN_IF_ERROR(weights.Add(file));
  return weights;
}

json SizeOfClip(const ClipSize& clip) {
  return {{"video_tokens", clip.video_tokens()}, {"audio_tokens", clip.audio_tokens()}};
}

/// Ids of ordinary tokens.
std::vector<int32_t> RandomIds(int64_t count, int64_t vocabulary) {
  // In front stand the special tokens, at the end the places of pictures and sounds.
  constexpr int64_t kSpecial = 4;
  std::minstd_rand generator(3);
  std::vector<int32_t> ids(count);
  for (int32_t& id : ids) {
    id = static_cast<int32_t>(kSpecial + generator() % (vocabulary - 2 * kSpecial));
  }
  return ids;
}

absl::StatusOr<PrepareFunction> LoadDit(Device& device, const ModelSet& files,
                                        const StageOptions& options) {
  WeightSet weights;
  LTX_RETURN_IF_ERROR(weights.Add(files.transformer_file, "model.diffusion_model."));
  LTX_ASSIGN_OR_RETURN(std::shared_ptr<dit::Transformer> transformer,
                       dit::Transformer::Load(files.transformer, dit::ModelClass::kAudioVideo,
                                              WeightLoader(&device, &weights, options.dtype,
                                                           MemoryOwner::kWeightsDit)));
  transformer->set_recording(options.record);
  return [transformer](const StageSize& size) -> absl::StatusOr<PreparedRun> {
    // Every size is measured as if there were no other.
    transformer->ForgetRecordings();
    LTX_ASSIGN_OR_RETURN(DitInputs made, DitInputs::Make(*transformer, size));
    const auto inputs = std::make_shared<const DitInputs>(std::move(made));
    PreparedRun prepared;
    prepared.size = SizeOfClip(size.clip);
    prepared.size.update({{"text_tokens", size.text_tokens}, {"passes", size.passes}});
    prepared.run = [transformer, inputs]() -> Results {
      LTX_ASSIGN_OR_RETURN(const dit::StreamPair velocity, inputs->Forward(*transformer));
      return std::vector<Tensor>{velocity.video, velocity.audio};
    };
    return prepared;
  };
}

absl::StatusOr<PrepareFunction> LoadTextTower(Device& device, const ModelSet& files,
                                              const StageOptions& options) {
  LTX_ASSIGN_OR_RETURN(const WeightSet weights, WeightsOf(files.text_encoder_file));
  LTX_ASSIGN_OR_RETURN(
      text::TextTower loaded,
      text::TextTower::Load(
          files.gemma, WeightLoader(&device, &weights, options.dtype, MemoryOwner::kWeightsText)));
  const auto tower = std::make_shared<const text::TextTower>(std::move(loaded));
  return [tower, &device, form = files.text_projection.feature_extractor.form](
             const StageSize& size) -> absl::StatusOr<PreparedRun> {
    PreparedRun prepared;
    prepared.size = {{"text_tokens", size.text_tokens}};
    prepared.run = [tower, &device, form,
                    ids = RandomIds(size.text_tokens, tower->config().vocab_size)]() -> Results {
      text::FeatureRows states(&device, form, tower->num_states());
      LTX_RETURN_IF_ERROR(tower->Forward(ids, /*first_position=*/0,
                                         [&](const Tensor& state) { return states.Add(state); }));
      LTX_ASSIGN_OR_RETURN(Tensor rows, states.Take());
      return std::vector<Tensor>{std::move(rows)};
    };
    return prepared;
  };
}

absl::StatusOr<PrepareFunction> LoadCaptionProjection(Device& device, const ModelSet& files,
                                                      const StageOptions& options) {
  LTX_ASSIGN_OR_RETURN(const WeightSet weights, WeightsOf(files.text_encoder_file));
  const int64_t states = files.gemma.num_hidden_layers + 1;
  const int64_t width = files.gemma.hidden_size;
  LTX_ASSIGN_OR_RETURN(
      text::FeatureExtractor loaded,
      text::FeatureExtractor::Load(
          files.text_projection.feature_extractor, width, states,
          WeightLoader(&device, &weights, options.dtype, MemoryOwner::kWeightsText)));
  const auto extractor = std::make_shared<const text::FeatureExtractor>(std::move(loaded));
  return [extractor, &device, states, width,
          dtype = options.dtype](const StageSize& size) -> absl::StatusOr<PreparedRun> {
    PreparedRun prepared;
    prepared.size = {{"text_tokens", size.text_tokens}, {"states", states}};
    // As a tower leaves them, but all states are the same.
    LTX_ASSIGN_OR_RETURN(const Tensor state,
                         RandomTensor(device, {1, size.text_tokens, width}, dtype, 4));
    text::FeatureRows collected = extractor->StartRows();
    for (int64_t i = 0; i < states; ++i) LTX_RETURN_IF_ERROR(collected.Add(state));
    LTX_ASSIGN_OR_RETURN(const Tensor rows, collected.Take());
    prepared.run = [extractor, rows]() -> Results {
      LTX_ASSIGN_OR_RETURN(const text::FeatureExtractor::Features features,
                           extractor->Project(rows));
      return std::vector<Tensor>{features.video, features.audio};
    };
    return prepared;
  };
}

absl::StatusOr<PrepareFunction> LoadConnectors(Device& device, const ModelSet& files,
                                               const StageOptions& options) {
  LTX_ASSIGN_OR_RETURN(const WeightSet weights, WeightsOf(files.transformer_file));
  const WeightLoader loader(&device, &weights, options.dtype, MemoryOwner::kWeightsText);
  struct Connectors {
    text::EmbeddingsConnector video, audio;
  };
  LTX_ASSIGN_OR_RETURN(text::EmbeddingsConnector video,
                       text::EmbeddingsConnector::Load(files.text_projection.video_connector,
                                                       loader.Sub(kVideoConnector)));
  LTX_ASSIGN_OR_RETURN(text::EmbeddingsConnector audio,
                       text::EmbeddingsConnector::Load(files.text_projection.audio_connector,
                                                       loader.Sub(kAudioConnector)));
  const auto connectors =
      std::make_shared<Connectors>(Connectors{std::move(video), std::move(audio)});
  return [connectors, &device,
          dtype = options.dtype](const StageSize& size) -> absl::StatusOr<PreparedRun> {
    const int64_t rows = size.text_tokens;
    constexpr int64_t kStep = text::EmbeddingsConnector::kNumRegisters;
    const int64_t length = (rows + kStep - 1) / kStep * kStep;
    LTX_RETURN_IF_ERROR(connectors->video.PrepareLength(length));
    LTX_RETURN_IF_ERROR(connectors->audio.PrepareLength(length));
    PreparedRun prepared;
    prepared.size = {{"text_tokens", rows}, {"context_tokens", length}};
    LTX_ASSIGN_OR_RETURN(
        const Tensor video,
        RandomTensor(device, {1, rows, connectors->video.config().width()}, dtype, 5));
    LTX_ASSIGN_OR_RETURN(
        const Tensor audio,
        RandomTensor(device, {1, rows, connectors->audio.config().width()}, dtype, 6));
    prepared.run = [connectors, video, audio, length]() -> Results {
      std::vector<Tensor> contexts(2);
      LTX_ASSIGN_OR_RETURN(contexts[0], connectors->video.Forward(video, length));
      LTX_ASSIGN_OR_RETURN(contexts[1], connectors->audio.Forward(audio, length));
      return contexts;
    };
    return prepared;
  };
}

absl::StatusOr<PrepareFunction> LoadText(Device& device, const ModelSet& files,
                                         const StageOptions& options) {
  LTX_ASSIGN_OR_RETURN(const WeightSet weights, WeightsOf(files.transformer_file));
  LTX_ASSIGN_OR_RETURN(const text::GemmaAssets assets,
                       text::LoadGemmaAssets(files.text_encoder_file));
  text::PromptEncoderOptions encoder_options;
  encoder_options.compute = options.dtype;
  LTX_ASSIGN_OR_RETURN(
      text::PromptEncoder loaded,
      text::PromptEncoder::Load(&device, assets, files.text_projection, weights, encoder_options));
  const auto encoder = std::make_shared<text::PromptEncoder>(std::move(loaded));
  return [encoder](const StageSize& size) -> absl::StatusOr<PreparedRun> {
    text::TokenizedPrompt prompt;
    prompt.ids = RandomIds(size.text_tokens, encoder->tower().config().vocab_size);
    PreparedRun prepared;
    prepared.size = {{"text_tokens", size.text_tokens}};
    prepared.run = [encoder, prompt = std::move(prompt)]() -> Results {
      LTX_ASSIGN_OR_RETURN(const text::PromptContexts contexts, encoder->EncodeTokens(prompt));
      return std::vector<Tensor>{contexts.video, contexts.audio};
    };
    return prepared;
  };
}

absl::StatusOr<PrepareFunction> LoadVideoDecode(Device& device, const ModelSet& files,
                                                const StageOptions& options) {
  LTX_ASSIGN_OR_RETURN(const WeightSet weights, WeightsOf(files.video_vae_file));
  LTX_ASSIGN_OR_RETURN(std::shared_ptr<const video_vae::ConvDecoder> decoder,
                       video_vae::ConvDecoder::Load(files.video_decoder,
                                                    WeightLoader(&device, &weights, options.dtype,
                                                                 MemoryOwner::kWeightsVideoVae)));
  return [decoder, &device,
          dtype = options.dtype](const StageSize& size) -> absl::StatusOr<PreparedRun> {
    const sampling::VideoLatentExtents cells = size.clip.latent();
    LTX_ASSIGN_OR_RETURN(
        const Tensor latent,
        RandomTensor(device,
                     {1, cells.frames, cells.height, cells.width, decoder->latent_channels()},
                     dtype, 7));
    PreparedRun prepared;
    prepared.size = {{"latent", {cells.frames, cells.height, cells.width}}};
    prepared.run = [decoder, latent]() -> Results {
      LTX_ASSIGN_OR_RETURN(const auto session, decoder->StartDecode(latent, {}));
      // The others go on to an encoder.
      std::vector<Tensor> last_frames;
      while (!session->done()) {
        last_frames.clear();
        LTX_ASSIGN_OR_RETURN(const std::optional<video_vae::DecodedFrames> made,
                             session->Advance());
        if (made.has_value()) last_frames.push_back(made->frames);
      }
      return last_frames;
    };
    return prepared;
  };
}

absl::StatusOr<audio_vae::Vocoder> LoadVocoderWeights(Device& device, const ModelSet& files,
                                                      const WeightSet& weights) {
  // In f32 whatever the rest computes in, as the pipeline has it.
  return audio_vae::Vocoder::Load(
      WeightLoader(&device, &weights, DType::kF32, MemoryOwner::kWeightsAudioVae), files.vocoder);
}

absl::StatusOr<PrepareFunction> LoadAudioDecode(Device& device, const ModelSet& files,
                                                const StageOptions& options) {
  LTX_ASSIGN_OR_RETURN(const WeightSet weights, WeightsOf(files.audio_vae_file));
  LTX_ASSIGN_OR_RETURN(audio_vae::AudioDecoder decoder_loaded,
                       audio_vae::AudioDecoder::Load(WeightLoader(&device, &weights, options.dtype,
                                                                  MemoryOwner::kWeightsAudioVae),
                                                     files.audio_vae));
  LTX_ASSIGN_OR_RETURN(audio_vae::Vocoder vocoder_loaded,
                       LoadVocoderWeights(device, files, weights));
  const auto decoder = std::make_shared<const audio_vae::AudioDecoder>(std::move(decoder_loaded));
  const auto vocoder = std::make_shared<const audio_vae::Vocoder>(std::move(vocoder_loaded));
  return [decoder, vocoder, &device,
          dtype = options.dtype](const StageSize& size) -> absl::StatusOr<PreparedRun> {
    const int64_t tokens = size.clip.audio_tokens();
    LTX_ASSIGN_OR_RETURN(const Tensor latent,
                         RandomTensor(device, {1, tokens, decoder->token_values()}, dtype, 8));
    PreparedRun prepared;
    prepared.size = {{"audio_tokens", tokens}};
    prepared.run = [decoder, vocoder, &device, latent]() -> Results {
      LTX_ASSIGN_OR_RETURN(const audio_vae::Waveform waveform,
                           audio_vae::DecodeAudio(device, *decoder, *vocoder, latent));
      return std::vector<Tensor>{waveform.samples};
    };
    return prepared;
  };
}

absl::StatusOr<PrepareFunction> LoadVocoder(Device& device, const ModelSet& files,
                                            const StageOptions& /*options*/) {
  LTX_ASSIGN_OR_RETURN(const WeightSet weights, WeightsOf(files.audio_vae_file));
  LTX_ASSIGN_OR_RETURN(audio_vae::Vocoder loaded, LoadVocoderWeights(device, files, weights));
  const auto vocoder = std::make_shared<const audio_vae::Vocoder>(std::move(loaded));
  const int64_t bins = files.audio_vae.mel_bins.value_or(64);
  const int64_t sides = files.audio_vae.out_ch;
  return [vocoder, &device, bins, sides](const StageSize& size) -> absl::StatusOr<PreparedRun> {
    const int64_t frames = audio_vae::LatentGrid::MelFrames(size.clip.audio_tokens(), true);
    LTX_ASSIGN_OR_RETURN(const Tensor mel,
                         RandomTensor(device, {1, frames, bins, sides}, DType::kF32, 9));
    PreparedRun prepared;
    prepared.size = {{"mel_frames", frames}};
    prepared.run = [vocoder, &device, mel]() -> Results {
      LTX_ASSIGN_OR_RETURN(const Tensor waveform, vocoder->Forward(device, mel));
      return std::vector<Tensor>{waveform};
    };
    return prepared;
  };
}

absl::StatusOr<PrepareFunction> LoadUpsampler(Device& device, const ModelSet& files,
                                              const StageOptions& options) {
  LTX_ASSIGN_OR_RETURN(const WeightSet weights, WeightsOf(files.spatial_upsampler->file));
  LTX_ASSIGN_OR_RETURN(
      std::shared_ptr<const upsampler::LatentUpsampler> net,
      upsampler::LatentUpsampler::Load(
          files.spatial_upsampler->config,
          WeightLoader(&device, &weights, options.dtype, MemoryOwner::kWeightsUpsampler)));
  LTX_ASSIGN_OR_RETURN(const WeightSet vae, WeightsOf(files.video_vae_file));
  LTX_ASSIGN_OR_RETURN(const video_vae::ChannelStatistics statistics,
                       video_vae::ChannelStatistics::Load(
                           WeightLoader(&device, &vae, options.dtype, MemoryOwner::kWeightsVideoVae)
                               .Sub("per_channel_statistics."),
                           files.video_decoder.latent_channels));
  return [net, statistics, &device,
          dtype = options.dtype](const StageSize& size) -> absl::StatusOr<PreparedRun> {
    const sampling::VideoLatentExtents cells = size.clip.latent();
    LTX_ASSIGN_OR_RETURN(
        const Tensor latent,
        RandomTensor(device,
                     {1, cells.frames, cells.height / 2, cells.width / 2, net->latent_channels()},
                     dtype, 10));
    PreparedRun prepared;
    prepared.size = {{"latent", {cells.frames, cells.height / 2, cells.width / 2}}};
    prepared.run = [net, statistics, latent]() -> Results {
      LTX_ASSIGN_OR_RETURN(const Tensor grown, net->UpsampleNormalized(latent, statistics));
      return std::vector<Tensor>{grown};
    };
    return prepared;
  };
}

}  // namespace

const std::vector<std::pair<absl::string_view, ComponentLoader>>& ComponentLoaders() {
  static const auto* const loaders = new std::vector<std::pair<absl::string_view, ComponentLoader>>{
      {"dit", &LoadDit},
      {"text_tower", &LoadTextTower},
      {"caption_projection", &LoadCaptionProjection},
      {"connectors", &LoadConnectors},
      {"text", &LoadText},
      {"video_decode", &LoadVideoDecode},
      {"audio_decode", &LoadAudioDecode},
      {"vocoder", &LoadVocoder},
      {"upsampler", &LoadUpsampler}};
  return *loaders;
}

}  // namespace ltx::bench
