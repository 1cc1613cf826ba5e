#ifndef LTX_BENCH_LOAD_FILE_H_
#define LTX_BENCH_LOAD_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "nlohmann/json.hpp"

namespace ltx::bench {

/// Loads the transformer of a checkpoint file `repeat` times by the engine's own code, from opening
/// the file to the last byte on the device, with the file in the page cache. The first load also
/// gets the device's memory from its driver. Beside it the rate of the bus (bench/bus_rate.h),
/// where there is one. The errors of the loader.
absl::StatusOr<nlohmann::json> MeasureLoad(const std::string& path, Device& device, DType dtype,
                                           int repeat);

}  // namespace ltx::bench

#endif  // LTX_BENCH_LOAD_FILE_H_
