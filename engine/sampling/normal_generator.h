#ifndef LTX_ENGINE_SAMPLING_NORMAL_GENERATOR_H_
#define LTX_ENGINE_SAMPLING_NORMAL_GENERATOR_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/dtype.h"

namespace ltx::sampling {

/// A seeded stream of standard normal deviates that follows one of PyTorch's generators, so that a
/// seed means the same picture as in the reference. Calls continue where the last one stopped, and
/// their sizes are part of the stream: two draws of n are not one draw of 2n.
class NormalGenerator {
 public:
  virtual ~NormalGenerator() = default;

  /// What `torch.randn(count, dtype=dtype)` draws next, for kF32 or kBF16 (values representable in
  /// bfloat16). INVALID_ARGUMENT for another dtype, a negative count, or a tensor of 2^31 bytes or
  /// more, which PyTorch draws in several pieces.
  virtual absl::StatusOr<std::vector<float>> Draw(int64_t count, DType dtype) = 0;

  /// The same for float64.
  virtual absl::StatusOr<std::vector<double>> DrawDoubles(int64_t count) = 0;
};

/// The argument checks of Draw() and DrawDoubles().
absl::Status CheckDraw(int64_t count, DType dtype);

}  // namespace ltx::sampling

#endif  // LTX_ENGINE_SAMPLING_NORMAL_GENERATOR_H_
