#ifndef LTX_ENGINE_CHECKPOINT_MODEL_MANIFEST_H_
#define LTX_ENGINE_CHECKPOINT_MODEL_MANIFEST_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/checkpoint/file_kind.h"

namespace ltx::checkpoint {

/// Whether the transformer was distilled to a few steps. Nothing in its file tells.
enum class ModelKind { kDistilled, kDev };

/// "distilled" or "dev".
absl::string_view ModelKindName(ModelKind kind);

/// model.json of a model folder. All keys are optional, unknown ones are refused:
///   name      string
///   kind      "distilled" or "dev"
///   defaults  {width, height, num_frames, frame_rate}
///   limits    {min_frames, max_frames, min_size, max_size}
///   files     {transformer, text_encoder, video_vae, audio_vae, spatial_upsampler,
///             temporal_upsampler, duration_head, distilled_lora: path below the folder}; a kind
///             that is named here is not searched for
struct ModelManifest {
  std::optional<std::string> name;
  std::optional<ModelKind> kind;

  std::optional<int64_t> width;
  std::optional<int64_t> height;
  std::optional<int64_t> num_frames;
  std::optional<double> frame_rate;

  std::optional<int64_t> min_frames;
  std::optional<int64_t> max_frames;
  std::optional<int64_t> min_size;
  std::optional<int64_t> max_size;

  std::map<FileKind, std::string> files;
};

/// INVALID_ARGUMENT starts with `path` and names key, value and what is legal.
absl::StatusOr<ModelManifest> ParseModelManifest(absl::string_view text, absl::string_view path);

}  // namespace ltx::checkpoint

#endif  // LTX_ENGINE_CHECKPOINT_MODEL_MANIFEST_H_
