#include "bench/random_file.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "absl/strings/match.h"

namespace ltx::bench {
namespace {

/// Tensors of a shared buffer begin at multiples of this many elements, a prime number of pages
/// apart, so that no two layers are alike.
constexpr int64_t kStep = int64_t{2048} * 7;
constexpr int64_t kSteps = 31;

struct Distribution {
  /// Values lie in centre +- 2^exponent.
  int exponent;
  bool around_one;
};

Distribution DistributionOf(const std::string& name, const Shape& shape) {
  if (shape.rank() >= 2 && absl::EndsWith(name, ".weight")) {
    const double fan_in = static_cast<double>(shape.num_elements()) / shape.dim(0);
    return {static_cast<int>(std::lround(std::log2(std::sqrt(3.0 / fan_in)))), false};
  }
  return {-4, absl::EndsWith(name, "norm.weight")};
}

std::vector<BFloat16> Fill(int64_t count, const Distribution& distribution, uint32_t seed) {
  // Threads at fixed seeds would buy little: a gigabyte takes a few seconds.
  std::minstd_rand generator(seed);
  const float spread = std::ldexp(1.0f, distribution.exponent);
  const float centre = distribution.around_one ? 1.0f : 0.0f;
  std::vector<BFloat16> values(count);
  for (BFloat16& value : values) {
    const float unit = static_cast<float>(generator()) * (2.0f / std::minstd_rand::max()) - 1.0f;
    value = BFloat16(centre + spread * unit);
  }
  return values;
}

}  // namespace

RandomFile::RandomFile(const std::map<std::string, Shape>& shapes) {
  path_ = "random weights";
  std::map<std::pair<int, bool>, int64_t> largest;
  for (const auto& [name, shape] : shapes) {
    const Distribution distribution = DistributionOf(name, shape);
    int64_t& size = largest[{distribution.exponent, distribution.around_one}];
    size = std::max(size, shape.num_elements());
  }
  uint32_t seed = 1;
  for (const auto& [key, size] : largest) {
    buffers_[key] = Fill(size + kSteps * kStep, {key.first, key.second}, seed++);
  }
  int64_t step = 0;
  for (const auto& [name, shape] : shapes) {
    const Distribution distribution = DistributionOf(name, shape);
    const auto& buffer = buffers_[{distribution.exponent, distribution.around_one}];
    const auto* const first = reinterpret_cast<const uint8_t*>(buffer.data() + step * kStep);
    step = (step + 1) % kSteps;
    const int64_t bytes = shape.num_elements() * SizeOf(DType::kBF16);
    entries_[name] = {DType::kBF16, shape, absl::MakeConstSpan(first, bytes)};
    tensor_bytes_ += bytes;
  }
  file_bytes_ = tensor_bytes_;
}

}  // namespace ltx::bench
