#ifndef LTX_ENGINE_CHECKPOINT_WEIGHT_SET_H_
#define LTX_ENGINE_CHECKPOINT_WEIGHT_SET_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/checkpoint/safetensors.h"
#include "kernels/uploads.h"

namespace ltx::checkpoint {

/// Named tensors of one or several files under one namespace, with prefixes kept or stripped.
class WeightSet {
 public:
  WeightSet() = default;
  /// Adds the tensors of `file` whose name starts with `keep_prefix`, under the name without it.
  /// INVALID_ARGUMENT if a name is there already.
  absl::Status Add(const std::shared_ptr<const SafetensorsFile>& file,
                   absl::string_view keep_prefix = "");

  /// nullptr if there is no such tensor.
  const SafetensorsFile::Entry* Find(absl::string_view name) const;
  bool Contains(absl::string_view name) const { return Find(name) != nullptr; }
  /// The bytes of a tensor, whose file stays open with them; nullptr if there is no such tensor.
  std::shared_ptr<const ByteSource> SourceOf(absl::string_view name) const;
  /// All names, sorted.
  std::vector<std::string> Names() const;
  /// For messages: the path of the file that `name` came from, or of the first file.
  std::string PathOf(absl::string_view name) const;

 private:
  struct Item {
    std::shared_ptr<const SafetensorsFile> file;
    const SafetensorsFile::Entry* entry;
  };
  std::map<std::string, Item, std::less<>> items_;
  std::string first_path_;
};

}  // namespace ltx::checkpoint

#endif  // LTX_ENGINE_CHECKPOINT_WEIGHT_SET_H_
