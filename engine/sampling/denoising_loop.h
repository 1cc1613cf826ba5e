#ifndef LTX_ENGINE_SAMPLING_DENOISING_LOOP_H_
#define LTX_ENGINE_SAMPLING_DENOISING_LOOP_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/sampling/latent_state.h"
#include "engine/stage_observer.h"
#include "kernels/device.h"

namespace ltx::sampling {

/// Which stepper advances the latents.
struct Sampler {
  enum class Kind : uint8_t {
    /// Deterministic first-order step along the velocity.
    kEuler,
    /// Euler to a lower noise level, then noise back up to the next one, preserving variance under
    /// alpha = 1 - sigma (reference: diffusion_steps.py:EulerAncestralDiffusionStep).
    kEulerAncestral,
  };
  Kind kind = Kind::kEuler;
  /// Ancestral only: 0 is a plain Euler step, 1 injects the full amount.
  float eta = 1.0f;
  /// Ancestral only: factor on the injected noise.
  float s_noise = 1.0f;

  /// "euler" or "euler_ancestral eta=1 s_noise=1".
  std::string ToString() const;
};

/// One joint evaluation of the model: the latents of the present modalities at `sigma` to their
/// denoised estimates x0, of the same shapes and dtypes.
using Denoiser = std::function<absl::StatusOr<PerModality<Tensor>>(
    const PerModality<Tensor>& latents, int step, float sigma)>;

/// Standard normals for draw `draw` (from 0, over all draws of the loop) of the given shape and
/// dtype.
using LoopNoise =
    std::function<absl::StatusOr<Tensor>(Modality modality, int draw, const Shape&, DType)>;

/// A denoising stage, step by step: both modalities advance with the same sigmas, and each step
/// makes one joint evaluation on the states before it.
///
/// After an evaluation x0 becomes x0 * mask + clean * (1 - mask), so that kept tokens stay. The
/// ancestral sampler works in f32, pins the new latent in the same way after it added noise, draws
/// video before audio, and draws nothing in a step that ends at sigma 0.
class DenoisingLoop {
 public:
  struct Options {
    Sampler sampler;
    /// n steps have n + 1 values, not rising; only the last may be 0.
    std::vector<float> sigmas;
    Denoiser denoiser;
    /// Needed by the ancestral sampler with eta > 0.
    LoopNoise noise;
    /// Stages "call<k>.<modality>.in" (latent handed to evaluation k) and "call<k>.<modality>.x0"
    /// (its prediction before the blend with clean).
    StageObserver observer;
  };

  /// `device` must outlive the loop. INVALID_ARGUMENT for sigmas that are no schedule, or when no
  /// modality is present.
  static absl::StatusOr<std::unique_ptr<DenoisingLoop>> Create(Device* device, Options options,
                                                               PerModality<LatentState> states);

  int steps() const { return static_cast<int>(options_.sigmas.size()) - 1; }
  int completed() const { return completed_; }
  bool done() const { return completed_ == steps(); }

  /// Runs the next step. FAILED_PRECONDITION if done.
  absl::Status Step();

  /// The current latent, undefined for an absent modality.
  const Tensor& latent(Modality modality) const { return states_[modality].latent; }

 private:
  DenoisingLoop(Device* device, Options options, PerModality<LatentState> states)
      : device_(device), options_(std::move(options)), states_(std::move(states)) {}

  absl::StatusOr<Tensor> EulerNext(const LatentState& state, const Tensor& denoised) const;
  absl::StatusOr<Tensor> AncestralNext(Modality modality, const Tensor& denoised);

  Device* const device_;
  const Options options_;
  PerModality<LatentState> states_;
  int completed_ = 0;
  int draws_ = 0;
};

}  // namespace ltx::sampling

#endif  // LTX_ENGINE_SAMPLING_DENOISING_LOOP_H_
