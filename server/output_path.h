#ifndef LTX_SERVER_OUTPUT_PATH_H_
#define LTX_SERVER_OUTPUT_PATH_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ltx::server {

/// Turns the path of a request into the one to write: absolute, links resolved, inside one of
/// `roots` and with the ending for the kind of file, e.g. ".mp4".
/// INVALID_ARGUMENT or PERMISSION_DENIED (reason OUTPUT_PATH, field output_path) with what would be
/// legal. The folder must exist.
absl::StatusOr<std::string> ResolveOutputPath(absl::string_view path, absl::string_view ending,
                                              const std::vector<std::string>& roots);

}  // namespace ltx::server

#endif  // LTX_SERVER_OUTPUT_PATH_H_
