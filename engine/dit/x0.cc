#include "engine/dit/x0.h"

#include <vector>

#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::dit {
namespace {

absl::StatusOr<Tensor> Denoised(Device& device, const Modality& modality, const Tensor& velocity) {
  const int64_t batch = modality.latent.dim(0);
  const int64_t tokens = modality.latent.dim(1);
  std::vector<float> timesteps = modality.timesteps;
  if (static_cast<int64_t>(timesteps.size()) != batch * tokens) {
    timesteps.clear();
    for (const float timestep : modality.timesteps) {
      timesteps.insert(timesteps.end(), tokens, timestep);
    }
  }
  LTX_ASSIGN_OR_RETURN(const Tensor per_token,
                       TensorFromFloats(device, timesteps, {batch, tokens}));
  return device.VelocityToDenoised(modality.latent, velocity, per_token);
}

}  // namespace

absl::StatusOr<Prediction> PredictDenoised(const Transformer& transformer, const Modality* video,
                                           const Modality* audio,
                                           const BatchPerturbations& perturbations,
                                           const StageObserver& observer) {
  Prediction prediction;
  LTX_ASSIGN_OR_RETURN(prediction.velocity,
                       transformer.Forward(video, audio, perturbations, observer));
  if (video != nullptr) {
    LTX_ASSIGN_OR_RETURN(prediction.denoised.video,
                         Denoised(transformer.device(), *video, prediction.velocity.video));
  }
  if (audio != nullptr) {
    LTX_ASSIGN_OR_RETURN(prediction.denoised.audio,
                         Denoised(transformer.device(), *audio, prediction.velocity.audio));
  }
  return prediction;
}

}  // namespace ltx::dit
