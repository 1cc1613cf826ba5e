#ifndef LTX_TOOLS_RANDOM_MODEL_RANDOM_FILE_H_
#define LTX_TOOLS_RANDOM_MODEL_RANDOM_FILE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/model_set.h"
#include "engine/checkpoint/safetensors.h"
#include "kernels/dtype.h"
#include "tools/random_model/model_layout.h"
#include "tools/random_model/model_size.h"
#include "tools/random_model/random_values.h"

namespace ltx::random_model {

/// A checkpoint file of random values that takes a fraction of its size in memory: tensors of one
/// range (random_values.h) share a buffer as large as the largest of them, each from another place
/// on. What loads it goes the way of a real file, but for the disk.
class RandomFile final : public checkpoint::SafetensorsFile {
 public:
  explicit RandomFile(FileLayout layout);

  /// Of all tensors, as a file would hold them.
  int64_t tensor_bytes() const { return tensor_bytes_; }

 private:
  std::map<ValueRange, std::vector<BFloat16>> buffers_;
  std::map<std::string, std::string> texts_;
  int64_t tensor_bytes_ = 0;
};

/// A whole set in memory. The errors of FilesOf and of ModelSet::FromFiles.
absl::StatusOr<checkpoint::ModelSet> RandomModelSet(const ModelSize& size);

}  // namespace ltx::random_model

#endif  // LTX_TOOLS_RANDOM_MODEL_RANDOM_FILE_H_
