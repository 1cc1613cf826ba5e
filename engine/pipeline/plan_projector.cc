#include "engine/pipeline/plan_projector.h"

#include <algorithm>
#include <utility>

#include "engine/pipeline/generation_job.h"
#include "engine/pipeline/job_options.h"
#include "engine/pipeline/model_parts.h"
#include "engine/sampling/noise_source.h"
#include "kernels/status_macros.h"

namespace ltx::pipeline {
namespace {

/// Counts what would be drawn.
class CountedNoise final : public sampling::NoiseSource {
 public:
  absl::StatusOr<Tensor> Draw(Device& device, const sampling::NoiseDraw& /*draw*/,
                              const Shape& shape, DType dtype) override {
    drawn_ += shape.num_elements();
    return device.Allocate(shape, dtype, MemoryOwner::kActivations);
  }
  int64_t drawn() const { return drawn_; }

 private:
  int64_t drawn_ = 0;
};

/// What a ledger has at its peak over what was live before.
PhaseMemory Beyond(const MemoryLedger::Snapshot& resident, const MemoryLedger::Snapshot& peak,
                   Phase phase) {
  PhaseMemory memory;
  memory.phase = phase;
  memory.peak_bytes = peak.total.peak_bytes - resident.total.live_bytes;
  for (int i = 0; i < kMemoryOwnerCount; ++i) {
    memory.by_owner[i] = peak.by_owner[i].peak_bytes - resident.by_owner[i].live_bytes;
  }
  return memory;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PlanProjector>> PlanProjector::Create(
    const Model* model, const checkpoint::ModelSet& files) {
  auto projector = std::unique_ptr<PlanProjector>(new PlanProjector(model));
  ModelOptions options = model->options();
  options.tokenizer = model->parts().prompt_encoder->shared_tokenizer();
  // A job may find its transformer gone.
  options.fused_cache_bytes = 0;
  absl::MutexLock lock(&projector->mutex_);
  LTX_ASSIGN_OR_RETURN(projector->shapes_, Model::Load(&projector->device_, files, options));
  return projector;
}

absl::StatusOr<PlanProjection> PlanProjector::Project(const GenerationRequest& request) {
  absl::MutexLock lock(&mutex_);
  // A length that is yet to be predicted counts as the longest that it may be.
  GenerationRequest longest = request;
  if (request.auto_duration.has_value()) {
    LTX_RETURN_IF_ERROR(shapes_->Validate(request));
    LTX_ASSIGN_OR_RETURN(longest.num_frames, LongestFrames(request, shapes_->limits()));
    longest.auto_duration.reset();
  }
  MemoryLedger& ledger = device_.ledger();
  // As if the prompt had never been seen, and the cache were about to keep it; beside the
  // recordings that there are.
  shapes_->parts().prompt_cache->Clear();
  dit::Transformer& transformer = *shapes_->parts().transformer;
  transformer.ForgetRecordings();
  device_.AssumeRecordings(modelled_->device()
                               .ledger()
                               .Read()
                               .by_owner[static_cast<int>(MemoryOwner::kRecordings)]
                               .live_bytes);
  LTX_RETURN_IF_ERROR(transformer.AssumeRecorded(modelled_->parts().transformer->recorded()));
  device_.ForgetPrepared();
  const MemoryLedger::Snapshot resident = ledger.Read();
  const auto noise = std::make_shared<CountedNoise>();
  JobOptions options;
  options.noise = noise;
  LTX_ASSIGN_OR_RETURN(const std::unique_ptr<GenerationJob> job,
                       GenerationJob::Create(shapes_.get(), longest, options));
  PlanProjection projection;
  bool forwards = false;
  while (!job->done()) {
    device_.ResetWork();
    ledger.ResetPeaks();
    const int64_t drawn = noise->drawn();
    LTX_ASSIGN_OR_RETURN(const UnitReport report, job->Advance());
    UnitProjection unit;
    unit.unit = report.unit;
    unit.work = device_.work();
    unit.drawn = noise->drawn() - drawn;
    unit.first_of_phase = report.unit.index == 1;
    unit.preparation = report.preparation;
    if (forwards) unit.preparation.attentions = 0;
    forwards =
        forwards || report.unit.phase == Phase::kStage1 || report.unit.phase == Phase::kStage2;
    projection.units.push_back(unit);
    const PhaseMemory memory = Beyond(resident, ledger.Read(), report.unit.phase);
    // A phase may come twice: an adapter goes in before each stage.
    if (projection.phases.empty() || projection.phases.back().phase != memory.phase) {
      projection.phases.push_back(memory);
    } else {
      PhaseMemory& phase = projection.phases.back();
      phase.peak_bytes = std::max(phase.peak_bytes, memory.peak_bytes);
      for (int i = 0; i < kMemoryOwnerCount; ++i) {
        phase.by_owner[i] = std::max(phase.by_owner[i], memory.by_owner[i]);
      }
    }
    projection.peak_bytes = std::max(projection.peak_bytes, memory.peak_bytes);
  }
  projection.parameters = job->parameters();
  projection.new_attentions = device_.new_attentions();
  return projection;
}

}  // namespace ltx::pipeline
