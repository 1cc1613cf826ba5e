#ifndef LTX_ENGINE_SAMPLING_TORCH_CUDA_GENERATOR_H_
#define LTX_ENGINE_SAMPLING_TORCH_CUDA_GENERATOR_H_

#include <array>
#include <cstdint>
#include <vector>

#include "engine/sampling/normal_generator.h"
#include "kernels/device.h"

namespace ltx::sampling {

/// The GPU a CUDA stream stands for. PyTorch sizes its launch by it, and draws above one full wave
/// of threads depend on that size. Defaults: H100 and H200.
struct CudaLaunchShape {
  int64_t multiprocessors = 132;
  int64_t threads_per_multiprocessor = 2048;
};

/// The normal deviates of PyTorch's CUDA generator: Philox4x32-10 keyed with the seed, one counter
/// per thread and round, Box-Muller as in cuRAND. The integers are exact. With a device that can
/// draw them (Device::can_draw_philox) the normals are too; else they are computed here with the
/// host's logarithm, sine and cosine and lie within about 1e-5 of a GPU's, whose fast intrinsics no
/// CPU has.
class TorchCudaGenerator final : public NormalGenerator {
 public:
  /// `device` may be null; else it must outlive the generator.
  explicit TorchCudaGenerator(uint64_t seed, const CudaLaunchShape& shape = {},
                              Device* device = nullptr);

  /// bfloat16 draws are rounded float32 draws.
  absl::StatusOr<std::vector<float>> Draw(int64_t count, DType dtype) override;
  absl::StatusOr<std::vector<double>> DrawDoubles(int64_t count) override;

  /// How far the stream has advanced; a multiple of four.
  uint64_t offset() const { return offset_; }
  const CudaLaunchShape& shape() const { return shape_; }

  /// The four words that thread `thread` of a draw starting at `offset` gets in round `round`.
  std::array<uint32_t, 4> Words(uint64_t offset, uint64_t thread, uint64_t round) const;

 private:
  /// How PyTorch launches a draw of `count`, and how often each thread draws.
  struct Launch {
    int64_t threads;
    int64_t rounds;
  };
  Launch LaunchFor(int64_t count, int values_per_counter) const;
  template <typename Value, int kPerCounter, typename Transform>
  std::vector<Value> DrawOnHost(int64_t count, const Launch& launch, const Transform& transform);
  template <typename Value>
  absl::StatusOr<std::vector<Value>> DrawOnDevice(int64_t count, DType dtype);

  const uint64_t seed_;
  const CudaLaunchShape shape_;
  Device* const device_;  // null: the host computes
  uint64_t offset_ = 0;
};

}  // namespace ltx::sampling

#endif  // LTX_ENGINE_SAMPLING_TORCH_CUDA_GENERATOR_H_
