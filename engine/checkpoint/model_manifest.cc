#include "engine/checkpoint/model_manifest.h"

#include <algorithm>
#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "engine/checkpoint/config_reader.h"
#include "engine/checkpoint/json_text.h"
#include "kernels/status_macros.h"

namespace ltx::checkpoint {
namespace {

/// The largest picture and clip a manifest may speak of: far beyond what the models know, and small
/// enough that products stay in range.
constexpr int64_t kMaxSize = 1 << 14;
constexpr int64_t kMaxFrames = 1 << 16;
constexpr double kMaxFrameRate = 240.0;
/// Pixels per latent cell, and frames per latent frame.
constexpr int64_t kSizeStep = 32;
constexpr int64_t kFrameStep = 8;

/// Refuses keys outside `legal`.
absl::Status CheckKeys(const nlohmann::json& object, const std::string& path,
                       std::initializer_list<absl::string_view> legal) {
  if (!object.is_object()) return absl::OkStatus();
  for (const auto& [key, value] : object.items()) {
    if (std::find(legal.begin(), legal.end(), key) == legal.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ".", key, " is unknown, legal are ", absl::StrJoin(legal, ", ")));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckAllKeys(const nlohmann::json& json, const std::string& path) {
  LTX_RETURN_IF_ERROR(CheckKeys(json, path, {"name", "kind", "defaults", "limits", "files"}));
  const auto below = [&](const char* key, std::initializer_list<absl::string_view> legal) {
    const auto it = json.find(key);
    return it == json.end() ? absl::OkStatus()
                            : CheckKeys(*it, absl::StrCat(path, ".", key), legal);
  };
  LTX_RETURN_IF_ERROR(below("defaults", {"width", "height", "num_frames", "frame_rate"}));
  LTX_RETURN_IF_ERROR(below("limits", {"min_frames", "max_frames", "min_size", "max_size"}));
  return below("files",
               {"transformer", "text_encoder", "video_vae", "audio_vae", "spatial_upsampler",
                "temporal_upsampler", "duration_head", "distilled_lora"});
}

std::optional<int64_t> OptionalInt(ConfigReader& reader, const char* key, int64_t low,
                                   int64_t high) {
  if (!reader.Has(key)) return std::nullopt;
  return reader.Int(key, low, low, high);
}

void CheckOrder(ConfigReader& reader, const char* key, std::optional<int64_t> low,
                std::optional<int64_t> value, std::optional<int64_t> high) {
  if (!reader.status().ok() || !value.has_value()) return;
  if (low.has_value() && *value < *low) {
    reader.FailValue(key, absl::StrCat("from ", *low, " on"));
  }
  if (high.has_value() && *value > *high) {
    reader.FailValue(key, absl::StrCat("up to ", *high));
  }
}

void ReadSizes(ConfigReader& reader, ModelManifest* manifest) {
  ModelManifest& m = *manifest;
  ConfigReader limits = reader.Object("limits");
  m.min_frames = OptionalInt(limits, "min_frames", 1, kMaxFrames);
  m.max_frames = OptionalInt(limits, "max_frames", 1, kMaxFrames);
  m.min_size = OptionalInt(limits, "min_size", 1, kMaxSize);
  m.max_size = OptionalInt(limits, "max_size", 1, kMaxSize);
  CheckOrder(limits, "max_frames", m.min_frames, m.max_frames, std::nullopt);
  CheckOrder(limits, "max_size", m.min_size, m.max_size, std::nullopt);

  ConfigReader defaults = reader.Object("defaults");
  m.width = OptionalInt(defaults, "width", kSizeStep, kMaxSize);
  m.height = OptionalInt(defaults, "height", kSizeStep, kMaxSize);
  m.num_frames = OptionalInt(defaults, "num_frames", 1, kMaxFrames);
  if (defaults.Has("frame_rate")) {
    m.frame_rate = defaults.Number("frame_rate", 1.0, 1.0, kMaxFrameRate);
  }
  CheckOrder(defaults, "width", m.min_size, m.width, m.max_size);
  CheckOrder(defaults, "height", m.min_size, m.height, m.max_size);
  CheckOrder(defaults, "num_frames", m.min_frames, m.num_frames, m.max_frames);
  if (m.width.has_value() && *m.width % kSizeStep != 0) {
    defaults.FailValue("width", "a multiple of 32");
  }
  if (m.height.has_value() && *m.height % kSizeStep != 0) {
    defaults.FailValue("height", "a multiple of 32");
  }
  if (m.num_frames.has_value() && (*m.num_frames - 1) % kFrameStep != 0) {
    defaults.FailValue("num_frames", "one more than a multiple of 8");
  }
}

void ReadFiles(ConfigReader& reader, ModelManifest* manifest) {
  ConfigReader files = reader.Object("files");
  for (const FileKind kind :
       {FileKind::kTransformer, FileKind::kTextEncoder, FileKind::kVideoVae, FileKind::kAudioVae,
        FileKind::kSpatialUpsampler, FileKind::kTemporalUpsampler, FileKind::kDurationHead,
        FileKind::kDistilledLora}) {
    const std::string key(FileKindName(kind));
    if (!files.Has(key.c_str())) continue;
    const std::string path = files.String(key.c_str(), "");
    const std::vector<std::string> parts = absl::StrSplit(path, '/');
    if (path.empty() || path[0] == '/' ||
        std::find(parts.begin(), parts.end(), "..") != parts.end()) {
      files.FailValue(key.c_str(), "a path below the model folder");
    }
    manifest->files[kind] = path;
  }
}

}  // namespace

absl::string_view ModelKindName(ModelKind kind) {
  return kind == ModelKind::kDistilled ? "distilled" : "dev";
}

absl::StatusOr<ModelManifest> ParseModelManifest(absl::string_view text, absl::string_view path) {
  LTX_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJsonObject(text, path));
  const std::string root = absl::StrCat(path, ": model");
  LTX_RETURN_IF_ERROR(CheckAllKeys(json, root));
  ConfigReader reader(json, root);
  ModelManifest manifest;
  if (reader.Has("name")) {
    manifest.name = reader.String("name", "");
    if (manifest.name->empty()) reader.FailValue("name", "a string that is not empty");
  }
  if (reader.Has("kind")) {
    manifest.kind = reader.OneOf<ModelKind>(
        "kind", ModelKind::kDev, {{"distilled", ModelKind::kDistilled}, {"dev", ModelKind::kDev}});
  }
  ReadSizes(reader, &manifest);
  ReadFiles(reader, &manifest);
  if (!reader.status().ok()) return reader.status();
  return manifest;
}

}  // namespace ltx::checkpoint
