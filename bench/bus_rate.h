#ifndef LTX_BENCH_BUS_RATE_H_
#define LTX_BENCH_BUS_RATE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ltx::bench {

/// Bytes per second of large copies from pinned host memory to the device of this name ("cuda:N"):
/// the most that loading can reach. UNIMPLEMENTED for a device without a bus of its own, and in a
/// build without CUDA.
absl::StatusOr<double> MeasureBusRate(absl::string_view device);

}  // namespace ltx::bench

#endif  // LTX_BENCH_BUS_RATE_H_
