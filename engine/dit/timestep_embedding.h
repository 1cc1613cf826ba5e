#ifndef LTX_ENGINE_DIT_TIMESTEP_EMBEDDING_H_
#define LTX_ENGINE_DIT_TIMESTEP_EMBEDDING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/checkpoint/weight_loader.h"
#include "kernels/device.h"

namespace ltx::dit {

/// Width of the sinusoid in front of every timestep MLP: fixed by the weights' layout, no config
/// key holds it.
inline constexpr int64_t kSinusoidChannels = 256;

/// [cos(t f_0), ..., cos(t f_{h-1}), sin(t f_0), ...] for each t, h = channels / 2,
/// f_i = exp((-ln 10000 * i) / h), row-major [timesteps, channels]. Product, quotient, exp and
/// angle each round to f32: angles reach 1000 rad, where a more exact exponent would show.
std::vector<float> TimestepSinusoid(absl::Span<const float> timesteps,
                                    int64_t channels = kSinusoidChannels);

/// TimestepSinusoid on the device, [timesteps, channels]; `timesteps` are already scaled
/// (sigma * 1000).
absl::StatusOr<Tensor> SinusoidTensor(Device& device, absl::Span<const float> timesteps,
                                      DType dtype, int64_t channels = kSinusoidChannels);

/// The distinct values among the timesteps of [batch, tokens], in order of first appearance, and
/// which of them each token has. Conditioning masks give a handful of values per step, so every
/// timestep MLP runs on those and not on every token.
struct UniqueTimesteps {
  std::vector<float> values;
  /// [batch * tokens]; empty if there is a single value.
  std::vector<int32_t> index;
};

/// `timesteps` holds one value per token, or one per batch row (which all its tokens share).
/// INVALID_ARGUMENT naming `name` for another length or a value that is not finite.
absl::StatusOr<UniqueTimesteps> GroupTimesteps(absl::Span<const float> timesteps, int64_t batch,
                                               int64_t tokens, absl::string_view name);

/// adaLN-single (PixArt-alpha, arXiv 2310.00426 section 2.3; reference: adaln.py): timesteps to
/// the shifts, scales and gates that all blocks share.
class AdaLayerNormSingle {
 public:
  struct Result {
    /// The embedded timestep [U, width].
    Tensor embedded;
    /// [U, rows * width], row-major as `rows` vectors.
    Tensor modulation;
  };

  AdaLayerNormSingle() = default;
  /// Reads emb.timestep_embedder.linear_1, .linear_2 and linear below the loader's prefix.
  static absl::StatusOr<AdaLayerNormSingle> Load(checkpoint::WeightLoader loader, int64_t width,
                                                 int64_t rows,
                                                 int64_t sinusoid_channels = kSinusoidChannels);

  bool defined() const { return linear_.defined(); }
  /// `sinusoid` [U, channels], from SinusoidTensor.
  absl::StatusOr<Result> Forward(Device& device, const Tensor& sinusoid) const;

 private:
  LinearWeight linear_1_;
  LinearWeight linear_2_;
  LinearWeight linear_;
};

}  // namespace ltx::dit

#endif  // LTX_ENGINE_DIT_TIMESTEP_EMBEDDING_H_
