#ifndef LTX_ENGINE_SAMPLING_EULER_LOOPS_H_
#define LTX_ENGINE_SAMPLING_EULER_LOOPS_H_

#include "engine/sampling/denoising_loop.h"

namespace ltx::sampling {

/// The first-order loops behind DenoisingLoop::Create (reference: utils/samplers.py).

class EulerLoop final : public DenoisingLoop {
 public:
  using DenoisingLoop::DenoisingLoop;

 private:
  absl::StatusOr<Tensor> Advance(Modality modality, const Estimates& estimates) override;
};

/// The ancestral and the CFG++ sampler.
class AncestralLoop final : public DenoisingLoop {
 public:
  using DenoisingLoop::DenoisingLoop;

 private:
  absl::StatusOr<Tensor> Advance(Modality modality, const Estimates& estimates) override;
};

class GradientEstimatingLoop final : public DenoisingLoop {
 public:
  using DenoisingLoop::DenoisingLoop;

 private:
  absl::StatusOr<Tensor> Advance(Modality modality, const Estimates& estimates) override;

  /// Of the step before, as the model gave it; undefined before the second step.
  PerModality<Tensor> velocity_;
};

}  // namespace ltx::sampling

#endif  // LTX_ENGINE_SAMPLING_EULER_LOOPS_H_
