#include "bench/machine.h"

#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "proto/ltx/version.h"

namespace ltx::bench {
namespace {

std::string ProcessorName() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const size_t colon = line.find(": ");
    if (colon != std::string::npos && line.compare(0, 10, "model name") == 0) {
      return line.substr(colon + 2);
    }
  }
  return "unknown";
}

/// Cores that this process, and so a command that it starts, may use.
int Cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  return sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 0;
}

}  // namespace

std::array<double, 3> LoadAverage() {
  std::array<double, 3> load = {};
  if (getloadavg(load.data(), 3) != 3) load = {};
  return load;
}

nlohmann::json DescribeMachine() {
  return {{"cpu", ProcessorName()},
          {"cores", Cores()},
          {"memory_bytes", int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE)}};
}

nlohmann::json DescribeBuild() {
#ifdef __OPTIMIZE__
  constexpr bool kOptimized = true;
#else
  constexpr bool kOptimized = false;
#endif
#ifdef NDEBUG
  constexpr bool kAssertions = false;
#else
  constexpr bool kAssertions = true;
#endif
  return {{"version", kVersion},
          {"compiler", __VERSION__},
          {"optimized", kOptimized},
          {"assertions", kAssertions}};
}

}  // namespace ltx::bench
