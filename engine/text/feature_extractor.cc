#include "engine/text/feature_extractor.h"

#include <cmath>
#include <string>
#include <utility>

#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::text {
namespace {

using checkpoint::FeatureExtractorConfig;
using checkpoint::WeightLoader;

/// Stands for a weight [out, hidden size * states] of a file, whose columns have the state index
/// fastest, as an operand for FeatureRows, which have it slowest. Only the order in which a product
/// is summed changes.
absl::StatusOr<LinearWeight> PrepareStateMajor(const WeightLoader& loader, Tensor weight,
                                               const Tensor& bias, int64_t num_states) {
  Device& device = loader.device();
  const Shape shape = weight.shape();
  LTX_ASSIGN_OR_RETURN(weight,
                       weight.Reshape({shape.dim(0), shape.dim(1) / num_states, num_states}));
  LTX_ASSIGN_OR_RETURN(weight, device.Permute(weight, {0, 2, 1}));
  LTX_ASSIGN_OR_RETURN(weight, weight.Reshape(shape));
  LTX_ASSIGN_OR_RETURN(weight, LinearOperand(device, weight, loader.owner()));
  return device.PrepareLinear(weight, bias, loader.owner());
}

/// A map of form v2. The reference scales its input, 188160 wide at full size, by
/// sqrt(out / hidden); here the weights are, once.
absl::StatusOr<LinearWeight> LoadScaled(WeightLoader& loader, const std::string& module,
                                        int64_t hidden, int64_t num_states, int64_t out) {
  LTX_ASSIGN_OR_RETURN(Tensor weight, loader.Get(module + ".weight", {out, hidden * num_states}));
  LTX_ASSIGN_OR_RETURN(const Tensor bias, loader.Get(module + ".bias", {out}));
  const double factor = std::sqrt(static_cast<double>(out) / static_cast<double>(hidden));
  LTX_ASSIGN_OR_RETURN(weight, loader.device().Scale(weight, static_cast<float>(factor)));
  return PrepareStateMajor(loader, std::move(weight), bias, num_states);
}

}  // namespace

absl::StatusOr<FeatureExtractor> FeatureExtractor::Load(const FeatureExtractorConfig& config,
                                                        int64_t hidden_size, int64_t num_states,
                                                        const WeightLoader& loader) {
  FeatureExtractor extractor(config.form, num_states, &loader.device());
  WeightLoader own = loader.Sub("text_embedding_projection.");
  if (config.form == FeatureExtractorConfig::Form::kV1) {
    LTX_ASSIGN_OR_RETURN(
        Tensor weight, own.Get("aggregate_embed.weight", {hidden_size, hidden_size * num_states}));
    LTX_ASSIGN_OR_RETURN(extractor.video_,
                         PrepareStateMajor(own, std::move(weight), Tensor(), num_states));
  } else {
    LTX_ASSIGN_OR_RETURN(extractor.video_, LoadScaled(own, "video_aggregate_embed", hidden_size,
                                                      num_states, config.video_width));
    LTX_ASSIGN_OR_RETURN(extractor.audio_, LoadScaled(own, "audio_aggregate_embed", hidden_size,
                                                      num_states, config.audio_width));
  }
  LTX_RETURN_IF_ERROR(own.CheckAllConsumed());
  return extractor;
}

absl::StatusOr<FeatureExtractor::Features> FeatureExtractor::Project(const Tensor& rows) const {
  Features features;
  LTX_ASSIGN_OR_RETURN(features.video, device_->Linear(rows, video_));
  if (form_ == FeatureExtractorConfig::Form::kV1) {
    features.audio = features.video;
    return features;
  }
  LTX_ASSIGN_OR_RETURN(features.audio, device_->Linear(rows, audio_));
  return features;
}

}  // namespace ltx::text
