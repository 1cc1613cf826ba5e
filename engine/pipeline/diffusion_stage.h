#ifndef LTX_ENGINE_PIPELINE_DIFFUSION_STAGE_H_
#define LTX_ENGINE_PIPELINE_DIFFUSION_STAGE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/dit/transformer.h"
#include "engine/pipeline/job_options.h"
#include "engine/pipeline/stage_spec.h"
#include "engine/sampling/denoising_loop.h"
#include "engine/sampling/noise_source.h"

namespace ltx::pipeline {

/// A joint audio-video denoising stage of an unguided recipe: states, noise, then one model
/// evaluation a step (reference: utils/blocks.py:DiffusionStage).
class DiffusionStage {
 public:
  /// Draws the starting noise (video, then audio) and prepares positions and masks. The transformer
  /// and the noise source must outlive the stage. Latents have the transformer's dtype.
  static absl::StatusOr<std::unique_ptr<DiffusionStage>> Start(const dit::Transformer* transformer,
                                                               const StageSpec& spec,
                                                               const text::PromptContexts& contexts,
                                                               sampling::NoiseSource* noise,
                                                               const StageObserver& observer);

  int steps() const { return loop_->evaluations(); }
  bool done() const { return loop_->done(); }

  /// Runs the next step. INTERNAL (NONFINITE_OUTPUT) naming stage, step and modality if a latent
  /// became NaN or infinite.
  absl::Status Step();

  /// The current latent, [1, T, C].
  const Tensor& latent(sampling::Modality modality) const { return loop_->latent(modality); }

 private:
  DiffusionStage(const dit::Transformer* transformer, int number, StageObserver observer)
      : transformer_(transformer), number_(number), observer_(std::move(observer)) {}

  absl::StatusOr<sampling::LatentState> StartState(sampling::Modality modality,
                                                   const StageSpec& spec,
                                                   sampling::NoiseSource* noise) const;
  absl::Status PrepareStream(sampling::Modality modality, const StageSpec& spec,
                             const text::PromptContexts& contexts,
                             const sampling::LatentState& state);
  absl::StatusOr<sampling::Estimates> Denoise(const sampling::Evaluation& evaluation) const;
  void Observe(const std::string& name, const Tensor& x) const;

  /// What stays fixed over the steps.
  struct Stream {
    dit::Modality input;
    std::vector<float> mask;
  };

  const dit::Transformer* const transformer_;
  const int number_;
  const StageObserver observer_;
  sampling::PerModality<Stream> streams_;
  std::unique_ptr<sampling::DenoisingLoop> loop_;
};

}  // namespace ltx::pipeline

#endif  // LTX_ENGINE_PIPELINE_DIFFUSION_STAGE_H_
