#include "tests/adherence/clip_maker.h"

#include <utility>

#include "engine/checkpoint/model_set.h"
#include "engine/pipeline/generation_job.h"
#include "engine/pipeline/job_options.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::adherence {

absl::StatusOr<ClipMaker> ClipMaker::Create() {
  ClipMaker maker;
  LTX_ASSIGN_OR_RETURN(maker.device_, cpu::CpuDevice::Create({}));
  LTX_ASSIGN_OR_RETURN(const checkpoint::ModelSet files,
                       checkpoint::ModelSet::Open("models/ltx-tiny"));
  pipeline::ModelOptions options;
  options.compute_dtype = DType::kF32;
  LTX_ASSIGN_OR_RETURN(maker.model_, pipeline::Model::Load(maker.device_.get(), files, options));
  return maker;
}

absl::StatusOr<ScoredClip> ClipMaker::Make(const pipeline::GenerationRequest& request) const {
  ScoredClip clip;
  absl::Status copied;
  pipeline::JobOptions options;
  options.observer = [&](absl::string_view name, const Tensor& frames) {
    if (name != "frames") return;
    const absl::StatusOr<std::vector<float>> values = ToFloats(*device_, frames);
    copied.Update(values.status());
    if (!values.ok()) return;
    clip.frames.insert(clip.frames.end(), values->begin(), values->end());
    clip.num_frames += frames.dim(0);
    clip.height = frames.dim(1);
    clip.width = frames.dim(2);
  };
  LTX_ASSIGN_OR_RETURN(const std::unique_ptr<pipeline::GenerationJob> job,
                       pipeline::GenerationJob::Create(model_.get(), request, options));
  while (!job->done()) {
    LTX_ASSIGN_OR_RETURN(const pipeline::UnitReport unit, job->Advance());
    clip.passes += unit.unit.rows;
  }
  LTX_ASSIGN_OR_RETURN(const pipeline::GenerationResult result, job->TakeResult());
  LTX_RETURN_IF_ERROR(copied);
  LTX_ASSIGN_OR_RETURN(const std::vector<float> waveform, ToFloats(*device_, result.waveform));
  clip.score =
      ScoreClip(clip.frames, clip.num_frames, static_cast<int>(clip.height),
                static_cast<int>(clip.width), waveform, static_cast<int>(result.sample_rate));
  return clip;
}

}  // namespace ltx::adherence
