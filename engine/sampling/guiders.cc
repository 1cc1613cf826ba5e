#include "engine/sampling/guiders.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace ltx::sampling {
namespace {

/// Below this relative distance a factor counts as neutral (Python's math.isclose).
constexpr double kNeutralDistance = 1e-9;
/// Keeps projections on nothing finite.
constexpr double kProjectionEpsilon = 1e-8;

bool IsOne(double scale) {
  return std::fabs(scale - 1.0) <= kNeutralDistance * std::max(std::fabs(scale), 1.0);
}

absl::Status CheckSingle(const Tensor& cond) {
  if (cond.defined() && cond.rank() == 3 && cond.dim(0) == 1) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("a guider of single samples got ",
                                          cond.shape().ToString(), ", needs [1, T, C]"));
}

/// <a, b> / (<b, b> + epsilon).
absl::StatusOr<double> Projection(Device& device, const Tensor& a, const Tensor& b) {
  LTX_ASSIGN_OR_RETURN(const std::vector<double> dot, device.BatchDot(a, b));
  LTX_ASSIGN_OR_RETURN(const std::vector<double> squared, device.BatchDot(b, b));
  return dot[0] / (squared[0] + kProjectionEpsilon);
}

/// scale (eta par + (g - par)) of the shortened difference g.
absl::StatusOr<Tensor> Projected(Device& device, const ApgOptions& options, float scale,
                                 const Tensor& cond, const Tensor& difference) {
  double shortening = 1.0;
  if (options.norm_threshold > 0.0f) {
    LTX_ASSIGN_OR_RETURN(const std::vector<double> squared,
                         device.BatchDot(difference, difference));
    shortening = std::min(1.0, options.norm_threshold / std::sqrt(squared[0]));
  }
  LTX_ASSIGN_OR_RETURN(const double projection, Projection(device, difference, cond));
  return device.LinearCombination(
      static_cast<float>(scale * shortening), difference,
      static_cast<float>(scale * (options.eta - 1.0) * shortening * projection), cond, 0.0f,
      Tensor());
}

}  // namespace

bool GuiderParams::NeedsUnconditioned() const { return !IsOne(cfg_scale); }
bool GuiderParams::NeedsPerturbed() const { return stg_scale != 0.0; }
bool GuiderParams::NeedsIsolated() const { return !IsOne(modality_scale); }

bool GuiderParams::SkipsStep(int64_t step) const {
  return skip_step > 0 && step % (skip_step + 1) != 0;
}

GuidanceScales GuiderParams::scales() const {
  return {static_cast<float>(cfg_scale), static_cast<float>(stg_scale),
          static_cast<float>(modality_scale), static_cast<float>(rescale_scale)};
}

absl::Status CheckGuiderParams(const GuiderParams& params, absl::string_view name) {
  const auto refuse = [name](absl::string_view field, double value, absl::string_view legal) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ".", field, " is ", value, "; ", legal, " would be legal"));
  };
  struct Scale {
    absl::string_view field;
    double value;
  };
  for (const Scale& scale : {Scale{"cfg_scale", params.cfg_scale},
                             {"stg_scale", params.stg_scale},
                             {"modality_scale", params.modality_scale}}) {
    if (!std::isfinite(scale.value)) return refuse(scale.field, scale.value, "a finite number");
  }
  if (!(params.rescale_scale >= 0.0 && params.rescale_scale <= 1.0)) {
    return refuse("rescale_scale", params.rescale_scale, "0 to 1");
  }
  if (params.skip_step < 0) {
    return refuse("skip_step", static_cast<double>(params.skip_step), "0 or more");
  }
  if (!params.stg_blocks.has_value()) return absl::OkStatus();
  for (const int64_t block : *params.stg_blocks) {
    if (block < 0) return refuse("stg_blocks", static_cast<double>(block), "indices from 0");
  }
  return absl::OkStatus();
}

GuiderSchedule::GuiderSchedule(GuiderParams params) {
  by_bound_.emplace(std::numeric_limits<double>::infinity(), std::move(params));
}

absl::StatusOr<GuiderSchedule> GuiderSchedule::FromBounds(std::map<double, GuiderParams> by_bound) {
  if (by_bound.empty()) {
    return absl::InvalidArgumentError("a guider schedule without settings; needs 1 or more");
  }
  for (const auto& [bound, params] : by_bound) {
    if (std::isnan(bound)) return absl::InvalidArgumentError("a guider schedule's bound is NaN");
  }
  GuiderSchedule schedule;
  schedule.by_bound_ = std::move(by_bound);
  return schedule;
}

const GuiderParams& GuiderSchedule::At(double sigma) const {
  const auto it = by_bound_.lower_bound(sigma);
  return it == by_bound_.end() ? by_bound_.rbegin()->second : it->second;
}

absl::StatusOr<Tensor> CfgDelta(Device& device, float scale, const Tensor& cond,
                                const Tensor& uncond) {
  return StgDelta(device, scale - 1.0f, cond, uncond);
}

absl::StatusOr<Tensor> CfgStarDelta(Device& device, float scale, const Tensor& cond,
                                    const Tensor& uncond) {
  LTX_RETURN_IF_ERROR(CheckSingle(cond));
  LTX_ASSIGN_OR_RETURN(const double projection, Projection(device, cond, uncond));
  return device.LinearCombination(
      scale - 1.0f, cond, static_cast<float>((1.0 - scale) * projection), uncond, 0.0f, Tensor());
}

absl::StatusOr<Tensor> StgDelta(Device& device, float scale, const Tensor& cond,
                                const Tensor& perturbed) {
  return device.LinearCombination(scale, cond, -scale, perturbed, 0.0f, Tensor());
}

absl::StatusOr<Tensor> ApgDelta(Device& device, const ApgOptions& options, const Tensor& cond,
                                const Tensor& uncond) {
  LTX_RETURN_IF_ERROR(CheckSingle(cond));
  LTX_ASSIGN_OR_RETURN(const Tensor difference, StgDelta(device, 1.0f, cond, uncond));
  return Projected(device, options, options.scale - 1.0f, cond, difference);
}

absl::StatusOr<Tensor> StatefulApg::Delta(Device& device, const Tensor& cond,
                                          const Tensor& uncond) {
  LTX_RETURN_IF_ERROR(CheckSingle(cond));
  LTX_ASSIGN_OR_RETURN(Tensor difference, StgDelta(device, 1.0f, cond, uncond));
  if (momentum_ != 0.0f) {
    if (running_.defined()) {
      LTX_ASSIGN_OR_RETURN(difference, device.LinearCombination(momentum_, running_, 1.0f,
                                                                difference, 0.0f, Tensor()));
    }
    running_ = difference;
  }
  return Projected(device, options_, options_.scale, cond, difference);
}

}  // namespace ltx::sampling
