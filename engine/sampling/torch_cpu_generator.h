#ifndef LTX_ENGINE_SAMPLING_TORCH_CPU_GENERATOR_H_
#define LTX_ENGINE_SAMPLING_TORCH_CPU_GENERATOR_H_

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "engine/sampling/normal_generator.h"

namespace ltx::sampling {

/// The normal deviates of PyTorch's CPU generator, to the bit, as its x86-64 build makes them on an
/// AVX2 machine: the Mersenne Twister, Box-Muller in blocks of 16 for draws of 16 and more, and
/// pairs in double for smaller ones. Strictly serial and the same on every machine.
///
/// The dtype changes which bits of the stream are used: bfloat16 draws are not rounded float32
/// draws.
class TorchCpuGenerator final : public NormalGenerator {
 public:
  /// Only the low 32 bits of the seed count, as in PyTorch.
  explicit TorchCpuGenerator(uint64_t seed);

  absl::StatusOr<std::vector<float>> Draw(int64_t count, DType dtype) override;
  absl::StatusOr<std::vector<double>> DrawDoubles(int64_t count) override;

 private:
  double NextSmall();

  std::mt19937 engine_;
  /// The second value of a pair whose first one ended a small draw: it starts the next small draw,
  /// whatever large draws lie between.
  std::optional<double> pending_;
};

}  // namespace ltx::sampling

#endif  // LTX_ENGINE_SAMPLING_TORCH_CPU_GENERATOR_H_
