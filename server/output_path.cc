#include "server/output_path.h"

#include <climits>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/pipeline/error_details.h"
#include "server/reasons.h"

namespace ltx::server {
namespace {

absl::Status Refuse(absl::StatusCode code, absl::string_view path, const std::string& why,
                    const std::string& legal) {
  return pipeline::WithDetail(
      absl::Status(code, absl::StrCat("output_path \"", path, "\" ", why, "; legal: ", legal)),
      {std::string(kReasonOutputPath), "output_path", std::string(path), legal});
}

/// Links resolved; empty if there is no such file or folder.
std::string RealPath(const std::string& path) {
  char resolved[PATH_MAX];
  return realpath(path.c_str(), resolved) == nullptr ? std::string() : std::string(resolved);
}

}  // namespace

absl::StatusOr<std::string> ResolveOutputPath(absl::string_view path, absl::string_view ending,
                                              const std::vector<std::string>& roots) {
  if (roots.empty()) {
    return Refuse(absl::StatusCode::kPermissionDenied, path,
                  "cannot be written: the server has no output root", "leave the field empty");
  }
  if (!absl::EndsWith(path, ending)) {
    return Refuse(absl::StatusCode::kInvalidArgument, path,
                  absl::StrCat("does not end in ", ending),
                  absl::StrCat("a path that ends in ", ending));
  }
  if (path.find('\0') != absl::string_view::npos) {
    return Refuse(absl::StatusCode::kInvalidArgument, "", "holds a zero byte", "a plain path");
  }
  const size_t slash = path.find_last_of('/');
  if (!absl::StartsWith(path, "/") || slash + 1 + ending.size() >= path.size()) {
    return Refuse(absl::StatusCode::kInvalidArgument, path, "is not the absolute path of a file",
                  absl::StrCat("a path below ", absl::StrJoin(roots, " or ")));
  }
  // The folder is what links and ".." could lead astray; the file itself is replaced by rename.
  const std::string folder = RealPath(std::string(path.substr(0, slash + 1)));
  if (folder.empty()) {
    return Refuse(absl::StatusCode::kInvalidArgument, path, "lies in a folder that does not exist",
                  "an existing folder");
  }
  for (const std::string& root : roots) {
    const std::string real_root = RealPath(root);
    if (real_root.empty()) continue;
    if (folder == real_root || absl::StartsWith(folder, absl::StrCat(real_root, "/"))) {
      return absl::StrCat(folder, path.substr(slash));
    }
  }
  return Refuse(absl::StatusCode::kPermissionDenied, path, "lies outside the server's output roots",
                absl::StrCat("a path below ", absl::StrJoin(roots, " or ")));
}

}  // namespace ltx::server
