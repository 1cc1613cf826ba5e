#ifndef LTX_ENGINE_VIDEO_VAE_TIMESTEP_EMBEDDING_H_
#define LTX_ENGINE_VIDEO_VAE_TIMESTEP_EMBEDDING_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/weight_loader.h"
#include "kernels/device.h"

namespace ltx::video_vae {

/// Width of the sinusoidal embedding, a constant of the reference.
inline constexpr int64_t kSinusoidWidth = 256;

/// [cos(t f_0), ..., cos(t f_127), sin(t f_0), ...] with f_i = exp(-ln(10^4) i / 128), in float.
/// Source: the reference, transformer/timestep_embedding.py (flip_sin_to_cos, no frequency shift).
std::vector<float> SinusoidalEmbedding(float timestep);

/// linear_2(silu(linear_1(sinusoids(timestep)))).
class TimestepEmbedder {
 public:
  TimestepEmbedder() = default;

  /// Reads linear_1 [width, 256] and linear_2 [width, width], with biases, below the loader's
  /// prefix, which ends in "timestep_embedder.".
  static absl::StatusOr<TimestepEmbedder> Load(checkpoint::WeightLoader loader, int64_t width);

  /// [1, width] in the compute dtype.
  absl::StatusOr<Tensor> Forward(Device& device, float timestep) const;

 private:
  LinearWeight linear_1_;
  LinearWeight linear_2_;
  DType dtype_ = DType::kF32;
};

/// Shift and scale vectors of a conditioned layer: `table` [C] added to every row of
/// `embedding` [B, C], ready for Device::Modulate.
absl::StatusOr<Tensor> AddTable(Device& device, const Tensor& embedding, const Tensor& table);

/// activation(x (1 + scale) + shift) with the vectors found in `rows` [B or 1, W] at these offsets;
/// x [B, T, H, W, C].
absl::StatusOr<Tensor> ModulateVolume(Device& device, const Tensor& x, const Tensor& rows,
                                      int64_t shift_offset, int64_t scale_offset,
                                      Activation activation);

}  // namespace ltx::video_vae

#endif  // LTX_ENGINE_VIDEO_VAE_TIMESTEP_EMBEDDING_H_
