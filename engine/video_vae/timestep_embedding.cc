#include "engine/video_vae/timestep_embedding.h"

#include <cmath>

#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::video_vae {

std::vector<float> SinusoidalEmbedding(float timestep) {
  constexpr int64_t kHalf = kSinusoidWidth / 2;
  // The lowest frequency is about 1 / kMaxPeriod.
  constexpr float kMaxPeriod = 10000.0f;
  std::vector<float> values(kSinusoidWidth);
  for (int64_t i = 0; i < kHalf; ++i) {
    const float exponent = -std::log(kMaxPeriod) * static_cast<float>(i) / kHalf;
    const float angle = timestep * std::exp(exponent);
    values[i] = std::cos(angle);
    values[kHalf + i] = std::sin(angle);
  }
  return values;
}

absl::StatusOr<TimestepEmbedder> TimestepEmbedder::Load(checkpoint::WeightLoader loader,
                                                        int64_t width) {
  TimestepEmbedder embedder;
  embedder.dtype_ = loader.compute_dtype();
  LTX_ASSIGN_OR_RETURN(embedder.linear_1_, loader.Linear("linear_1", kSinusoidWidth, width));
  LTX_ASSIGN_OR_RETURN(embedder.linear_2_, loader.Linear("linear_2", width, width));
  return embedder;
}

absl::StatusOr<Tensor> TimestepEmbedder::Forward(Device& device, float timestep) const {
  LTX_ASSIGN_OR_RETURN(
      const Tensor sinusoids,
      TensorFromFloats(device, SinusoidalEmbedding(timestep), Shape({1, kSinusoidWidth}), dtype_));
  LinearOptions options;
  options.activation = Activation::kSilu;
  LTX_ASSIGN_OR_RETURN(const Tensor hidden, device.Linear(sinusoids, linear_1_, options));
  return device.Linear(hidden, linear_2_);
}

absl::StatusOr<Tensor> AddTable(Device& device, const Tensor& embedding, const Tensor& table) {
  return device.ScaleShiftChannels(embedding, Tensor(), table);
}

absl::StatusOr<Tensor> ModulateVolume(Device& device, const Tensor& x, const Tensor& rows,
                                      int64_t shift_offset, int64_t scale_offset,
                                      Activation activation) {
  const int64_t channels = x.dim(-1);
  LTX_ASSIGN_OR_RETURN(const Tensor tokens,
                       x.Reshape(Shape({x.dim(0), x.dim(1) * x.dim(2) * x.dim(3), channels})));
  RowVectors shift;
  shift.rows = rows;
  shift.offset = shift_offset;
  RowVectors scale;
  scale.rows = rows;
  scale.offset = scale_offset;
  LTX_ASSIGN_OR_RETURN(const Tensor result, device.Modulate(tokens, scale, shift, activation));
  return result.Reshape(x.shape());
}

}  // namespace ltx::video_vae
