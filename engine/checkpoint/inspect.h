#ifndef LTX_ENGINE_CHECKPOINT_INSPECT_H_
#define LTX_ENGINE_CHECKPOINT_INSPECT_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/file_kind.h"
#include "kernels/dtype.h"

namespace ltx::checkpoint {

/// What one checkpoint file holds, from its header alone.
struct CheckpointSummary {
  struct DTypeUse {
    int64_t tensors = 0;
    int64_t elements = 0;
    int64_t bytes = 0;
  };
  /// A named group of tensors: everything before the second dot of their names.
  struct Group {
    std::string name;
    int64_t tensors = 0;
    int64_t bytes = 0;
  };

  std::string path;
  int64_t file_bytes = 0;
  std::set<FileKind> kinds;
  int64_t tensors = 0;
  /// Elements of all float tensors; packed forms count as stored.
  int64_t parameters = 0;
  std::map<DType, DTypeUse> dtypes;
  /// In the order of names.
  std::vector<Group> groups;
  /// Weights by the form they are stored in, e.g. "plain" -> 120; "malformed" for contradictions.
  std::map<std::string, int64_t> stored_forms;
  /// Metadata other than `config`, as stored.
  std::map<std::string, std::string> metadata;
  /// `config`, pretty-printed; "" if the file has none. As stored if it is not JSON.
  std::string config;
};

/// NOT_FOUND or INVALID_ARGUMENT as SafetensorsFile::Open.
absl::StatusOr<CheckpointSummary> InspectCheckpoint(const std::string& path);

/// The summary as lines of text. Whatever came from the file is escaped: it cannot steer a
/// terminal.
std::string RenderSummary(const CheckpointSummary& summary);

}  // namespace ltx::checkpoint

#endif  // LTX_ENGINE_CHECKPOINT_INSPECT_H_
