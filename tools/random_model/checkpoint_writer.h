#ifndef LTX_TOOLS_RANDOM_MODEL_CHECKPOINT_WRITER_H_
#define LTX_TOOLS_RANDOM_MODEL_CHECKPOINT_WRITER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "tools/random_model/model_layout.h"

namespace ltx::random_model {

struct WriteOptions {
  /// 0: one per core.
  int threads = 0;
  /// Other seeds give other values; the file's metadata names it as "random_seed".
  uint64_t seed = 0;
};

/// Bytes of the file that a layout becomes.
int64_t FileBytes(const FileLayout& layout, const WriteOptions& options);

/// Whether `path` is the complete file of this layout and seed: the same header, and the length
/// that goes with it.
bool IsWritten(const FileLayout& layout, const std::string& path, const WriteOptions& options);

/// Writes the file with values by random_values.h. Threads make and write a piece at a time, so
/// memory does not depend on the size. The file appears under its name when it is whole; it is not
/// forced to disk, which for made-up values would only take time. What an earlier run that was
/// killed left beside it is removed.
///
/// ALREADY_EXISTS if there is another file of that name, RESOURCE_EXHAUSTED when the disk is full,
/// NOT_FOUND or PERMISSION_DENIED for the folder; all name the path.
absl::Status WriteCheckpoint(const FileLayout& layout, const std::string& path,
                             const WriteOptions& options);

}  // namespace ltx::random_model

#endif  // LTX_TOOLS_RANDOM_MODEL_CHECKPOINT_WRITER_H_
