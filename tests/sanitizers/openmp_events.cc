// Tells ThreadSanitizer how the threads of an OpenMP region are ordered, which libgomp, built
// without it, does by futexes alone. GOMP_parallel is what `#pragma omp parallel` compiles to: all
// that the caller did before comes before the region's body on every thread, and the bodies come
// before all that the caller does next. Regions with barriers or locks of libgomp inside would need
// more than these two edges; kernels/cpu/parallel.h, the one place that opens regions, has none.

#include <sanitizer/tsan_interface.h>

#include "tests/sanitizers/next_function.h"

namespace {

/// One region, on the stack of the thread that opens it.
struct Region {
  void (*body)(void*);
  void* variables;
  /// Only their addresses count, as names of the two edges.
  char fork = 0;
  char join = 0;
};

void RunBody(void* argument) {
  auto* const region = static_cast<Region*>(argument);
  __tsan_acquire(&region->fork);
  region->body(region->variables);
  __tsan_release(&region->join);
}

ltx::testing::NextFunction<void(void (*)(void*), void*, unsigned, unsigned)> next_parallel(
    "GOMP_parallel");

}  // namespace

extern "C" void GOMP_parallel(void (*body)(void*), void* variables, unsigned num_threads,
                              unsigned flags) {
  Region region{body, variables};
  __tsan_release(&region.fork);
  next_parallel(RunBody, &region, num_threads, flags);
  __tsan_acquire(&region.join);
}
