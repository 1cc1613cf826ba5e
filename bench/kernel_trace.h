#ifndef LTX_BENCH_KERNEL_TRACE_H_
#define LTX_BENCH_KERNEL_TRACE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace ltx::bench {

/// Where the time of a GPU goes, kernel by kernel.
class KernelTrace {
 public:
  struct Entry {
    std::string name;
    int64_t count = 0;
    double milliseconds = 0;
  };
  virtual ~KernelTrace() = default;
  /// Kernels since the start of the trace by name, the costliest first. Work must be finished.
  virtual absl::StatusOr<std::vector<Entry>> Finish() = 0;
};

/// One trace at a time. UNIMPLEMENTED in a build without CUDA, FAILED_PRECONDITION where CUPTI
/// (libcupti.so of the toolkit) is not to be had.
absl::StatusOr<std::unique_ptr<KernelTrace>> StartKernelTrace();

}  // namespace ltx::bench

#endif  // LTX_BENCH_KERNEL_TRACE_H_
