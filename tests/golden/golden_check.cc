// Runs golden cases: golden_check [flags] PATH...
//
// Walks files and folders, computes every case with the engine's code, compares all outputs with
// the reference's values and ends with "N passed, N failed". The exit status is 0 only if at least
// one case ran and all passed.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/openmp_environment.h"
#include "kernels/device_factory.h"
#include "kernels/status_macros.h"
#include "tests/golden/golden_run.h"
#include "tests/golden/registered_components.h"

ABSL_FLAG(std::string, device, "cpu", "where the engine computes: auto, cpu, cuda or cuda:N");
ABSL_FLAG(std::string, dtype, "f32",
          "f32: each case in its own dtype; bf16: whole models in bf16, with bounds to match");
ABSL_FLAG(int, threads, 0, "threads of one operation; 0: one per core this process may use");
ABSL_FLAG(std::vector<std::string>, only, {},
          "components to run: whole dotted names, or a trailing \".*\"");
ABSL_FLAG(std::string, only_file, "", "a file of components to run, one a line, # comments");
ABSL_FLAG(std::string, models, "", "folder of the model sets that cases name (default: models)");

namespace ltx::golden {
namespace {

/// A path as the user meant it: `bazel run` starts the program elsewhere.
std::string FromUser(const std::string& path) {
  const char* const folder = std::getenv("BUILD_WORKING_DIRECTORY");
  return folder == nullptr ? path : (std::filesystem::path(folder) / path).string();
}

std::string ModelsDir() {
  if (!absl::GetFlag(FLAGS_models).empty()) return FromUser(absl::GetFlag(FLAGS_models));
  const char* const workspace = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  return workspace == nullptr ? "models" : (std::filesystem::path(workspace) / "models").string();
}

absl::StatusOr<RunOptions> ReadOptions(const std::vector<char*>& arguments) {
  RunOptions options;
  for (size_t i = 1; i < arguments.size(); ++i) options.paths.push_back(FromUser(arguments[i]));
  if (options.paths.empty()) {
    return absl::InvalidArgumentError("no files or folders given");
  }
  options.only = absl::GetFlag(FLAGS_only);
  if (const std::string list = absl::GetFlag(FLAGS_only_file); !list.empty()) {
    std::ifstream stream(FromUser(list));
    std::stringstream text;
    if (!stream || !(text << stream.rdbuf())) {
      return absl::InvalidArgumentError(absl::StrCat("--only_file ", list, ": cannot read"));
    }
    const std::vector<std::string> names = ParseComponentList(text.str());
    if (names.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("--only_file ", list, ": names nothing"));
    }
    options.only.insert(options.only.end(), names.begin(), names.end());
  }
  return options;
}

absl::StatusOr<std::unique_ptr<Device>> CreateDevice() {
  const int threads = absl::GetFlag(FLAGS_threads);
  if (threads < 0) {
    return absl::InvalidArgumentError(absl::StrCat("--threads is ", threads, ", legal from 0"));
  }
  LTX_ASSIGN_OR_RETURN(OpenedDevice opened, OpenDevice(absl::GetFlag(FLAGS_device), threads));
  if (!opened.why_cpu.empty()) std::cout << "on the CPU: " << opened.why_cpu << "\n";
  return std::move(opened.device);
}

absl::StatusOr<bool> Main(const std::vector<char*>& arguments) {
  LTX_ASSIGN_OR_RETURN(const RunOptions options, ReadOptions(arguments));
  LTX_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, CreateDevice());
  const std::string dtype = absl::GetFlag(FLAGS_dtype);
  if (dtype != "f32" && dtype != "bf16") {
    return absl::InvalidArgumentError(absl::StrCat("--dtype is ", dtype, ", legal are f32, bf16"));
  }
  const GoldenContext context{device.get(), ModelsDir(), dtype == "bf16"};
  LTX_ASSIGN_OR_RETURN(const RunSummary summary,
                       RunCases(options, RegisteredComponents(), context, std::cout));
  std::cout << summary.model_files << " model files, " << summary.filtered
            << " cases not selected\n"
            << summary.passed << " passed, " << summary.failed << " failed\n";
  return summary.failed == 0 && summary.passed > 0;
}

}  // namespace
}  // namespace ltx::golden

int main(int argc, char** argv) {
  if (const absl::Status status = ltx::cpu::UsePassiveOpenMpThreads(argv); !status.ok()) {
    std::cerr << "golden_check: warning: " << status.message() << "\n";
  }
  absl::SetProgramUsageMessage("golden_check [flags] PATH...");
  const std::vector<char*> arguments = absl::ParseCommandLine(argc, argv);
  const absl::StatusOr<bool> passed = ltx::golden::Main(arguments);
  if (!passed.ok()) {
    std::cerr << "golden_check: " << passed.status().message() << "\n";
    return 1;
  }
  return *passed ? 0 : 1;
}
