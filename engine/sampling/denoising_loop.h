#ifndef LTX_ENGINE_SAMPLING_DENOISING_LOOP_H_
#define LTX_ENGINE_SAMPLING_DENOISING_LOOP_H_

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/sampling/latent_state.h"
#include "engine/sampling/sampler.h"
#include "engine/stage_observer.h"
#include "kernels/device.h"

namespace ltx::sampling {

/// A joint evaluation of the model that a loop waits for.
struct Evaluation {
  /// From 0, over all evaluations of the loop.
  int index = 0;
  /// The step of the schedule that it belongs to.
  int step = 0;
  /// The second evaluation of a second-order step, at a level between two of the schedule.
  bool half_step = false;
  /// The noise level of the latents. Levels between two of the schedule are no f32 values.
  double sigma = 0.0;
  /// What the model is to denoise; undefined for an absent modality.
  PerModality<Tensor> latents;
};

/// What the model answers: denoised latents, of the shapes and dtypes of the evaluation's.
struct Estimates {
  PerModality<Tensor> denoised;
  /// The same for the negative prompt; the CFG++ sampler alone needs it.
  PerModality<Tensor> unconditioned;
};

/// Which draw of a loop is wanted.
struct LoopDraw {
  Modality modality = Modality::kVideo;
  /// From 0, over all draws of the loop.
  int index = 0;
  /// For the half step of a second-order sampler, which has a generator of its own.
  bool half_step = false;
};

/// Standard normals of the given shape and dtype. The res_2s sampler asks for f64, standardised as
/// StandardizeNoise() does.
using LoopNoise = std::function<absl::StatusOr<Tensor>(const LoopDraw&, const Shape&, DType)>;

/// The denoising of a stage as a sequence of model evaluations that somebody else makes, so that a
/// job may stop, yield or report between any two of them:
///
///   while (!loop->done()) {
///     LTX_ASSIGN_OR_RETURN(const Evaluation evaluation, loop->Next());
///     LTX_RETURN_IF_ERROR(loop->Accept(model(evaluation)));
///   }
///
/// Both modalities advance with the same noise levels. After an evaluation x0 becomes
/// x0 * mask + clean * (1 - mask), so that kept tokens stay. Noise is drawn for video before audio.
///  * euler: one evaluation a step.
///  * ancestral, CFG++: work in f32, pin the new latent in the same way after noise was added, draw
///    nothing in a step that ends at sigma 0, which takes x0.
///  * gradient estimation: likewise takes x0 in that step; draws nothing.
///  * res_2s: states in f64; draws for the half step and for the step, in every step. A schedule
///    that ends at 0 ends at 0.0011 instead, and one more evaluation there is the result.
class DenoisingLoop {
 public:
  struct Options {
    Sampler sampler;
    /// n steps have n + 1 values, not rising (for res_2s: falling); only the last may be 0.
    std::vector<float> sigmas;
    /// Needed by samplers that inject noise.
    LoopNoise noise;
    /// Stages "call<k>.<modality>.in" (latent handed to evaluation k) and "call<k>.<modality>.x0"
    /// (its prediction before the blend with clean).
    StageObserver observer;
  };

  /// `device` must outlive the loop. INVALID_ARGUMENT for sigmas that are no schedule or options
  /// out of range, or when no modality is present; FAILED_PRECONDITION if noise is needed and there
  /// is none.
  static absl::StatusOr<std::unique_ptr<DenoisingLoop>> Create(Device* device, Options options,
                                                               PerModality<LatentState> states);
  virtual ~DenoisingLoop() = default;
  DenoisingLoop(const DenoisingLoop&) = delete;
  DenoisingLoop& operator=(const DenoisingLoop&) = delete;

  /// How many evaluations a sampler makes over a schedule of `steps` steps that ends at 0 or not.
  static int EvaluationCount(const Sampler& sampler, int steps, bool ends_at_zero);

  int evaluations() const { return evaluations_; }
  int completed() const { return completed_; }
  bool done() const { return completed_ == evaluations_; }

  /// The evaluation that is due. FAILED_PRECONDITION if done.
  absl::StatusOr<Evaluation> Next() const;

  /// Advances with the answer to Next(). INTERNAL for an estimate that is missing or does not have
  /// its latent's shape and dtype, FAILED_PRECONDITION if done. After an error the loop is void.
  absl::Status Accept(const Estimates& estimates);

  /// What the next evaluation gets, or the result once done(); undefined for an absent modality.
  const Tensor& latent(Modality modality) const { return states_[modality].latent; }

 protected:
  DenoisingLoop(Device* device, Options options, PerModality<LatentState> states);

  /// Step, half_step and sigma of evaluation `completed()`.
  virtual Evaluation Position() const;
  /// The next latent of one modality, in the latent's dtype. Called for video, then audio.
  virtual absl::StatusOr<Tensor> Advance(Modality modality, const Estimates& estimates) = 0;

  Device& device() const { return *device_; }
  const Sampler& sampler() const { return options_.sampler; }
  const std::vector<float>& sigmas() const { return options_.sigmas; }
  const LatentState& state(Modality modality) const { return states_[modality]; }
  absl::StatusOr<Tensor> DrawNoise(Modality modality, DType dtype, bool half_step = false);
  /// `x` pulled to the clean latent by the mask.
  absl::StatusOr<Tensor> Pinned(Modality modality, const Tensor& x) const;

 private:
  absl::Status CheckEstimate(Modality modality, const Tensor& estimate,
                             absl::string_view what) const;
  void Observe(Modality modality, absl::string_view what, const Tensor& x) const;

  Device* const device_;
  const Options options_;
  const int evaluations_;
  PerModality<LatentState> states_;
  int completed_ = 0;
  int draws_ = 0;
};

}  // namespace ltx::sampling

#endif  // LTX_ENGINE_SAMPLING_DENOISING_LOOP_H_
