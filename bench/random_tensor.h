#ifndef LTX_BENCH_RANDOM_TENSOR_H_
#define LTX_BENCH_RANDOM_TENSOR_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/device.h"

namespace ltx::bench {

/// Normal deviates, the same for a seed on every device, owned as activations.
absl::StatusOr<Tensor> RandomTensor(Device& device, const Shape& shape, DType dtype, uint32_t seed);

}  // namespace ltx::bench

#endif  // LTX_BENCH_RANDOM_TENSOR_H_
