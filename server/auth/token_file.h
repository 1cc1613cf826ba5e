#ifndef LTX_SERVER_AUTH_TOKEN_FILE_H_
#define LTX_SERVER_AUTH_TOKEN_FILE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/auth/token_table.h"

namespace ltx::server {

/// The tokens of a file, read anew when the file changes: replaced or revoked tokens count without
/// a restart. A changed file that is broken leaves the tokens as they were, and the log says so.
/// Thread-safe.
class TokenFile {
 public:
  /// NOT_FOUND or INVALID_ARGUMENT naming the path. Warns in the log if others than the owner may
  /// read the file.
  static absl::StatusOr<std::unique_ptr<TokenFile>> Open(
      const std::string& path, std::function<absl::Time()> now = absl::Now);

  /// The tokens now. Looks at the file once a second at the most.
  std::shared_ptr<const TokenTable> Read();

 private:
  /// What tells a changed file from the same one.
  struct Stamp {
    int64_t seconds = 0;
    int64_t nanoseconds = 0;
    int64_t bytes = 0;
    uint64_t inode = 0;
    friend bool operator==(const Stamp& a, const Stamp& b) {
      return a.seconds == b.seconds && a.nanoseconds == b.nanoseconds && a.bytes == b.bytes &&
             a.inode == b.inode;
    }
  };

  TokenFile(std::string path, std::function<absl::Time()> now)
      : path_(std::move(path)), now_(std::move(now)) {}
  absl::StatusOr<Stamp> ReadStamp() const;
  absl::StatusOr<std::shared_ptr<const TokenTable>> Load() const;

  const std::string path_;
  const std::function<absl::Time()> now_;
  absl::Mutex mutex_;
  std::shared_ptr<const TokenTable> table_ ABSL_GUARDED_BY(mutex_);
  Stamp stamp_ ABSL_GUARDED_BY(mutex_);
  absl::Time looked_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ltx::server

#endif  // LTX_SERVER_AUTH_TOKEN_FILE_H_
