#ifndef LTX_ENGINE_CHECKPOINT_FILE_KIND_H_
#define LTX_ENGINE_CHECKPOINT_FILE_KIND_H_

#include <set>

#include "absl/strings/string_view.h"
#include "engine/checkpoint/safetensors.h"

namespace ltx::checkpoint {

/// Parts of a model set that a checkpoint file can hold.
enum class FileKind {
  /// Diffusion transformer, with the text connectors.
  kTransformer,
  /// Language model with tokenizer, mostly with the feature projection.
  kTextEncoder,
  kVideoVae,
  /// Audio VAE and vocoder.
  kAudioVae,
  kSpatialUpsampler,
  kTemporalUpsampler,
  kDurationHead,
  kLora,
  /// The adapter that makes a full model do with few steps. Nothing in its file tells it from other
  /// adapters; model.json or its name does.
  kDistilledLora,
};

/// "transformer", "text_encoder", ...: the names that model.json uses.
absl::string_view FileKindName(FileKind kind);

/// What the file holds, by its tensor names first and its metadata second. The split layout has one
/// kind in a file, the combined one of LTX-2.3 several. Empty for a file of no known kind. Never
/// fails: a file that lacks its config is still recognised, so that the lack can be reported.
std::set<FileKind> RecogniseFile(const SafetensorsFile& file);

}  // namespace ltx::checkpoint

#endif  // LTX_ENGINE_CHECKPOINT_FILE_KIND_H_
