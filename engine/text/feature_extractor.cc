#include "engine/text/feature_extractor.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::text {
namespace {

using checkpoint::FeatureExtractorConfig;
using checkpoint::WeightLoader;

/// Of both forms, inside the square root (v2) and beside token count and range (v1).
constexpr float kEpsilon = 1e-6f;

/// A map of form v2. The reference scales its input, 188160 wide at full size, by
/// sqrt(out / hidden); here the weights are, once.
absl::StatusOr<LinearWeight> LoadScaled(WeightLoader& loader, const std::string& module, int64_t in,
                                        int64_t out, int64_t hidden) {
  Device& device = loader.device();
  LTX_ASSIGN_OR_RETURN(Tensor weight, loader.Get(module + ".weight", {out, in}));
  LTX_ASSIGN_OR_RETURN(const Tensor bias, loader.Get(module + ".bias", {out}));
  const double factor = std::sqrt(static_cast<double>(out) / static_cast<double>(hidden));
  LTX_ASSIGN_OR_RETURN(weight, device.Scale(weight, static_cast<float>(factor)));
  LTX_ASSIGN_OR_RETURN(weight, LinearOperand(device, weight, loader.owner()));
  return device.PrepareLinear(weight, bias, loader.owner());
}

}  // namespace

absl::StatusOr<FeatureExtractor> FeatureExtractor::Load(const FeatureExtractorConfig& config,
                                                        int64_t hidden_size, int64_t num_states,
                                                        const WeightLoader& loader) {
  FeatureExtractor extractor(config, hidden_size, num_states, &loader.device());
  WeightLoader own = loader.Sub("text_embedding_projection.");
  const int64_t width = hidden_size * num_states;
  if (config.form == FeatureExtractorConfig::Form::kV1) {
    LTX_ASSIGN_OR_RETURN(extractor.video_,
                         own.Linear("aggregate_embed", width, hidden_size, /*bias=*/false));
  } else {
    LTX_ASSIGN_OR_RETURN(extractor.video_, LoadScaled(own, "video_aggregate_embed", width,
                                                      config.video_width, hidden_size));
    LTX_ASSIGN_OR_RETURN(extractor.audio_, LoadScaled(own, "audio_aggregate_embed", width,
                                                      config.audio_width, hidden_size));
  }
  LTX_RETURN_IF_ERROR(own.CheckAllConsumed());
  return extractor;
}

absl::StatusOr<Tensor> FeatureExtractor::CenterAndScale(const Tensor& state) const {
  // The statistics run over a whole tensor, which no device operation does. This form is that of
  // one superseded model, so they are taken on the host.
  LTX_ASSIGN_OR_RETURN(const std::vector<float> values, ToFloats(*device_, state));
  if (values.empty()) return state;
  double sum = 0.0;
  for (const float value : values) sum += value;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const auto mean =
      static_cast<float>(sum / (static_cast<double>(values.size()) + double{kEpsilon}));
  const float range = *high - *low + kEpsilon;
  const auto width = static_cast<size_t>(hidden_size_);
  const Shape shape = {hidden_size_};
  LTX_ASSIGN_OR_RETURN(
      const Tensor means,
      TensorFromFloats(*device_, std::vector<float>(width, mean), shape, state.dtype()));
  LTX_ASSIGN_OR_RETURN(
      const Tensor ranges,
      TensorFromFloats(*device_, std::vector<float>(width, range / 8.0f), shape, state.dtype()));
  return device_->NormalizeChannels(state, means, ranges);
}

absl::StatusOr<Tensor> FeatureExtractor::Normalize(absl::Span<const Tensor> states) const {
  if (static_cast<int64_t>(states.size()) != num_states_) {
    return absl::InternalError(absl::StrCat("feature extractor: ", states.size(),
                                            " hidden states instead of ", num_states_));
  }
  if (config_.form != FeatureExtractorConfig::Form::kV1) {
    return device_->NormInterleave(states, kEpsilon);
  }
  std::vector<Tensor> normalized;
  for (const Tensor& state : states) {
    LTX_ASSIGN_OR_RETURN(Tensor part, CenterAndScale(state));
    normalized.push_back(std::move(part));
  }
  return device_->Interleave(normalized);
}

absl::StatusOr<FeatureExtractor::Features> FeatureExtractor::Project(
    const Tensor& normalized) const {
  Features features;
  LTX_ASSIGN_OR_RETURN(features.video, device_->Linear(normalized, video_));
  if (config_.form == FeatureExtractorConfig::Form::kV1) {
    features.audio = features.video;
    return features;
  }
  LTX_ASSIGN_OR_RETURN(features.audio, device_->Linear(normalized, audio_));
  return features;
}

absl::StatusOr<FeatureExtractor::Features> FeatureExtractor::Forward(
    absl::Span<const Tensor> states) const {
  LTX_ASSIGN_OR_RETURN(const Tensor normalized, Normalize(states));
  return Project(normalized);
}

}  // namespace ltx::text
