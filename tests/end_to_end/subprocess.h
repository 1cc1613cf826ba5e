#ifndef LTX_TESTS_END_TO_END_SUBPROCESS_H_
#define LTX_TESTS_END_TO_END_SUBPROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "tests/end_to_end/limit.h"

namespace ltx::testing {

/// How a program ended.
struct ExitResult {
  /// Exit status, or -1 if a signal ended it.
  int code = -1;
  /// The signal that ended it, else 0.
  int signal = 0;
};

/// A program of this test: its output goes to files in a folder of its own, and it does not outlive
/// the object.
class Subprocess {
 public:
  /// `arguments[0]` is the path of the program. INTERNAL if it cannot be started.
  static absl::StatusOr<std::unique_ptr<Subprocess>> Start(
      const std::vector<std::string>& arguments);
  /// Kills it, if it still runs, and reaps it. Fails the test if a sanitizer has reported something
  /// (builds with --config=asan or tsan).
  ~Subprocess();
  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;

  /// What it has written so far.
  std::string Out() const;
  std::string Err() const;

  /// DEADLINE_EXCEEDED, with what there is, if `text` does not appear in time; FAILED_PRECONDITION
  /// if the program ended without it.
  absl::Status WaitForOut(absl::string_view text, absl::Duration limit);
  absl::Status WaitForErr(absl::string_view text, absl::Duration limit);

  void Signal(int signal) const;
  /// Resident bytes; 0 once it has ended.
  int64_t ResidentBytes() const;
  bool running();
  /// Waits for the end. DEADLINE_EXCEEDED if it goes on longer than `limit`.
  absl::StatusOr<ExitResult> Wait(absl::Duration limit);

 private:
  Subprocess(pid_t pid, std::string folder);
  absl::Status WaitFor(const char* file, absl::string_view text, absl::Duration limit);
  std::string ReadFile(const char* name) const;

  const pid_t pid_;
  const std::string folder_;
  bool reaped_ = false;
  ExitResult result_;
};

/// A finished program.
struct ProgramResult {
  ExitResult exit;
  std::string out;
  std::string err;
  /// The last line of `err`, without its end.
  std::string LastErrorLine() const;
};

/// Runs a program to its end, or kills it after `limit` and fails the test.
ProgramResult RunProgram(const std::vector<std::string>& arguments, absl::Duration limit = kLimit);

/// A fresh empty folder below the test's temporary folder.
std::string MakeFolder();
/// Names of what a folder holds, sorted.
std::vector<std::string> ListFolder(const std::string& path);
/// The bytes of a file; fails the test if there is none.
std::string ReadWholeFile(const std::string& path);

}  // namespace ltx::testing

#endif  // LTX_TESTS_END_TO_END_SUBPROCESS_H_
