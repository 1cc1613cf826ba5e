#include "tests/end_to_end/subprocess.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace ltx::testing {
namespace {

/// Between two looks at a program: short against the units that tests time.
constexpr absl::Duration kPoll = absl::Milliseconds(5);

std::string Slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Subprocess>> Subprocess::Start(
    const std::vector<std::string>& arguments) {
  const std::string folder = MakeFolder();
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  constexpr int kCreate = O_CREAT | O_TRUNC | O_WRONLY;
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, (folder + "/out").c_str(), kCreate, 0600);
  posix_spawn_file_actions_addopen(&files, 2, (folder + "/err").c_str(), kCreate, 0600);
  // The child must see the signals that this process may have blocked.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, argv[0], &files, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    return absl::InternalError(
        absl::StrCat("cannot start ", arguments[0], ": ", std::strerror(error)));
  }
  return absl::WrapUnique(new Subprocess(pid, folder));
}

Subprocess::Subprocess(pid_t pid, std::string folder) : pid_(pid), folder_(std::move(folder)) {}

Subprocess::~Subprocess() {
  if (!reaped_) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  // The exit status of a killed program does not tell of it.
  const std::string err = Err();
  if (absl::StrContains(err, "Sanitizer: ")) ADD_FAILURE() << "a sanitizer's report:\n" << err;
}

std::string Subprocess::ReadFile(const char* name) const {
  return Slurp(absl::StrCat(folder_, "/", name));
}
std::string Subprocess::Out() const { return ReadFile("out"); }
std::string Subprocess::Err() const { return ReadFile("err"); }

absl::Status Subprocess::WaitForOut(absl::string_view text, absl::Duration limit) {
  return WaitFor("out", text, limit);
}
absl::Status Subprocess::WaitForErr(absl::string_view text, absl::Duration limit) {
  return WaitFor("err", text, limit);
}

absl::Status Subprocess::WaitFor(const char* file, absl::string_view text, absl::Duration limit) {
  const absl::Time deadline = absl::Now() + limit;
  while (true) {
    // Asked before reading: what an ended program wrote is all there then.
    const bool ended = !running();
    const std::string content = ReadFile(file);
    if (absl::StrContains(content, text)) return absl::OkStatus();
    const std::string missing = absl::StrCat("no \"", text, "\" in ", file, ": ", content);
    if (ended) return absl::FailedPreconditionError(missing + Err());
    if (absl::Now() > deadline) return absl::DeadlineExceededError(missing);
    absl::SleepFor(kPoll);
  }
}

void Subprocess::Signal(int signal) const {
  if (!reaped_) kill(pid_, signal);
}

int64_t Subprocess::ResidentBytes() const {
  std::ifstream file(absl::StrCat("/proc/", pid_, "/statm"));
  int64_t virtual_pages = 0;
  int64_t resident_pages = 0;
  file >> virtual_pages >> resident_pages;
  return resident_pages * sysconf(_SC_PAGESIZE);
}

bool Subprocess::running() {
  if (reaped_) return false;
  int state = 0;
  if (waitpid(pid_, &state, WNOHANG) != pid_) return true;
  reaped_ = true;
  if (WIFEXITED(state)) result_.code = WEXITSTATUS(state);
  if (WIFSIGNALED(state)) result_.signal = WTERMSIG(state);
  return false;
}

absl::StatusOr<ExitResult> Subprocess::Wait(absl::Duration limit) {
  const absl::Time deadline = absl::Now() + limit;
  while (running()) {
    if (absl::Now() > deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("still runs after ", absl::FormatDuration(limit), ": ", Err()));
    }
    absl::SleepFor(kPoll);
  }
  return result_;
}

std::string ProgramResult::LastErrorLine() const {
  const size_t end = err.find_last_not_of('\n');
  if (end == std::string::npos) return "";
  const size_t before = err.rfind('\n', end);
  const size_t begin = before == std::string::npos ? 0 : before + 1;
  return err.substr(begin, end + 1 - begin);
}

ProgramResult RunProgram(const std::vector<std::string>& arguments, absl::Duration limit) {
  ProgramResult result;
  const auto process = Subprocess::Start(arguments);
  if (!process.ok()) {
    ADD_FAILURE() << process.status();
    return result;
  }
  const auto exit = (*process)->Wait(limit);
  if (exit.ok()) {
    result.exit = *exit;
  } else {
    ADD_FAILURE() << arguments[0] << ": " << exit.status();
  }
  result.out = (*process)->Out();
  result.err = (*process)->Err();
  return result;
}

std::string MakeFolder() {
  std::string pattern = ::testing::TempDir() + "/ltx-XXXXXX";
  const char* const made = mkdtemp(pattern.data());
  EXPECT_NE(made, nullptr) << pattern;
  return pattern;
}

std::vector<std::string> ListFolder(const std::string& path) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string ReadWholeFile(const std::string& path) {
  EXPECT_TRUE(std::filesystem::is_regular_file(path)) << path;
  return Slurp(path);
}

}  // namespace ltx::testing
