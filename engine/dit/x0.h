#ifndef LTX_ENGINE_DIT_X0_H_
#define LTX_ENGINE_DIT_X0_H_

#include "absl/status/statusor.h"
#include "engine/dit/modality.h"
#include "engine/dit/perturbations.h"
#include "engine/dit/transformer.h"
#include "engine/stage_observer.h"

namespace ltx::dit {

/// A transformer's prediction in both forms.
struct Prediction {
  StreamPair velocity;
  /// latent - velocity * timestep per token, in f32 with one rounding. A token whose timestep is
  /// zero keeps its latent to the bit.
  StreamPair denoised;
};

/// One evaluation turned into denoised latents (reference: model.py, X0Model). Arguments and errors
/// are those of Transformer::Forward.
absl::StatusOr<Prediction> PredictDenoised(const Transformer& transformer, const Modality* video,
                                           const Modality* audio,
                                           const BatchPerturbations& perturbations = {},
                                           const StageObserver& observer = nullptr);

}  // namespace ltx::dit

#endif  // LTX_ENGINE_DIT_X0_H_
