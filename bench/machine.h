#ifndef LTX_BENCH_MACHINE_H_
#define LTX_BENCH_MACHINE_H_

#include <array>

#include "nlohmann/json.hpp"

namespace ltx::bench {

/// Runnable processes, averaged over 1, 5 and 15 minutes; zeros if the system does not tell.
std::array<double, 3> LoadAverage();

/// What a figure depends on besides the program: {"cpu", "cores", "memory_bytes"}.
nlohmann::json DescribeMachine();

/// How this program was compiled: {"version", "compiler", "optimized", "assertions"}.
nlohmann::json DescribeBuild();

}  // namespace ltx::bench

#endif  // LTX_BENCH_MACHINE_H_
