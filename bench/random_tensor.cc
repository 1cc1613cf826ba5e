#include "bench/random_tensor.h"

#include <algorithm>
#include <random>
#include <vector>

#include "kernels/host_copy.h"

namespace ltx::bench {
namespace {

/// A million different values, repeated: enough for products not to notice. A prime.
constexpr int64_t kPeriod = 999983;

}  // namespace

absl::StatusOr<Tensor> RandomTensor(Device& device, const Shape& shape, DType dtype,
                                    uint32_t seed) {
  if (!device.holds_data()) return device.Allocate(shape, dtype, MemoryOwner::kActivations);
  std::minstd_rand generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> period(std::min<int64_t>(shape.num_elements(), kPeriod));
  for (float& value : period) value = normal(generator);
  std::vector<float> values(shape.num_elements());
  for (size_t i = 0; i < values.size(); ++i) values[i] = period[i % period.size()];
  return TensorFromFloats(device, values, shape, dtype);
}

}  // namespace ltx::bench
