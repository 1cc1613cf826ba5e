#ifndef LTX_ENGINE_SAMPLING_NOISE_SOURCE_H_
#define LTX_ENGINE_SAMPLING_NOISE_SOURCE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/sampling/latent_state.h"
#include "engine/sampling/normal_generator.h"
#include "kernels/device.h"

namespace ltx::sampling {

/// Which draw of a run is wanted.
struct NoiseDraw {
  enum class Use : uint8_t {
    kInitial,   ///< The starting point of a stage.
    kLoop,      ///< Inside the denoising loop.
    kHalfStep,  ///< Likewise, for the half step of a second-order sampler.
    kDecode,    ///< By the video decoder.
  };
  Use use = Use::kInitial;
  /// From 1.
  int stage = 1;
  Modality modality = Modality::kVideo;
  /// From 0: position among the draws of this use and stage, both modalities counted; half steps
  /// count with the rest of the loop.
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

/// Centres `values` and scales them to unit variance (unbiased): over all of them, then over each
/// of `rows` equal parts (reference: samplers.py:_get_new_noise). INVALID_ARGUMENT for parts of
/// fewer than 2 values or without variance.
absl::Status StandardizeNoise(int64_t rows, std::vector<double>* values);

/// Draws from seeded generators: one stream for the starting points and the decoder, and two of
/// their own for each stage's loop, whole and half steps.
class GeneratedNoise final : public NoiseSource {
 public:
  using MakeGenerator = std::function<std::unique_ptr<NormalGenerator>(uint64_t seed)>;

  /// How far the seed of half steps lies from that of whole ones (reference: samplers.py:
  /// res2s_audio_video_denoising_loop).
  static constexpr uint64_t kHalfStepSeedOffset = 10000;

  /// Noise is drawn in `dtype`, then converted to what is asked for; f64 is drawn as such and
  /// standardised, which is how the only sampler that asks for it wants it. `loop_seed` starts the
  /// stream of each stage's loop.
  GeneratedNoise(MakeGenerator make, uint64_t seed, uint64_t loop_seed, DType dtype);

  absl::StatusOr<Tensor> Draw(Device& device, const NoiseDraw& draw, const Shape& shape,
                              DType dtype) override;

 private:
  const MakeGenerator make_;
  const uint64_t loop_seed_;
  const DType dtype_;
  const std::unique_ptr<NormalGenerator> main_;
  /// A generator of a stage's loop, started at its first draw.
  struct LoopStream {
    std::unique_ptr<NormalGenerator> generator;
    int stage = 0;
  };
  NormalGenerator& LoopGenerator(const NoiseDraw& draw);

  LoopStream whole_steps_;
  LoopStream half_steps_;
};

}  // namespace ltx::sampling

#endif  // LTX_ENGINE_SAMPLING_NOISE_SOURCE_H_
