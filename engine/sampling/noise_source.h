#ifndef LTX_ENGINE_SAMPLING_NOISE_SOURCE_H_
#define LTX_ENGINE_SAMPLING_NOISE_SOURCE_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "engine/sampling/latent_state.h"
#include "engine/sampling/normal_generator.h"
#include "kernels/device.h"

namespace ltx::sampling {

/// Which draw of a run is wanted.
struct NoiseDraw {
  enum class Use : uint8_t {
    kInitial,  ///< The starting point of a stage.
    kLoop,     ///< Inside the denoising loop.
    kDecode,   ///< By the video decoder.
  };
  Use use = Use::kInitial;
  /// From 1.
  int stage = 1;
  Modality modality = Modality::kVideo;
  /// From 0: position among the draws of this use and stage, both modalities counted.
  int index = 0;
};

/// Where the standard normals of a run come from. Draws are asked for in the order in which a
/// generator must make them.
class NoiseSource {
 public:
  virtual ~NoiseSource() = default;
  /// A tensor of `shape` and `dtype` on `device`.
  virtual absl::StatusOr<Tensor> Draw(Device& device, const NoiseDraw& draw, const Shape& shape,
                                      DType dtype) = 0;
};

/// Draws from seeded generators: one stream for the starting points and the decoder, and one of
/// their own for each stage's loop.
class GeneratedNoise final : public NoiseSource {
 public:
  using MakeGenerator = std::function<std::unique_ptr<NormalGenerator>(uint64_t seed)>;

  /// Noise is drawn in `dtype`, then converted to what is asked for. `loop_seed` starts the stream
  /// of each stage's loop.
  GeneratedNoise(MakeGenerator make, uint64_t seed, uint64_t loop_seed, DType dtype);

  absl::StatusOr<Tensor> Draw(Device& device, const NoiseDraw& draw, const Shape& shape,
                              DType dtype) override;

 private:
  const MakeGenerator make_;
  const uint64_t loop_seed_;
  const DType dtype_;
  const std::unique_ptr<NormalGenerator> main_;
  std::unique_ptr<NormalGenerator> loop_;
  int loop_stage_ = 0;
};

}  // namespace ltx::sampling

#endif  // LTX_ENGINE_SAMPLING_NOISE_SOURCE_H_
