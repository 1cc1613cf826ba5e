#include "bench/command.h"

#include <fcntl.h>
#include <poll.h>
#include <regex.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>

#include "absl/memory/memory.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "kernels/status_macros.h"

namespace ltx::bench {
namespace {

constexpr absl::string_view kReadyLine = "listening on ";

}  // namespace

absl::StatusOr<std::vector<double>> SecondsInOutput(const std::string& output,
                                                    const std::string& pattern) {
  regex_t regex;
  if (const int error = regcomp(&regex, pattern.c_str(), REG_EXTENDED); error != 0) {
    std::array<char, 200> text = {};
    regerror(error, &regex, text.data(), text.size());
    return absl::InvalidArgumentError(absl::StrCat("pattern \"", pattern, "\": ", text.data()));
  }
  const std::unique_ptr<regex_t, decltype(&regfree)> release(&regex, &regfree);
  if (regex.re_nsub == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("pattern \"", pattern, "\" has no group (...) around the seconds"));
  }
  std::vector<double> seconds;
  std::array<regmatch_t, 2> match;
  const char* rest = output.c_str();
  while (regexec(&regex, rest, match.size(), match.data(), 0) == 0) {
    const std::string text =
        match[1].rm_so < 0 ? "" : std::string(rest + match[1].rm_so, rest + match[1].rm_eo);
    double value = 0;
    if (!absl::SimpleAtod(text, &value) || !(value > 0)) {
      return absl::InvalidArgumentError(absl::StrCat("pattern \"", pattern, "\" found \"", text,
                                                     "\", which is no number of seconds"));
    }
    seconds.push_back(value);
    rest += match[0].rm_eo;
  }
  if (seconds.empty()) {
    return absl::NotFoundError(
        absl::StrCat("pattern \"", pattern, "\" matches nothing in: ", output.substr(0, 500)));
  }
  return seconds;
}

absl::StatusOr<std::vector<double>> TimeCommand(const std::string& command,
                                                const std::string& pattern) {
  const absl::Time start = absl::Now();
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return absl::AbortedError(absl::StrCat("cannot start: ", command));
  std::string output;
  std::array<char, 4096> buffer;
  for (size_t count = 0; (count = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    output.append(buffer.data(), count);
  }
  const int status = pclose(pipe);
  const double wall = absl::ToDoubleSeconds(absl::Now() - start);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return absl::AbortedError(absl::StrCat("command failed (wait status ", status, "): ", command));
  }
  if (pattern.empty()) return std::vector<double>{wall};
  return SecondsInOutput(output, pattern);
}

absl::StatusOr<std::unique_ptr<ServerProcess>> ServerProcess::Start(const std::string& command,
                                                                    absl::Duration timeout) {
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return absl::AbortedError("no pipe for a server");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  // exec: the signal at the end must reach the server, not a shell before it.
  std::string script = absl::StrCat("exec ", command);
  std::string shell = "/bin/sh";
  std::string flag = "-c";
  const std::array<char*, 4> arguments = {shell.data(), flag.data(), script.data(), nullptr};
  const absl::Time start = absl::Now();
  pid_t pid = 0;
  const int error = posix_spawn(&pid, shell.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    return absl::AbortedError(absl::StrCat("cannot start: ", command));
  }
  auto server = absl::WrapUnique(new ServerProcess(pid, ends[0]));
  LTX_RETURN_IF_ERROR(server->AwaitAddress(start, start + timeout));
  return server;
}

absl::Status ServerProcess::AwaitAddress(absl::Time start, absl::Time deadline) {
  std::string output;
  std::array<char, 512> buffer;
  while (true) {
    const int64_t left = absl::ToInt64Milliseconds(deadline - absl::Now());
    if (left <= 0) return absl::DeadlineExceededError("the server is not ready in time");
    pollfd readable = {output_, POLLIN, 0};
    if (poll(&readable, 1, static_cast<int>(std::min<int64_t>(left, 1000))) <= 0) continue;
    const ssize_t count = read(output_, buffer.data(), buffer.size());
    if (count <= 0) return absl::AbortedError("the server ended before it was ready");
    output.append(buffer.data(), static_cast<size_t>(count));
    const size_t begin = output.find(std::string(kReadyLine));
    const size_t end = begin == std::string::npos ? begin : output.find('\n', begin);
    if (end == std::string::npos) continue;
    address_ = output.substr(begin + kReadyLine.size(), end - begin - kReadyLine.size());
    start_seconds_ = absl::ToDoubleSeconds(absl::Now() - start);
    return absl::OkStatus();
  }
}

ServerProcess::~ServerProcess() {
  kill(pid_, SIGTERM);
  int status = 0;
  waitpid(pid_, &status, 0);
  close(output_);
}

}  // namespace ltx::bench
