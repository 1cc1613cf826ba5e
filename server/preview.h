#ifndef LTX_SERVER_PREVIEW_H_
#define LTX_SERVER_PREVIEW_H_

#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "engine/pipeline/effective_parameters.h"
#include "engine/pipeline/generation_job.h"
#include "engine/pipeline/job_options.h"
#include "engine/pipeline/latent_preview.h"
#include "engine/pipeline/model.h"
#include "proto/ltx/v1/video_service.pb.h"

namespace ltx::server {

/// The model's map from latents to colours, fitted when the first job asks for a preview.
class PreviewProjection {
 public:
  /// On the device's thread. Errors as LatentPreview::Fit().
  absl::StatusOr<const pipeline::LatentPreview*> Get(const pipeline::Model& model);

 private:
  absl::Mutex mutex_;
  std::unique_ptr<const pipeline::LatentPreview> fitted_ ABSL_GUARDED_BY(mutex_);
};

/// Makes the previews of one job: the middle latent frame of the model's estimate of the finished
/// picture, one pixel a token, after every so many denoising steps.
class PreviewMaker {
 public:
  /// `every_steps` is positive; `model` must outlive the object.
  PreviewMaker(int every_steps, const pipeline::Model* model,
               std::shared_ptr<PreviewProjection> projection)
      : every_steps_(every_steps), model_(model), projection_(std::move(projection)) {}

  /// What the job has to tell its intermediate values to.
  StageObserver observer();

  /// After a unit: its preview, if it is a denoising step that gets one. The last step of a stage
  /// always does.
  absl::StatusOr<std::optional<v1::Preview>> After(const pipeline::UnitReport& unit,
                                                   const pipeline::EffectiveParameters& parameters);

 private:
  const int every_steps_;
  const pipeline::Model* const model_;
  const std::shared_ptr<PreviewProjection> projection_;
  /// Estimate of the unit that ran last, [1, T, C]; undefined if it was no denoising step.
  Tensor estimate_;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_PREVIEW_H_
