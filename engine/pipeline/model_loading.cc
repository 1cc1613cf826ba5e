#include "engine/pipeline/model_loading.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "engine/checkpoint/json_text.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/checkpoint/weight_set.h"
#include "engine/pipeline/error_details.h"
#include "engine/video_vae/conv_decoder.h"
#include "kernels/status_macros.h"

namespace ltx::pipeline {
namespace {

using checkpoint::SafetensorsFile;
using checkpoint::WeightLoader;
using checkpoint::WeightSet;
using File = std::shared_ptr<const SafetensorsFile>;

/// The files of a set by their part; null or empty where there is none.
struct SetFiles {
  File transformer, video_vae, audio_vae, spatial_upsampler;
  std::string text_encoder;
};

SetFiles FilesOf(const checkpoint::ModelSet& set) {
  return {set.transformer, set.video_vae, set.audio_vae, set.upsampler, set.text_encoder};
}

absl::Status Mismatch(const std::string& what, int64_t a, const std::string& a_name, int64_t b,
                      const std::string& b_name) {
  if (a == b) return absl::OkStatus();
  return WithDetail(
      absl::InvalidArgumentError(
          absl::StrCat(what, " is ", a, " in ", a_name, " but ", b, " in ", b_name)),
      {std::string(kReasonComponentMismatch), what, absl::StrCat(a), absl::StrCat(b)});
}

/// The JSON object under `key` of the file's metadata.
absl::StatusOr<nlohmann::json> MetadataObject(const SafetensorsFile& file, const char* key) {
  const auto it = file.metadata().find(key);
  if (it == file.metadata().end()) {
    return absl::InvalidArgumentError(absl::StrCat(file.path(), ": metadata ", key, " is missing"));
  }
  return checkpoint::ParseJsonObject(it->second, absl::StrCat(file.path(), ": metadata ", key));
}

absl::Status RequireFile(const File& file, absl::string_view component) {
  if (file != nullptr) return absl::OkStatus();
  return WithDetail(
      absl::FailedPreconditionError(absl::StrCat("the model set has no ", component, " file")),
      {std::string(kReasonComponentMissing), std::string(component), "", ""});
}

/// A component's tensors: those below `prefix` in a file that holds several components, else all.
absl::StatusOr<WeightSet> WeightsBelow(const File& file, absl::string_view prefix) {
  WeightSet set;
  const auto first = file->entries().lower_bound(prefix);
  const bool prefixed = first != file->entries().end() && absl::StartsWith(first->first, prefix);
  LTX_RETURN_IF_ERROR(set.Add(file, prefixed ? prefix : ""));
  return set;
}

/// The text encoder that a transformer was trained with, if both files name one.
absl::Status CheckTextEncoder(const SafetensorsFile& transformer, const text::GemmaAssets& assets) {
  if (transformer.metadata().count("gemma_source_checkpoint") == 0) return absl::OkStatus();
  LTX_ASSIGN_OR_RETURN(const nlohmann::json source,
                       MetadataObject(transformer, "gemma_source_checkpoint"));
  const auto wanted = source.find("gemma_version");
  const auto given = assets.config.find("gemma_version");
  if (wanted == source.end() || !wanted->is_string() || given == assets.config.end() ||
      !given->is_string() || *wanted == *given) {
    return absl::OkStatus();
  }
  const auto& wanted_name = wanted->get_ref<const std::string&>();
  const auto& given_name = given->get_ref<const std::string&>();
  return WithDetail(
      absl::InvalidArgumentError(absl::StrCat(transformer.path(), " needs text encoder ",
                                              wanted_name, ", but ", assets.source, " is ",
                                              given_name)),
      {std::string(kReasonComponentMismatch), "text encoder", given_name, wanted_name});
}

absl::Status CheckFit(const SetConfigs& configs) {
  const checkpoint::TransformerConfig& t = configs.transformer;
  LTX_RETURN_IF_ERROR(Mismatch("video latent channels", configs.video.latent_channels,
                               "the video VAE", t.in_channels, "the transformer"));
  LTX_RETURN_IF_ERROR(Mismatch("video context width", configs.text.video_connector.width(),
                               "the text connector", t.cross_attention_dim, "the transformer"));
  LTX_RETURN_IF_ERROR(Mismatch("audio context width", configs.text.audio_connector.width(),
                               "the text connector", t.audio_cross_attention_dim,
                               "the transformer"));
  // The statistics of the audio VAE have one entry per value of a token.
  LTX_RETURN_IF_ERROR(Mismatch("audio token width", configs.audio.ch, "the audio VAE",
                               t.audio_in_channels, "the transformer"));
  if (configs.upsampler.has_value()) {
    LTX_RETURN_IF_ERROR(Mismatch("video latent channels", configs.upsampler->in_channels,
                                 "the upsampler", t.in_channels, "the transformer"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SetConfigs> ReadConfigs(const checkpoint::ModelSet& files) {
  const SetFiles f = FilesOf(files);
  LTX_RETURN_IF_ERROR(RequireFile(f.transformer, "transformer"));
  LTX_RETURN_IF_ERROR(RequireFile(f.video_vae, "video VAE"));
  LTX_RETURN_IF_ERROR(RequireFile(f.audio_vae, "audio VAE"));
  SetConfigs configs;
  LTX_ASSIGN_OR_RETURN(const nlohmann::json transformer, MetadataObject(*f.transformer, "config"));
  LTX_RETURN_IF_ERROR(checkpoint::ValidateTransformerRequired(transformer));
  LTX_ASSIGN_OR_RETURN(configs.transformer, checkpoint::ParseTransformerConfig(transformer));
  LTX_ASSIGN_OR_RETURN(configs.text, checkpoint::ParseTextProjectionConfig(transformer));
  LTX_ASSIGN_OR_RETURN(const nlohmann::json video, MetadataObject(*f.video_vae, "config"));
  LTX_ASSIGN_OR_RETURN(configs.video, checkpoint::ParseVideoDecoderConfig(video));
  LTX_ASSIGN_OR_RETURN(const nlohmann::json audio, MetadataObject(*f.audio_vae, "config"));
  LTX_ASSIGN_OR_RETURN(configs.audio, checkpoint::ParseAudioVaeConfig(audio));
  LTX_ASSIGN_OR_RETURN(configs.vocoder, checkpoint::ParseVocoderConfig(audio));
  if (f.spatial_upsampler != nullptr) {
    LTX_ASSIGN_OR_RETURN(const nlohmann::json flat, MetadataObject(*f.spatial_upsampler, "config"));
    LTX_ASSIGN_OR_RETURN(configs.upsampler, checkpoint::ParseUpsamplerConfig(flat));
  }
  LTX_RETURN_IF_ERROR(CheckFit(configs));
  return configs;
}

absl::StatusOr<std::unique_ptr<ModelParts>> LoadParts(Device* device,
                                                      const checkpoint::ModelSet& files,
                                                      const SetConfigs& configs,
                                                      DType compute_dtype) {
  const SetFiles f = FilesOf(files);
  auto parts = std::make_unique<ModelParts>();
  LTX_ASSIGN_OR_RETURN(const text::GemmaAssets assets, text::LoadGemmaAssets(f.text_encoder));
  LTX_RETURN_IF_ERROR(CheckTextEncoder(*f.transformer, assets));

  WeightSet transformer;
  LTX_RETURN_IF_ERROR(transformer.Add(f.transformer));
  LTX_ASSIGN_OR_RETURN(parts->transformer,
                       dit::Transformer::Load(configs.transformer, dit::ModelClass::kAudioVideo,
                                              WeightLoader(device, &transformer, compute_dtype,
                                                           MemoryOwner::kWeightsDit)
                                                  .Sub("model.diffusion_model.")));
  text::PromptEncoderOptions text_options;
  text_options.compute = compute_dtype;
  LTX_ASSIGN_OR_RETURN(
      text::PromptEncoder encoder,
      text::PromptEncoder::Load(device, assets, configs.text, transformer, text_options));
  parts->prompt_encoder = std::make_unique<text::PromptEncoder>(std::move(encoder));

  LTX_ASSIGN_OR_RETURN(const WeightSet video, WeightsBelow(f.video_vae, "vae."));
  WeightLoader video_loader(device, &video, compute_dtype, MemoryOwner::kWeightsVideoVae);
  LTX_ASSIGN_OR_RETURN(parts->video_decoder,
                       video_vae::ConvDecoder::Load(configs.video, video_loader));
  LTX_ASSIGN_OR_RETURN(parts->video_statistics, video_vae::ChannelStatistics::Load(
                                                    video_loader.Sub("per_channel_statistics."),
                                                    configs.video.latent_channels));
  if (f.spatial_upsampler != nullptr) {
    WeightSet upsampler;
    LTX_RETURN_IF_ERROR(upsampler.Add(f.spatial_upsampler));
    LTX_ASSIGN_OR_RETURN(parts->upsampler,
                         upsampler::LatentUpsampler::Load(
                             *configs.upsampler, WeightLoader(device, &upsampler, compute_dtype,
                                                              MemoryOwner::kWeightsUpsampler)));
  }

  WeightSet audio;
  LTX_RETURN_IF_ERROR(audio.Add(f.audio_vae));
  LTX_ASSIGN_OR_RETURN(parts->audio_decoder,
                       audio_vae::AudioDecoder::Load(WeightLoader(device, &audio, compute_dtype,
                                                                  MemoryOwner::kWeightsAudioVae),
                                                     configs.audio));
  // The vocoder's filters and phases need f32 whatever the rest computes in.
  LTX_ASSIGN_OR_RETURN(parts->vocoder,
                       audio_vae::Vocoder::Load(
                           WeightLoader(device, &audio, DType::kF32, MemoryOwner::kWeightsAudioVae),
                           configs.vocoder));
  const auto version = f.transformer->metadata().find("model_version");
  // The generation from which the reference samples stage 1 with injected noise.
  const std::vector<int64_t> since = {2, 5};
  parts->ancestral_stage_1 =
      version != f.transformer->metadata().end() && ParseVersion(version->second) >= since;
  return parts;
}

std::vector<int64_t> ParseVersion(absl::string_view version) {
  std::vector<int64_t> numbers;
  for (const absl::string_view part :
       absl::StrSplit(absl::StrReplaceAll(version, {{"-", "."}}), '.')) {
    int64_t number = 0;
    if (part.empty() || !std::all_of(part.begin(), part.end(), absl::ascii_isdigit) ||
        !absl::SimpleAtoi(part, &number)) {
      break;
    }
    numbers.push_back(number);
  }
  return numbers;
}

}  // namespace ltx::pipeline
