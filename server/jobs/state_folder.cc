#include "server/jobs/state_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"

namespace ltx::server {

absl::StatusOr<std::unique_ptr<StateFolder>> StateFolder::Open(const std::string& path) {
  for (const char* part : {"/jobs", "/artifacts"}) {
    std::error_code error;
    std::filesystem::create_directories(path + part, error);
    if (error) {
      const bool denied = error == std::errc::permission_denied;
      return absl::Status(
          denied ? absl::StatusCode::kPermissionDenied : absl::StatusCode::kNotFound,
          absl::StrCat("state_dir: cannot make ", path, part, ": ", error.message()));
    }
  }
  const std::string lock_path = path + "/lock";
  const int lock = open(lock_path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (lock < 0) {
    return absl::PermissionDeniedError(
        absl::StrCat("state_dir: cannot open ", lock_path, ": ", std::strerror(errno)));
  }
  auto folder = absl::WrapUnique(new StateFolder(path, lock));
  if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("state_dir: another server uses ", path, " (", lock_path, " is locked)"));
  }
  return folder;
}

StateFolder::~StateFolder() { close(lock_); }

}  // namespace ltx::server
