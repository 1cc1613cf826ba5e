#include "tests/end_to_end/server_process.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/status_macros.h"
#include "tests/end_to_end/limit.h"

namespace ltx::testing {

absl::StatusOr<std::unique_ptr<ServerProcess>> ServerProcess::StartModel(
    const std::string& model, const std::vector<std::string>& flags) {
  std::vector<std::string> arguments = {kServerProgram, "--listen",    "127.0.0.1:0", "--model",
                                        model,          "--log-level", "debug"};
  // Calibration would cost every start two seconds.
  if (std::find(flags.begin(), flags.end(), "--calibration-seconds") == flags.end()) {
    arguments.insert(arguments.end(), {"--calibration-seconds", "0"});
  }
  LTX_ASSIGN_OR_RETURN(std::unique_ptr<Subprocess> process,
                       Subprocess::Start(Join(std::move(arguments), flags)));
  const std::string announcement = "listening on ";
  LTX_RETURN_IF_ERROR(process->WaitForOut("\n", kLimit));
  const std::string out = process->Out();
  if (out.rfind(announcement, 0) != 0) {
    return absl::InternalError(absl::StrCat("unexpected output: ", out));
  }
  std::string address = out.substr(announcement.size(), out.find('\n') - announcement.size());
  return absl::WrapUnique(new ServerProcess(std::move(process), std::move(address)));
}

ServerProcess::ServerProcess(std::unique_ptr<Subprocess> process, std::string address)
    : process_(std::move(process)), address_(std::move(address)) {}

ServerProcess::~ServerProcess() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  // Leaks are looked for at the end of a program, and ending is where threads meet.
  process_->Signal(SIGTERM);
  const absl::StatusOr<ExitResult> exit = process_->Wait(kLimit);
  if (!exit.ok()) ADD_FAILURE() << exit.status();
#endif
}

std::vector<std::string> ServerProcess::ClientArguments(
    const std::string& command, const std::vector<std::string>& arguments) const {
  return Join({kClientProgram, command, "--server", address_}, arguments);
}

ProgramResult ServerProcess::Client(const std::string& command,
                                    const std::vector<std::string>& arguments) {
  return RunProgram(ClientArguments(command, arguments));
}

absl::StatusOr<std::unique_ptr<Subprocess>> ServerProcess::StartClient(
    const std::string& command, const std::vector<std::string>& arguments) {
  return Subprocess::Start(ClientArguments(command, arguments));
}

int ServerProcess::CountLogLines(const std::string& text) const {
  std::istringstream log(process_->Err());
  int count = 0;
  for (std::string line; std::getline(log, line);) {
    if (line.find(text) != std::string::npos) ++count;
  }
  return count;
}

std::vector<std::string> ClipFlags(int width, int height, int num_frames, int64_t seed,
                                   const std::string& recipe) {
  return {"--prompt",     "a red circle moves up, a low hum",
          "--width",      absl::StrCat(width),
          "--height",     absl::StrCat(height),
          "--num-frames", absl::StrCat(num_frames),
          "--seed",       absl::StrCat(seed),
          "--recipe",     recipe};
}

std::vector<std::string> SmallClipFlags(int64_t seed) { return ClipFlags(96, 96, 17, seed); }

std::vector<std::string> LongClipFlags(int64_t seed) { return ClipFlags(256, 256, 49, seed); }

std::vector<std::string> EndlessClipFlags(int64_t seed) { return ClipFlags(512, 512, 97, seed); }

std::string LargeModel() {
  const std::string folder = MakeFolder() + "/model";
  std::filesystem::copy(kTinyModel, folder, std::filesystem::copy_options::recursive);
  std::filesystem::remove(folder + "/model.json");
  std::ofstream(folder + "/model.json") << R"({"name": "large", "kind": "distilled"})";
  return folder;
}

std::vector<std::string> Join(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace ltx::testing
