#ifndef LTX_SERVER_JOBS_STATE_FOLDER_H_
#define LTX_SERVER_JOBS_STATE_FOLDER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace ltx::server {

/// What a server keeps between its starts: DIR/jobs, DIR/artifacts, and a lock that is held as long
/// as the object lives, by however the process ends.
class StateFolder {
 public:
  /// Makes what is missing. FAILED_PRECONDITION if another process holds the lock, NOT_FOUND /
  /// PERMISSION_DENIED if the folder cannot be made.
  static absl::StatusOr<std::unique_ptr<StateFolder>> Open(const std::string& path);
  ~StateFolder();
  StateFolder(const StateFolder&) = delete;
  StateFolder& operator=(const StateFolder&) = delete;

  std::string jobs() const { return path_ + "/jobs"; }
  std::string artifacts() const { return path_ + "/artifacts"; }

 private:
  StateFolder(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}
  const std::string path_;
  const int lock_;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_JOBS_STATE_FOLDER_H_
