#ifndef LTX_BENCH_COMMAND_H_
#define LTX_BENCH_COMMAND_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace ltx::bench {

/// Numbers that `pattern`, a POSIX extended regular expression, finds in `output`: its first group
/// at every match. INVALID_ARGUMENT for a bad pattern or one without a group, NOT_FOUND for no
/// match, INVALID_ARGUMENT for a match that is no positive number.
absl::StatusOr<std::vector<double>> SecondsInOutput(const std::string& output,
                                                    const std::string& pattern);

/// Runs a shell command to its end and gives the seconds it took: by SecondsInOutput of its
/// standard output, or by the clock if `pattern` is empty. ABORTED if it ends with a status
/// other than 0.
absl::StatusOr<std::vector<double>> TimeCommand(const std::string& command,
                                                const std::string& pattern);

/// A server that is a child of this process and ends with this object (SIGTERM).
class ServerProcess {
 public:
  /// Starts the shell command and waits until it prints "listening on HOST:PORT". ABORTED if it
  /// ends before, DEADLINE_EXCEEDED after `timeout`.
  static absl::StatusOr<std::unique_ptr<ServerProcess>> Start(const std::string& command,
                                                              absl::Duration timeout);
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  /// HOST:PORT.
  const std::string& address() const { return address_; }
  /// From the start of the process to its line.
  double start_seconds() const { return start_seconds_; }

 private:
  ServerProcess(pid_t pid, int output) : pid_(pid), output_(output) {}
  absl::Status AwaitAddress(absl::Time start, absl::Time deadline);

  const pid_t pid_;
  /// Read end of the child's standard output.
  const int output_;
  std::string address_;
  double start_seconds_ = 0;
};

}  // namespace ltx::bench

#endif  // LTX_BENCH_COMMAND_H_
