#include "server/preview.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/media/png_writer.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"
#include "server/request_mapping.h"

namespace ltx::server {
namespace {

/// Latent rows, columns and frames of a stage; the counts that the pipelines plan with.
struct LatentGrid {
  int64_t frames = 0;
  int64_t height = 0;
  int64_t width = 0;
};

absl::StatusOr<LatentGrid> GridOf(const pipeline::EffectiveParameters& parameters, int stage,
                                  int64_t tokens) {
  const pipeline::EffectiveParameters::Stage& geometry = parameters.stages[stage];
  // The models' grid: 32 x 32 pixels a token, and 8 frames but for the first.
  LatentGrid grid;
  grid.height = geometry.height / 32;
  grid.width = geometry.width / 32;
  grid.frames = (parameters.num_frames - 1) / 8 + 1;
  // More tokens belong to what the job is conditioned on; they come after the picture's.
  if (grid.frames * grid.height * grid.width <= tokens) return grid;
  return absl::InternalError(absl::StrCat("a latent of ", tokens, " tokens is none of ",
                                          grid.frames, " x ", grid.height, " x ", grid.width));
}

}  // namespace

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
  const int64_t tokens = estimate.dim(1);
  LTX_ASSIGN_OR_RETURN(const LatentGrid grid, GridOf(parameters, stage, tokens));

  const int64_t frame = grid.frames / 2;
  const int64_t per_frame = grid.height * grid.width;
  LTX_ASSIGN_OR_RETURN(const Tensor rows, estimate.Reshape({tokens, estimate.dim(2)}));
  LTX_ASSIGN_OR_RETURN(const Tensor wanted, rows.Rows(frame * per_frame, (frame + 1) * per_frame));
  LTX_ASSIGN_OR_RETURN(const std::vector<float> values, ToFloats(model_->device(), wanted));
  std::vector<uint8_t> rgb(per_frame * 3);
  projection->Project(values, absl::MakeSpan(rgb));

  v1::Preview preview;
  preview.set_phase(ToWire(unit.unit.phase));
  preview.set_unit(unit.unit.step);
  preview.set_latent_frame(static_cast<int32_t>(frame));
  preview.set_width(static_cast<int32_t>(grid.width));
  preview.set_height(static_cast<int32_t>(grid.height));
  LTX_ASSIGN_OR_RETURN(*preview.mutable_png(),
                       media::EncodePng(rgb, preview.width(), preview.height()));
  return preview;
}

}  // namespace ltx::server
