#ifndef LTX_TESTS_END_TO_END_SERVER_PROCESS_H_
#define LTX_TESTS_END_TO_END_SERVER_PROCESS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/end_to_end/subprocess.h"

namespace ltx::testing {

/// The programs under test, relative to the runfiles.
inline constexpr char kServerProgram[] = "server/ltx_server";
inline constexpr char kClientProgram[] = "client/ltx";
inline constexpr char kTinyModel[] = "models/ltx-tiny";

/// A real ltx_server with ltx-tiny on a port of its own.
class ServerProcess {
 public:
  /// `flags` are added to --listen, --model and --log-level=debug. Waits until it listens.
  static absl::StatusOr<std::unique_ptr<ServerProcess>> Start(
      const std::vector<std::string>& flags = {}) {
    return StartModel(kTinyModel, flags);
  }
  /// The same with another model folder.
  static absl::StatusOr<std::unique_ptr<ServerProcess>> StartModel(
      const std::string& model, const std::vector<std::string>& flags = {});

  /// Kills the server, if it still runs; under a sanitizer lets it end by itself.
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  /// HOST:PORT.
  const std::string& address() const { return address_; }
  Subprocess& process() { return *process_; }

  /// Runs the client program: "ltx COMMAND --server ADDRESS arguments...".
  ProgramResult Client(const std::string& command, const std::vector<std::string>& arguments);
  absl::StatusOr<std::unique_ptr<Subprocess>> StartClient(
      const std::string& command, const std::vector<std::string>& arguments);

  /// Lines of the log that hold `text`.
  int CountLogLines(const std::string& text) const;

 private:
  ServerProcess(std::unique_ptr<Subprocess> process, std::string address);
  std::vector<std::string> ClientArguments(const std::string& command,
                                           const std::vector<std::string>& arguments) const;

  const std::unique_ptr<Subprocess> process_;
  const std::string address_;
};

/// Flags of `ltx generate` for a clip of these pixels and frames.
std::vector<std::string> ClipFlags(int width, int height, int num_frames, int64_t seed,
                                   const std::string& recipe = "distilled_one_stage");
/// The cheapest clip: 96x96 pixels, 17 frames, one stage.
std::vector<std::string> SmallClipFlags(int64_t seed);
/// A second of work: 256x256 pixels, 49 frames.
std::vector<std::string> LongClipFlags(int64_t seed);
/// So much work that the job still runs whatever a test does first: 512x512 pixels, 97 frames. For
/// jobs that the test cancels, on a server of LargeModel().
std::vector<std::string> EndlessClipFlags(int64_t seed);

/// ltx-tiny without its limits of size and length, in a folder of its own.
std::string LargeModel();

/// The one string list after another.
std::vector<std::string> Join(std::vector<std::string> a, const std::vector<std::string>& b);

}  // namespace ltx::testing

#endif  // LTX_TESTS_END_TO_END_SERVER_PROCESS_H_
