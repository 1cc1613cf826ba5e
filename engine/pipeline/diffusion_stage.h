#ifndef LTX_ENGINE_PIPELINE_DIFFUSION_STAGE_H_
#define LTX_ENGINE_PIPELINE_DIFFUSION_STAGE_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/dit/transformer.h"
#include "engine/pipeline/guided_denoiser.h"
#include "engine/pipeline/job_options.h"
#include "engine/pipeline/stage_spec.h"
#include "engine/sampling/denoising_loop.h"
#include "engine/sampling/noise_source.h"

namespace ltx::pipeline {

/// A denoising stage of the modalities that are present: states and noise, then one forward of the
/// transformer after the other. An evaluation of the sampler is one forward, or with guidance one
/// for each pass unless they are batched (reference: utils/blocks.py:DiffusionStage,
/// utils/denoisers.py).
class DiffusionStage {
 public:
  /// Draws the starting noise (video, then audio) and prepares positions and masks. The transformer
  /// and the noise source must outlive the stage. Latents have the transformer's dtype.
  /// INVALID_ARGUMENT if guidance uses negative contexts and `negative` has none.
  static absl::StatusOr<std::unique_ptr<DiffusionStage>> Start(const dit::Transformer* transformer,
                                                               const StageSpec& spec,
                                                               const text::PromptContexts& contexts,
                                                               const text::PromptContexts& negative,
                                                               sampling::NoiseSource* noise,
                                                               const StageObserver& observer);

  bool done() const { return loop_->done(); }

  /// Runs the next forward and, if it was the last of its evaluation, the sampler's step. INTERNAL
  /// (NONFINITE_OUTPUT) naming stage, evaluation and modality if a latent became NaN or infinite.
  absl::Status Forward();

  /// Step and noise level of the current latents. FAILED_PRECONDITION if done.
  absl::StatusOr<sampling::Evaluation> Next() const { return loop_->Next(); }

  /// The current latent, [1, T, C]; undefined for an absent modality.
  const Tensor& latent(sampling::Modality modality) const { return loop_->latent(modality); }

 private:
  DiffusionStage(const dit::Transformer* transformer, StageSpec spec, StageObserver observer)
      : transformer_(transformer), spec_(std::move(spec)), observer_(std::move(observer)) {}

  /// `draw` counts the starting points drawn before.
  absl::StatusOr<sampling::LatentState> StartState(sampling::Modality modality, int draw,
                                                   sampling::NoiseSource* noise) const;
  absl::Status ReplaceFrames(sampling::LatentState* state) const;
  absl::Status PrepareStream(sampling::Modality modality, const text::PromptContexts& contexts,
                             const text::PromptContexts& negative,
                             const sampling::LatentState& state,
                             GuidedDenoiser::Stream* stream) const;
  absl::Status StartLoop(sampling::NoiseSource* noise,
                         sampling::PerModality<sampling::LatentState> states);
  absl::Status BeginEvaluation();
  absl::Status AcceptEvaluation();
  void Observe(const std::string& name, const Tensor& x) const;
  /// The stage's number goes before each name. Null without observer.
  StageObserver PrefixedObserver() const;

  const dit::Transformer* const transformer_;
  const StageSpec spec_;
  const StageObserver observer_;
  std::unique_ptr<GuidedDenoiser> denoiser_;
  std::unique_ptr<sampling::DenoisingLoop> loop_;
};

}  // namespace ltx::pipeline

#endif  // LTX_ENGINE_PIPELINE_DIFFUSION_STAGE_H_
