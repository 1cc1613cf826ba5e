#ifndef LTX_ENGINE_SAMPLING_RES2S_LOOP_H_
#define LTX_ENGINE_SAMPLING_RES2S_LOOP_H_

#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "engine/sampling/denoising_loop.h"
#include "engine/sampling/steppers.h"

namespace ltx::sampling {

/// The second-order loop behind DenoisingLoop::Create (reference: utils/samplers.py:
/// res2s_audio_video_denoising_loop). Between the two evaluations of a step it keeps the anchor,
/// the state from which both half steps start, in f64; the model sees states rounded to its dtype.
class Res2sLoop final : public DenoisingLoop {
 public:
  using DenoisingLoop::DenoisingLoop;

 private:
  Evaluation Position() const override;
  absl::StatusOr<Tensor> Advance(Modality modality, const Estimates& estimates) override;

  absl::StatusOr<Tensor> AdvanceHalf(Modality modality, const Tensor& x0);
  absl::StatusOr<Tensor> AdvanceWhole(Modality modality, const Tensor& x0);

  /// A tensor and how much of it the advanced state holds; the rest is the anchor.
  struct Part {
    Tensor x;
    double weight;
  };
  /// The advanced state, mixed with fresh noise and pinned if noise is uniform, in f64.
  absl::StatusOr<Tensor> Mixed(Modality modality, const Tensor& anchor,
                               absl::Span<const Part> parts, double sigma, double sigma_next,
                               double eta, bool half_step);
  /// One for all tokens, or one per token.
  std::vector<SdeMix> MixesOf(Modality modality, double sigma, double sigma_next, double eta) const;

  int step() const { return completed() / 2; }
  double Level() const { return sigmas()[step()]; }
  /// The level at the end of the step; what stands in for 0 after the last one.
  double NextLevel() const;
  /// ln(sigma / sigma_next).
  double StepSize() const;

  PerModality<Tensor> anchor_;
  /// The first prediction of the step.
  PerModality<Tensor> first_;
};

}  // namespace ltx::sampling

#endif  // LTX_ENGINE_SAMPLING_RES2S_LOOP_H_
