#ifndef LTX_TOOLS_RANDOM_MODEL_MODEL_LAYOUT_H_
#define LTX_TOOLS_RANDOM_MODEL_MODEL_LAYOUT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/file_kind.h"
#include "kernels/shape.h"
#include "tools/random_model/model_size.h"

namespace ltx::random_model {

/// What one checkpoint file holds, in the official layout.
struct FileLayout {
  checkpoint::FileKind kind = checkpoint::FileKind::kTransformer;
  /// Below the folder of the set.
  std::string path;
  std::map<std::string, std::string> metadata;
  /// Tensors of bf16.
  std::map<std::string, Shape> tensors;
  /// Byte tensors, one-dimensional.
  std::map<std::string, std::string> texts;

  /// Elements of `tensors`.
  int64_t num_values() const;
};

// Names and shapes follow from the configs (model_configs.h), read by the engine's own readers.
// Left out are the maps of pictures and sounds into the text tower, which nothing here uses. Errors
// are those of the readers, for a size that no config can say.
absl::StatusOr<FileLayout> TransformerFile(const ModelSize& size);
absl::StatusOr<FileLayout> TextEncoderFile(const ModelSize& size);
absl::StatusOr<FileLayout> VideoVaeFile(const ModelSize& size);
absl::StatusOr<FileLayout> AudioVaeFile(const ModelSize& size);
absl::StatusOr<FileLayout> SpatialUpsamplerFile(const ModelSize& size);
absl::StatusOr<FileLayout> DurationHeadFile(const ModelSize& size);

/// All files of a set; a 2.3 model has no duration head.
absl::StatusOr<std::vector<FileLayout>> FilesOf(const ModelSize& size);

/// model.json of a set: a distilled model of this name.
std::string ManifestOf(const std::string& name);

}  // namespace ltx::random_model

#endif  // LTX_TOOLS_RANDOM_MODEL_MODEL_LAYOUT_H_
