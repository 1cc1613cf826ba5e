#ifndef LTX_ENGINE_CHECKPOINT_TENSOR_CHECKS_H_
#define LTX_ENGINE_CHECKPOINT_TENSOR_CHECKS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/checkpoint/safetensors.h"

namespace ltx::checkpoint {

/// Checks of one file's header below a prefix of its names. All errors name file and tensor.
class TensorChecks {
 public:
  TensorChecks(const SafetensorsFile& file, absl::string_view prefix)
      : file_(&file), prefix_(prefix) {}
  TensorChecks Sub(absl::string_view prefix) const;

  bool Has(absl::string_view name) const;
  /// True if any name starts with `prefix`.
  bool HasBelow(absl::string_view prefix) const;

  /// NOT_FOUND if there is no such tensor, INVALID_ARGUMENT if it has another shape.
  absl::Status Shape(absl::string_view name, const ltx::Shape& shape) const;
  /// INVALID_ARGUMENT unless the tensor is there exactly if the config's `key` says so.
  absl::Status Switch(absl::string_view name, absl::string_view key, bool value) const;
  /// INVALID_ARGUMENT unless the indices i of names `module`.i.* are 0 to count - 1.
  absl::Status Indices(absl::string_view module, absl::string_view key, int64_t count) const;
  /// Means and standard deviations of latent channels: shapes, finite values, deviations above 0.
  absl::Status Statistics(int64_t channels) const;
  /// UNIMPLEMENTED if a weight is stored in a quantised form, INVALID_ARGUMENT for a half-present
  /// one.
  absl::Status PlainWeights() const;

 private:
  absl::Status Error(absl::StatusCode code, absl::string_view name, absl::string_view what) const;
  const SafetensorsFile::Entry* Find(absl::string_view name) const;

  const SafetensorsFile* file_;
  std::string prefix_;
};

}  // namespace ltx::checkpoint

#endif  // LTX_ENGINE_CHECKPOINT_TENSOR_CHECKS_H_
