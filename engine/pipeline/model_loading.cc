#include "engine/pipeline/model_loading.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "engine/checkpoint/linear_pool.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/checkpoint/weight_set.h"
#include "engine/lora/lora_file.h"
#include "engine/pipeline/fused_cache.h"
#include "engine/pipeline/fused_transformer.h"
#include "engine/text/gemma_assets.h"
#include "engine/video_vae/conv_decoder.h"
#include "kernels/status_macros.h"

namespace ltx::pipeline {
namespace {

using checkpoint::ModelSet;
using checkpoint::WeightLoader;
using checkpoint::WeightSet;

/// The tensors of a component: those below `prefix` if the file has any there (combined files),
/// else all of them.
absl::StatusOr<WeightSet> WeightsBelow(
    const std::shared_ptr<const checkpoint::SafetensorsFile>& file, absl::string_view prefix) {
  WeightSet set;
  const auto first = file->entries().lower_bound(prefix);
  const bool prefixed = first != file->entries().end() && absl::StartsWith(first->first, prefix);
  LTX_RETURN_IF_ERROR(set.Add(file, prefixed ? prefix : ""));
  return set;
}

absl::Status LoadTransformerAndText(Device* device, const ModelSet& files, DType dtype,
                                    std::shared_ptr<const text::Tokenizer> tokenizer,
                                    ModelParts* parts) {
  TransformerSource source = {files.transformer_file, files.transformer, dtype, nullptr};
  // Without an adapter nobody would share the weights.
  if (files.distilled_lora != nullptr) source.linears = std::make_shared<checkpoint::LinearPool>();
  LTX_ASSIGN_OR_RETURN(parts->transformer, LoadTransformer(device, source));
  if (files.distilled_lora != nullptr) {
    LTX_ASSIGN_OR_RETURN(auto lora,
                         lora::LoraFile::Parse(files.distilled_lora, lora::LoraOptions()));
    LTX_ASSIGN_OR_RETURN(parts->fused, FusedCache::Create(device, source, std::move(lora)));
  }
  WeightSet weights;
  LTX_RETURN_IF_ERROR(weights.Add(files.transformer_file));
  LTX_ASSIGN_OR_RETURN(const text::GemmaAssets assets,
                       files.text_encoder_file != nullptr
                           ? text::LoadGemmaAssets(files.text_encoder_file)
                           : text::LoadGemmaAssets(files.text_encoder_path));
  text::PromptEncoderOptions options;
  options.compute = dtype;
  options.tokenizer = std::move(tokenizer);
  LTX_ASSIGN_OR_RETURN(
      text::PromptEncoder encoder,
      text::PromptEncoder::Load(device, assets, files.text_projection, weights, options));
  parts->prompt_encoder = std::make_unique<text::PromptEncoder>(std::move(encoder));
  return absl::OkStatus();
}

absl::Status LoadVideo(Device* device, const ModelSet& files, DType dtype, ModelParts* parts) {
  LTX_ASSIGN_OR_RETURN(const WeightSet weights, WeightsBelow(files.video_vae_file, "vae."));
  const WeightLoader loader(device, &weights, dtype, MemoryOwner::kWeightsVideoVae);
  LTX_ASSIGN_OR_RETURN(parts->video_decoder,
                       video_vae::ConvDecoder::Load(files.video_decoder, loader));
  LTX_ASSIGN_OR_RETURN(parts->video_statistics,
                       video_vae::ChannelStatistics::Load(loader.Sub("per_channel_statistics."),
                                                          files.video_decoder.latent_channels));
  if (!files.spatial_upsampler.has_value()) return absl::OkStatus();
  WeightSet upsampler;
  LTX_RETURN_IF_ERROR(upsampler.Add(files.spatial_upsampler->file));
  LTX_ASSIGN_OR_RETURN(parts->upsampler, upsampler::LatentUpsampler::Load(
                                             files.spatial_upsampler->config,
                                             WeightLoader(device, &upsampler, dtype,
                                                          MemoryOwner::kWeightsUpsampler)));
  return absl::OkStatus();
}

absl::Status LoadAudio(Device* device, const ModelSet& files, DType dtype, ModelParts* parts) {
  WeightSet weights;
  LTX_RETURN_IF_ERROR(weights.Add(files.audio_vae_file));
  LTX_ASSIGN_OR_RETURN(
      parts->audio_decoder,
      audio_vae::AudioDecoder::Load(
          WeightLoader(device, &weights, dtype, MemoryOwner::kWeightsAudioVae), files.audio_vae));
  // The vocoder's filters and phases need f32 whatever the rest computes in.
  LTX_ASSIGN_OR_RETURN(parts->vocoder,
                       audio_vae::Vocoder::Load(WeightLoader(device, &weights, DType::kF32,
                                                             MemoryOwner::kWeightsAudioVae),
                                                files.vocoder));
  return absl::OkStatus();
}

absl::Status LoadDurationHead(Device* device, const ModelSet& files, DType dtype,
                              ModelParts* parts) {
  if (!files.duration_head.has_value()) return absl::OkStatus();
  WeightSet weights;
  LTX_RETURN_IF_ERROR(weights.Add(files.duration_head->file));
  const WeightLoader loader(device, &weights, dtype, MemoryOwner::kWeightsText);
  LTX_ASSIGN_OR_RETURN(
      parts->duration_head,
      text::DurationHead::Load(files.duration_head->config, loader.Sub("duration_head.")));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ModelParts>> LoadParts(
    Device* device, const ModelSet& files, DType compute_dtype,
    std::shared_ptr<const text::Tokenizer> tokenizer) {
  auto parts = std::make_unique<ModelParts>();
  LTX_RETURN_IF_ERROR(
      LoadTransformerAndText(device, files, compute_dtype, std::move(tokenizer), parts.get()));
  LTX_RETURN_IF_ERROR(LoadVideo(device, files, compute_dtype, parts.get()));
  LTX_RETURN_IF_ERROR(LoadAudio(device, files, compute_dtype, parts.get()));
  LTX_RETURN_IF_ERROR(LoadDurationHead(device, files, compute_dtype, parts.get()));
  return parts;
}

}  // namespace ltx::pipeline
