#include "bench/pipeline_stage.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/pipeline/generation_job.h"
#include "engine/pipeline/model.h"
#include "engine/pipeline/plan_projector.h"
#include "kernels/status_macros.h"

namespace ltx::bench {
namespace {

using nlohmann::json;

class PipelineStage final : public Stage {
 public:
  PipelineStage(std::unique_ptr<pipeline::Model> model, const checkpoint::ModelSet* files,
                pipeline::Recipe recipe)
      : model_(std::move(model)), files_(files), recipe_(recipe) {}

  absl::StatusOr<PreparedRun> Prepare(const StageSize& size) override {
    LTX_ASSIGN_OR_RETURN(const pipeline::GenerationRequest request, RequestOf(size));
    PreparedRun prepared;
    prepared.size = {{"recipe", pipeline::TraitsOf(recipe_).name},
                     {"video_tokens", size.clip.video_tokens()},
                     {"audio_tokens", size.clip.audio_tokens()},
                     {"text_tokens", size.text_tokens}};
    const auto phases = std::make_shared<std::vector<pipeline::PhaseSeconds>>();
    prepared.run = [this, request, phases]() -> absl::StatusOr<std::vector<Tensor>> {
      LTX_ASSIGN_OR_RETURN(const std::unique_ptr<pipeline::GenerationJob> job,
                           pipeline::GenerationJob::Create(model_.get(), request));
      while (!job->done()) LTX_RETURN_IF_ERROR(job->Advance().status());
      LTX_ASSIGN_OR_RETURN(const pipeline::GenerationResult result, job->TakeResult());
      *phases = result.phases;
      std::vector<Tensor> results = {result.waveform};
      for (const pipeline::FinishedFrames& frames : job->TakeFrames()) {
        results.push_back(frames.bytes.rgb);
      }
      return results;
    };
    prepared.details = [phases] {
      json milliseconds;
      for (const pipeline::PhaseSeconds& phase : *phases) {
        milliseconds[std::string(pipeline::PhaseName(phase.phase))] = phase.seconds * 1e3;
      }
      return json{{"last_run_phase_milliseconds", milliseconds}};
    };
    return prepared;
  }

  absl::StatusOr<StageProjection> Project(const StageSize& size) override {
    LTX_ASSIGN_OR_RETURN(const pipeline::GenerationRequest request, RequestOf(size));
    LTX_ASSIGN_OR_RETURN(const auto projector,
                         pipeline::PlanProjector::Create(model_.get(), *files_));
    LTX_ASSIGN_OR_RETURN(const pipeline::PlanProjection plan, projector->Project(request));
    StageProjection projection;
    const MemoryLedger::Snapshot live = model_->device().ledger().Read();
    projection.resident_bytes = live.total.live_bytes;
    projection.peak_bytes = projection.resident_bytes + plan.peak_bytes;
    for (int i = 0; i < kMemoryOwnerCount; ++i) {
      int64_t beyond = 0;
      for (const pipeline::PhaseMemory& phase : plan.phases) {
        beyond = std::max(beyond, phase.by_owner[i]);
      }
      projection.owner_peak_bytes[i] = live.by_owner[i].live_bytes + beyond;
    }
    for (const pipeline::UnitProjection& unit : plan.units) {
      projection.work.operations += unit.work.operations;
      projection.work.products += unit.work.products;
      projection.work.attention += unit.work.attention;
      projection.work.bytes += unit.work.bytes;
    }
    return projection;
  }

 private:
  absl::StatusOr<pipeline::GenerationRequest> RequestOf(const StageSize& size) const {
    pipeline::GenerationRequest request = model_->DefaultRequest();
    request.recipe = recipe_;
    // A token for each byte, after the one that begins the text.
    request.prompt = std::string(std::max<int64_t>(0, size.text_tokens - 1), 'a');
    request.width = size.clip.width;
    request.height = size.clip.height;
    request.num_frames = size.clip.frames;
    LTX_ASSIGN_OR_RETURN(request.frame_rate, pipeline::FrameRate::FromDouble(size.clip.frame_rate));
    return request;
  }

  const std::unique_ptr<pipeline::Model> model_;
  const checkpoint::ModelSet* const files_;
  const pipeline::Recipe recipe_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Stage>> LoadPipelineStage(Device* device,
                                                         const checkpoint::ModelSet* files,
                                                         const StageOptions& options) {
  LTX_ASSIGN_OR_RETURN(const pipeline::Recipe recipe, pipeline::ParseRecipe(options.recipe));
  pipeline::ModelOptions model_options;
  model_options.compute_dtype = options.dtype;
  model_options.record_forwards = options.record;
  LTX_ASSIGN_OR_RETURN(std::unique_ptr<pipeline::Model> model,
                       pipeline::Model::Load(device, *files, model_options));
  return std::make_unique<PipelineStage>(std::move(model), files, recipe);
}

}  // namespace ltx::bench
