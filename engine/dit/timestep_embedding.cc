#include "engine/dit/timestep_embedding.h"

#include <cmath>
#include <cstring>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::dit {
namespace {

/// Longest period of the sinusoids, the constant of the original transformer.
constexpr double kMaxPeriod = 10000.0;

}  // namespace

std::vector<float> TimestepSinusoid(absl::Span<const float> timesteps, int64_t channels) {
  const int64_t half = channels / 2;
  const float log_period = static_cast<float>(-std::log(kMaxPeriod));
  std::vector<float> frequencies(half);
  for (int64_t i = 0; i < half; ++i) {
    const float product = log_period * static_cast<float>(i);
    const float exponent = product / static_cast<float>(half);
    frequencies[i] = std::exp(exponent);
  }
  std::vector<float> sinusoid(timesteps.size() * channels, 0.0f);
  for (size_t t = 0; t < timesteps.size(); ++t) {
    float* const row = &sinusoid[t * channels];
    for (int64_t i = 0; i < half; ++i) {
      const float angle = timesteps[t] * frequencies[i];
      row[i] = std::cos(angle);
      row[half + i] = std::sin(angle);
    }
  }
  return sinusoid;
}

absl::StatusOr<Tensor> SinusoidTensor(Device& device, absl::Span<const float> timesteps,
                                      DType dtype, int64_t channels) {
  return TensorFromFloats(device, TimestepSinusoid(timesteps, channels),
                          {static_cast<int64_t>(timesteps.size()), channels}, dtype);
}

absl::StatusOr<UniqueTimesteps> GroupTimesteps(absl::Span<const float> timesteps, int64_t batch,
                                               int64_t tokens, absl::string_view name) {
  const int64_t count = static_cast<int64_t>(timesteps.size());
  if (count != batch * tokens && count != batch) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s holds %d values; %d (one per batch row) or %d (one per token) would be legal", name,
        count, batch, batch * tokens));
  }
  const int64_t tokens_per_value = count == batch * tokens ? 1 : tokens;
  UniqueTimesteps unique;
  std::unordered_map<uint32_t, int32_t> index_of;
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(timesteps[i])) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s[%d] is %g; it must be finite", name, i, timesteps[i]));
    }
    uint32_t bits;
    std::memcpy(&bits, &timesteps[i], sizeof(bits));
    const auto [entry, inserted] =
        index_of.emplace(bits, static_cast<int32_t>(unique.values.size()));
    if (inserted) unique.values.push_back(timesteps[i]);
    unique.index.insert(unique.index.end(), tokens_per_value, entry->second);
  }
  if (unique.values.size() <= 1) unique.index.clear();
  return unique;
}

absl::StatusOr<AdaLayerNormSingle> AdaLayerNormSingle::Load(checkpoint::WeightLoader loader,
                                                            int64_t width, int64_t rows,
                                                            int64_t sinusoid_channels) {
  AdaLayerNormSingle adaln;
  LTX_ASSIGN_OR_RETURN(adaln.linear_1_,
                       loader.Linear("emb.timestep_embedder.linear_1", sinusoid_channels, width));
  LTX_ASSIGN_OR_RETURN(adaln.linear_2_,
                       loader.Linear("emb.timestep_embedder.linear_2", width, width));
  LTX_ASSIGN_OR_RETURN(adaln.linear_, loader.Linear("linear", width, rows * width));
  return adaln;
}

absl::StatusOr<AdaLayerNormSingle::Result> AdaLayerNormSingle::Forward(
    Device& device, const Tensor& sinusoid) const {
  LinearOptions silu;
  silu.activation = Activation::kSilu;
  LTX_ASSIGN_OR_RETURN(const Tensor hidden, device.Linear(sinusoid, linear_1_, silu));
  Result result;
  LTX_ASSIGN_OR_RETURN(result.embedded, device.Linear(hidden, linear_2_));
  LTX_ASSIGN_OR_RETURN(const Tensor activated, device.Apply(result.embedded, Activation::kSilu));
  LTX_ASSIGN_OR_RETURN(result.modulation, device.Linear(activated, linear_));
  return result;
}

}  // namespace ltx::dit
