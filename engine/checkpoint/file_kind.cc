#include "engine/checkpoint/file_kind.h"

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "engine/checkpoint/json_text.h"

namespace ltx::checkpoint {
namespace {

bool HasPrefix(const SafetensorsFile& file, absl::string_view prefix) {
  const auto it = file.entries().lower_bound(prefix);
  return it != file.entries().end() && absl::StartsWith(it->first, prefix);
}

bool IsLora(const SafetensorsFile& file) {
  return std::any_of(file.entries().begin(), file.entries().end(), [](const auto& item) {
    for (const char* suffix :
         {".lora_A.weight", ".lora_B.weight", ".lora_down.weight", ".lora_up.weight"}) {
      if (absl::EndsWith(item.first, suffix)) return true;
    }
    return false;
  });
}

/// True for the names of a latent upsampler, which has no prefix of its own.
bool LooksLikeUpsampler(const SafetensorsFile& file) {
  return file.entries().count("initial_conv.weight") > 0 &&
         file.entries().count("final_conv.weight") > 0 && HasPrefix(file, "upsampler.");
}

/// Spatial and temporal upsamplers have the same names; the config's flags tell them apart. One
/// that does both counts as spatial.
FileKind UpsamplerKind(const SafetensorsFile& file) {
  const auto text = file.metadata().find("config");
  if (text == file.metadata().end()) return FileKind::kSpatialUpsampler;
  const auto config = ParseJsonObject(text->second, file.path());
  if (!config.ok()) return FileKind::kSpatialUpsampler;
  const auto spatial = config->find("spatial_upsample");
  return spatial != config->end() && *spatial == false ? FileKind::kTemporalUpsampler
                                                       : FileKind::kSpatialUpsampler;
}

}  // namespace

absl::string_view FileKindName(FileKind kind) {
  switch (kind) {
    case FileKind::kTransformer:
      return "transformer";
    case FileKind::kTextEncoder:
      return "text_encoder";
    case FileKind::kVideoVae:
      return "video_vae";
    case FileKind::kAudioVae:
      return "audio_vae";
    case FileKind::kSpatialUpsampler:
      return "spatial_upsampler";
    case FileKind::kTemporalUpsampler:
      return "temporal_upsampler";
    case FileKind::kDurationHead:
      return "duration_head";
    case FileKind::kLora:
      return "lora";
    case FileKind::kDistilledLora:
      return "distilled_lora";
  }
  return "?";
}

std::set<FileKind> RecogniseFile(const SafetensorsFile& file) {
  // An adapter repeats the names of what it adapts.
  if (IsLora(file)) return {FileKind::kLora};
  std::set<FileKind> kinds;
  if (HasPrefix(file, "model.diffusion_model.transformer_blocks.")) {
    kinds.insert(FileKind::kTransformer);
  }
  if (file.metadata().count("gemma_config") > 0 || file.entries().count("tokenizer_json") > 0) {
    kinds.insert(FileKind::kTextEncoder);
  }
  if (HasPrefix(file, "vae.decoder.") ||
      (HasPrefix(file, "decoder.") && !kinds.count(FileKind::kTextEncoder))) {
    kinds.insert(FileKind::kVideoVae);
  }
  if (HasPrefix(file, "audio_vae.")) kinds.insert(FileKind::kAudioVae);
  if (HasPrefix(file, "duration_head.")) kinds.insert(FileKind::kDurationHead);
  if (LooksLikeUpsampler(file)) kinds.insert(UpsamplerKind(file));
  return kinds;
}

}  // namespace ltx::checkpoint
