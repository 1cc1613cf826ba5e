#ifndef LTX_ENGINE_CHECKPOINT_MODEL_SET_H_
#define LTX_ENGINE_CHECKPOINT_MODEL_SET_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/checkpoint/audio_config.h"
#include "engine/checkpoint/model_manifest.h"
#include "engine/checkpoint/model_version.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/text_config.h"
#include "engine/checkpoint/transformer_config.h"
#include "engine/checkpoint/upsampler_config.h"
#include "engine/checkpoint/video_vae_config.h"

namespace ltx::checkpoint {

/// What model.json gives a request that leaves a field open; what it does not name is up to the
/// recipe.
struct ModelDefaults {
  /// Pixels.
  std::optional<int64_t> width;
  std::optional<int64_t> height;
  std::optional<int64_t> num_frames;
  /// Frames per second.
  std::optional<double> frame_rate;
};

/// What model.json allows; a side it does not name is open.
struct ModelLimits {
  std::optional<int64_t> min_frames;
  std::optional<int64_t> max_frames;
  /// Of width and of height, pixels.
  std::optional<int64_t> min_size;
  std::optional<int64_t> max_size;
};

/// The files of one model, opened and checked against their configs and against each other. Nothing
/// is on a device yet. Several members may share one file (the combined layout); tensor names are
/// as stored, `model.diffusion_model.` and `vae.` prefixes included.
struct ModelSet {
  struct Upsampler {
    std::shared_ptr<const SafetensorsFile> file;
    UpsamplerConfig config;
  };
  struct DurationHead {
    std::shared_ptr<const SafetensorsFile> file;
    DurationHeadConfig config;
  };

  /// Opens what lies below `folder` and recognises it by content. A folder with config.json and
  /// tokenizer.json is a text encoder in Hugging Face layout. model.json may say more.
  ///
  /// NOT_FOUND naming the folder, or the kind of file that is missing; INVALID_ARGUMENT naming both
  /// files of one kind, a file and a tensor or config key that contradict, or two files whose
  /// widths do not fit; UNIMPLEMENTED naming a stored form or a switch that is not supported.
  static absl::StatusOr<ModelSet> Open(const std::string& folder);

  /// The same of files that are open, for models that lie in no folder. The errors of Open.
  static absl::StatusOr<ModelSet> FromFiles(
      absl::Span<const std::shared_ptr<const SafetensorsFile>> files,
      const ModelManifest& manifest);

  std::string folder;
  /// From model.json, else the folder's own name.
  std::string name;
  /// From model.json, else "distilled" if the transformer file's name has that word.
  ModelKind kind = ModelKind::kDev;
  /// `model_version` of the transformer file; "" if it has none.
  std::string model_version;
  ModelDefaults defaults;
  ModelLimits limits;

  std::shared_ptr<const SafetensorsFile> transformer_file;
  TransformerConfig transformer;
  /// Feature extractor and connectors; the connectors' tensors are in transformer_file.
  TextProjectionConfig text_projection;

  /// A single file, or a Hugging Face folder.
  std::string text_encoder_path;
  /// Null for a folder.
  std::shared_ptr<const SafetensorsFile> text_encoder_file;
  GemmaConfig gemma;

  std::shared_ptr<const SafetensorsFile> video_vae_file;
  VideoDecoderConfig video_decoder;
  VideoEncoderConfig video_encoder;
  /// `model_version` of the video VAE file, which the image compression goes by.
  std::string video_vae_version;

  std::shared_ptr<const SafetensorsFile> audio_vae_file;
  AudioVaeConfig audio_vae;
  VocoderConfig vocoder;

  std::optional<Upsampler> spatial_upsampler;
  std::optional<Upsampler> temporal_upsampler;
  std::optional<DurationHead> duration_head;
  /// The distilled one included.
  std::vector<std::shared_ptr<const SafetensorsFile>> loras;
  /// The adapter that model.json names as "distilled_lora", else the only one with "distilled" in
  /// its file's name. Null if there is none.
  std::shared_ptr<const SafetensorsFile> distilled_lora;

  /// True if the transformer can mark generated keyframes: its config says so and the tensor is
  /// there.
  bool keyframe_embedding = false;

  /// Files below the folder that are of no known kind, and things that deserve a line in the log.
  std::vector<std::string> unrecognised_files;
  std::vector<std::string> warnings;
};

}  // namespace ltx::checkpoint

#endif  // LTX_ENGINE_CHECKPOINT_MODEL_SET_H_
