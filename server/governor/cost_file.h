#ifndef LTX_SERVER_GOVERNOR_COST_FILE_H_
#define LTX_SERVER_GOVERNOR_COST_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/checkpoint/model_set.h"
#include "engine/pipeline/model.h"

namespace ltx::server {

/// What measured costs hold for: the model set (names, sizes and headers of its files), the device,
/// the compute dtype, and this build of the program.
std::string CostIdentity(const pipeline::Model& model, const checkpoint::ModelSet& files);

/// Measured costs in a folder, one file for each identity.
class CostFile {
 public:
  CostFile(const std::string& folder, std::string identity);

  const std::string& path() const { return path_; }
  /// The text that Save() was given. NOT_FOUND if there is none; INVALID_ARGUMENT for a file that
  /// is another identity's, too large, or not of this kind: it may come from anywhere.
  absl::StatusOr<std::string> Load() const;
  /// Whole or not at all.
  absl::Status Save(absl::string_view costs) const;

 private:
  const std::string identity_;
  const std::string path_;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_GOVERNOR_COST_FILE_H_
