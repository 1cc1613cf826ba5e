#include "server/preview.h"

#include <cstdint>
#include <utility>

#include "absl/strings/match.h"
#include "engine/media/png_writer.h"
#include "kernels/status_macros.h"
#include "server/request_mapping.h"

namespace ltx::server {

absl::StatusOr<const pipeline::LatentPreview*> PreviewProjection::Get(
    const pipeline::Model& model) {
  absl::MutexLock lock(&mutex_);
  if (fitted_ == nullptr) {
    LTX_ASSIGN_OR_RETURN(pipeline::LatentPreview fitted, pipeline::LatentPreview::Fit(model));
    fitted_ = std::make_unique<const pipeline::LatentPreview>(std::move(fitted));
  }
  return fitted_.get();
}

StageObserver PreviewMaker::observer() {
  return [this](absl::string_view name, const Tensor& x) {
    if (absl::EndsWith(name, ".video.x0")) estimate_ = x;
  };
}

absl::StatusOr<std::optional<v1::Preview>> PreviewMaker::After(
    const pipeline::UnitReport& unit, const pipeline::EffectiveParameters& parameters) {
  const Tensor estimate = std::exchange(estimate_, Tensor());
  const bool due = unit.unit.step % every_steps_ == 0 || unit.unit.index == unit.unit.count;
  if (!estimate.defined() || !due) return std::nullopt;
  LTX_ASSIGN_OR_RETURN(const pipeline::LatentPreview* const projection, projection_->Get(*model_));
  const int stage = unit.unit.phase == pipeline::Phase::kStage2 ? 1 : 0;
  const pipeline::EffectiveParameters::Stage& size = parameters.stages[stage];
  LTX_ASSIGN_OR_RETURN(const pipeline::LatentPreview::Picture picture,
                       projection->MiddleFrame(model_->device(), estimate, parameters.num_frames,
                                               size.height, size.width));

  v1::Preview preview;
  preview.set_phase(ToWire(unit.unit.phase));
  preview.set_unit(unit.unit.step);
  preview.set_latent_frame(static_cast<int32_t>(picture.latent_frame));
  preview.set_width(static_cast<int32_t>(picture.width));
  preview.set_height(static_cast<int32_t>(picture.height));
  LTX_ASSIGN_OR_RETURN(*preview.mutable_png(),
                       media::EncodePng(picture.rgb, preview.width(), preview.height()));
  return preview;
}

}  // namespace ltx::server
