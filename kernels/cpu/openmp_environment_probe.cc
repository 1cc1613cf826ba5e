// Prints its arguments and, by libgomp itself, the settings that libgomp started with.

#include <omp.h>

#include <cstdio>

#include "kernels/cpu/openmp_environment.h"

int main(int argc, char** argv) {
  const absl::Status status = ltx::cpu::UsePassiveOpenMpThreads(argv);
  if (!status.ok()) {
    std::printf("%s\n", std::string(status.message()).c_str());
    return 1;
  }
  for (int i = 1; i < argc; ++i) std::printf("argument [%s]\n", argv[i]);
  std::fflush(stdout);
  omp_display_env(/*verbose=*/1);
  return 0;
}
