#ifndef LTX_ENGINE_SAMPLING_GUIDERS_H_
#define LTX_ENGINE_SAMPLING_GUIDERS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/device.h"

namespace ltx::sampling {

/// How predictions of a step's passes become the one that the sampler gets (reference:
/// components/guiders.py).

/// Settings of the guider that all guided recipes use, one set per modality. The defaults guide
/// nothing.
struct GuiderParams {
  /// Away from the negative prompt; 1 needs no pass.
  double cfg_scale = 1.0;
  /// Away from a prediction with perturbed self-attention; 0 needs no pass.
  double stg_scale = 0.0;
  /// The blocks whose self-attention that pass leaves out; absent: all. With none the pass predicts
  /// what the first one does.
  std::optional<std::vector<int64_t>> stg_blocks = std::vector<int64_t>();
  /// How much of guidance's change of contrast is taken back, 0 to 1.
  double rescale_scale = 0.0;
  /// Away from a prediction that does not see the other modality; 1 needs no pass.
  double modality_scale = 1.0;
  /// k > 0: only every (k + 1)-th step is evaluated, the others keep the last prediction.
  int64_t skip_step = 0;

  bool NeedsUnconditioned() const;
  bool NeedsPerturbed() const;
  bool NeedsIsolated() const;
  /// Whether step `step` (from 0) keeps the last prediction.
  bool SkipsStep(int64_t step) const;
  GuidanceScales scales() const;
};

/// INVALID_ARGUMENT naming `name`.<field>: a scale that is not finite, a rescale outside [0, 1], a
/// negative skip_step or block.
absl::Status CheckGuiderParams(const GuiderParams& params, absl::string_view name);

/// Settings that depend on the noise level (reference: MultiModalGuiderFactory).
class GuiderSchedule {
 public:
  /// The same at every level.
  GuiderSchedule(GuiderParams params = {});  // NOLINT(google-explicit-constructor)
  /// `by_bound` maps upper bounds of noise levels to settings. INVALID_ARGUMENT if it is empty or a
  /// bound is NaN.
  static absl::StatusOr<GuiderSchedule> FromBounds(std::map<double, GuiderParams> by_bound);

  /// The settings of the smallest bound that is not below sigma, or of the largest bound.
  const GuiderParams& At(double sigma) const;
  /// All settings, bounds rising.
  const std::map<double, GuiderParams>& by_bound() const { return by_bound_; }

 private:
  std::map<double, GuiderParams> by_bound_;
};

/// Single-purpose guiders: what to add to the prediction `cond`. f32 or bf16 [1, T, C] throughout;
/// INTERNAL for another batch, for their projections are over a whole sample.

/// (scale - 1)(cond - uncond).
absl::StatusOr<Tensor> CfgDelta(Device& device, float scale, const Tensor& cond,
                                const Tensor& uncond);
/// (scale - 1)(cond - k uncond), k = <cond, uncond> / (<uncond, uncond> + 1e-8).
absl::StatusOr<Tensor> CfgStarDelta(Device& device, float scale, const Tensor& cond,
                                    const Tensor& uncond);
/// scale (cond - perturbed).
absl::StatusOr<Tensor> StgDelta(Device& device, float scale, const Tensor& cond,
                                const Tensor& perturbed);

/// Adaptive projected guidance (arXiv 2410.02416): the difference to the unconditioned prediction,
/// shortened to a norm, its part along cond weighted by eta.
struct ApgOptions {
  float scale = 1.0f;
  /// Weight of the part along cond.
  float eta = 1.0f;
  /// The longest difference that stays as it is; 0: any.
  float norm_threshold = 0.0f;
};

/// (scale - 1)(eta par + (g - par)), g = min(1, threshold / |cond - uncond|)(cond - uncond), par
/// its projection on cond.
absl::StatusOr<Tensor> ApgDelta(Device& device, const ApgOptions& options, const Tensor& cond,
                                const Tensor& uncond);

/// APG of a running sum of the differences, run = momentum run + (cond - uncond), scaled by scale
/// instead of scale - 1. One per modality and run (reference: LegacyStatefulAPGGuider).
class StatefulApg {
 public:
  StatefulApg(const ApgOptions& options, float momentum) : options_(options), momentum_(momentum) {}
  absl::StatusOr<Tensor> Delta(Device& device, const Tensor& cond, const Tensor& uncond);

 private:
  const ApgOptions options_;
  const float momentum_;
  /// Undefined before the first call, and for a momentum of 0.
  Tensor running_;
};

}  // namespace ltx::sampling

#endif  // LTX_ENGINE_SAMPLING_GUIDERS_H_
