#include <cstdio>

#include "absl/status/statusor.h"
#include "kernels/cpu/openmp_environment.h"
#include "server/config.h"
#include "server/server.h"

int main(int argc, char** argv) {
  if (const absl::Status status = ltx::cpu::UsePassiveOpenMpThreads(argv); !status.ok()) {
    std::fprintf(stderr, "ltx_server: warning: %s\n", std::string(status.message()).c_str());
  }
  const absl::StatusOr<ltx::server::CommandLine> command_line =
      ltx::server::ParseCommandLine(argc, argv);
  if (!command_line.ok()) {
    std::fprintf(stderr, "ltx_server: %s\n", std::string(command_line.status().message()).c_str());
    return 2;
  }
  if (!command_line->print_and_exit.empty()) {
    std::fputs(command_line->print_and_exit.c_str(), stdout);
    return 0;
  }
  const absl::Status status = ltx::server::RunServer(command_line->config);
  if (status.ok()) return 0;
  std::fprintf(stderr, "ltx_server: %s\n", std::string(status.message()).c_str());
  return 1;
}
