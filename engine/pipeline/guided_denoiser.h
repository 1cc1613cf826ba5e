#ifndef LTX_ENGINE_PIPELINE_GUIDED_DENOISER_H_
#define LTX_ENGINE_PIPELINE_GUIDED_DENOISER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/dit/transformer.h"
#include "engine/sampling/denoising_loop.h"
#include "engine/sampling/guiders.h"
#include "engine/sampling/latent_state.h"
#include "engine/stage_observer.h"

namespace ltx::pipeline {

/// One prediction of a guided step.
enum class GuidancePass : uint8_t {
  kCond,       ///< The prompt, nothing left out.
  kUncond,     ///< The negative prompt.
  kPerturbed,  ///< The prompt, self-attention left out of some blocks.
  kIsolated,   ///< The prompt, attention between the modalities left out.
};

/// "cond", "uncond", "ptb", "mod".
absl::string_view GuidancePassName(GuidancePass pass);

/// The f32 noise level to hand to a model for one of a sampler. Half steps of second-order samplers
/// lie at levels that are no f32 values; the reference multiplies them by 1000 before it rounds,
/// and a unit of that product is a visible phase of the timestep embedding. This is the neighbour
/// of `sigma` whose product with 1000 comes closest to the reference's, which it equals unless the
/// product lies in the upper 2 % below a power of two, where f32 numbers around `sigma` are too far
/// apart.
float ModelLevel(double sigma);

/// The settings of both modalities that hold at one evaluation; null for an absent modality.
using GuidersAt = sampling::PerModality<const sampling::GuiderParams*>;

/// The passes of an evaluation, in the order of their rows (reference: denoisers.py:
/// _guided_denoise). A modality that keeps its last prediction asks for none; if all do, there is
/// no pass. `force_uncond` adds the pass for the negative prompt wherever there is any.
///
/// `step` is the evaluation's; half steps of second-order samplers never keep a prediction.
std::vector<GuidancePass> PassesAt(const GuidersAt& guiders, int step, bool half_step,
                                   bool force_uncond);

/// Predicts x0 with guidance: decides the passes of an evaluation, runs them through the
/// transformer as one batch or one after the other, and combines them for each modality with its
/// own settings. Both ways agree within rounding. Neutral settings make it a plain denoiser.
///
///   LTX_RETURN_IF_ERROR(denoiser->Begin(evaluation));
///   while (denoiser->pending() > 0) LTX_RETURN_IF_ERROR(denoiser->Forward());
///   LTX_ASSIGN_OR_RETURN(const sampling::Estimates estimates, denoiser->Finish());
class GuidedDenoiser {
 public:
  /// One modality of a stage.
  struct Stream {
    /// Null for an absent modality. Its batch must be 1: all passes share it.
    std::shared_ptr<const dit::PreparedStream> prepared;
    /// [tokens]: 1 generates a token, 0 keeps it. The token's timestep is mask * sigma.
    std::vector<float> mask;
    /// The stream is given, not generated: its noise level is 0 at every step.
    bool frozen = false;
    /// Text tokens [1, S, D] in the model's dtype. `negative` may be undefined if no setting asks
    /// for it.
    Tensor positive;
    Tensor negative;
    sampling::GuiderSchedule guider;
  };
  struct Options {
    /// All passes of an evaluation in one forward, [cond rows, uncond rows, ...]: reads the weights
    /// once and needs the activations of all passes at a time. Else one forward a pass.
    bool batch_passes = true;
    /// Predict for the negative prompt even if no setting asks for it, as the CFG++ sampler needs.
    bool force_uncond = false;
    /// Stages "call<k>.<modality>.<pass>" of evaluation k.
    StageObserver observer;
  };

  /// `transformer` must outlive the denoiser. INVALID_ARGUMENT naming what is wrong: no modality,
  /// settings out of range, a negative context that a setting needs and that is missing or has
  /// another shape, kept predictions together with force_uncond.
  static absl::StatusOr<std::unique_ptr<GuidedDenoiser>> Create(
      const dit::Transformer* transformer, sampling::PerModality<Stream> streams, Options options);

  /// Takes up an evaluation. FAILED_PRECONDITION if one is under way, INTERNAL if a modality is to
  /// keep a prediction that it never made.
  absl::Status Begin(const sampling::Evaluation& evaluation);
  /// Forwards of the evaluation that are still to run; 0 from the start if all modalities keep
  /// their last prediction.
  int pending() const { return static_cast<int>(groups_.size() - next_group_); }
  /// Runs the next forward. FAILED_PRECONDITION if none is pending.
  absl::Status Forward();
  /// What the sampler gets. FAILED_PRECONDITION while forwards are pending.
  absl::StatusOr<sampling::Estimates> Finish();

 private:
  GuidedDenoiser(const dit::Transformer* transformer, sampling::PerModality<Stream> streams,
                 Options options)
      : transformer_(transformer), streams_(std::move(streams)), options_(std::move(options)) {}

  absl::Status CheckStream(sampling::Modality modality) const;
  bool present(sampling::Modality modality) const { return streams_[modality].prepared != nullptr; }
  const sampling::GuiderParams& GuiderOf(sampling::Modality modality) const {
    return streams_[modality].guider.At(evaluation_.sigma);
  }
  bool Keeps(sampling::Modality modality) const;
  /// The input of one modality to a forward of these passes.
  absl::StatusOr<dit::Modality> InputOf(sampling::Modality modality,
                                        const std::vector<GuidancePass>& passes) const;
  dit::BatchPerturbations PerturbationsOf(const std::vector<GuidancePass>& passes,
                                          int64_t batch) const;

  const dit::Transformer* const transformer_;
  const sampling::PerModality<Stream> streams_;
  const Options options_;

  bool under_way_ = false;
  sampling::Evaluation evaluation_;
  /// Passes by forward.
  std::vector<std::vector<GuidancePass>> groups_;
  size_t next_group_ = 0;
  /// Predictions of the passes that have run, by GuidancePass.
  sampling::PerModality<std::array<Tensor, 4>> predictions_;
  sampling::PerModality<Tensor> last_;
};

}  // namespace ltx::pipeline

#endif  // LTX_ENGINE_PIPELINE_GUIDED_DENOISER_H_
