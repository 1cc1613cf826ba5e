#ifndef LTX_ENGINE_PIPELINE_PLAN_PROJECTOR_H_
#define LTX_ENGINE_PIPELINE_PLAN_PROJECTOR_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "engine/checkpoint/model_set.h"
#include "engine/pipeline/effective_parameters.h"
#include "engine/pipeline/generation_request.h"
#include "engine/pipeline/model.h"
#include "engine/pipeline/work_unit.h"
#include "kernels/memory_ledger.h"
#include "kernels/preparation.h"
#include "kernels/shape_device.h"

namespace ltx::pipeline {

/// What one unit of a plan amounts to.
struct UnitProjection {
  WorkUnit unit;
  WorkCount work;
  /// Normal deviates drawn on the host.
  int64_t drawn = 0;
  /// The first unit of its stage, which also prepares it.
  bool first_of_phase = false;
  /// What the unit would have to prepare, or wait for, with what there is on the real device now
  /// and `new_attentions` of the plan being made from its start on: they are there for what comes
  /// after the first forward.
  Preparation preparation;
};

/// Device memory of one phase beyond what is resident when no job runs.
struct PhaseMemory {
  Phase phase = Phase::kText;
  /// Peaks: the total, and each owner's own, which need not coincide in time.
  int64_t peak_bytes = 0;
  std::array<int64_t, kMemoryOwnerCount> by_owner{};
};

/// A request run through on shapes: which units, how much work each, how much memory.
struct PlanProjection {
  EffectiveParameters parameters;
  std::vector<UnitProjection> units;
  /// In order of execution.
  std::vector<PhaseMemory> phases;
  /// The largest of the phases.
  int64_t peak_bytes = 0;
  /// What Device::PrepareAhead may be told when the job starts.
  std::vector<AttentionSize> new_attentions;
};

/// Projects requests before they are admitted: runs them, unit by unit, on a copy of the model that
/// has shapes but no elements (kernels/shape_device.h). Every recipe and every geometry is covered
/// by construction, since it is the model's own code that runs. The language model always takes
/// part, and so does the fusion of a LoRA: what is kept may be gone by the time the job runs.
///
/// Memory contract: the total peak is the ledger's peak of the real job over what is resident,
/// within 5 % of the whole (tests/memory:projection_test).
///
/// Thread-safe; some tens of microseconds per transformer block and evaluation.
class PlanProjector {
 public:
  /// The projector of a loaded model; `files` are those it was loaded from. `model` must outlive
  /// it. Errors are those of Model::Load.
  static absl::StatusOr<std::unique_ptr<PlanProjector>> Create(const Model* model,
                                                               const checkpoint::ModelSet& files);

  /// The errors of Model::Validate, and of the tokenizer.
  absl::StatusOr<PlanProjection> Project(const GenerationRequest& request);

 private:
  explicit PlanProjector(const Model* model) : modelled_(model), device_(&model->device()) {}

  const Model* const modelled_;
  absl::Mutex mutex_;
  ShapeDevice device_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Model> shapes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ltx::pipeline

#endif  // LTX_ENGINE_PIPELINE_PLAN_PROJECTOR_H_
