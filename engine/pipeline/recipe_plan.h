#ifndef LTX_ENGINE_PIPELINE_RECIPE_PLAN_H_
#define LTX_ENGINE_PIPELINE_RECIPE_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/checkpoint/model_set.h"
#include "engine/checkpoint/model_version.h"
#include "engine/pipeline/effective_parameters.h"
#include "engine/pipeline/generation_request.h"
#include "engine/pipeline/stage_spec.h"
#include "engine/pipeline/work_unit.h"
#include "engine/sampling/torch_cuda_generator.h"

namespace ltx::pipeline {

/// What a plan depends on besides the request.
struct PlanInputs {
  checkpoint::ModelKind model_kind = checkpoint::ModelKind::kDistilled;
  /// Of the transformer file: decides defaults and the first stage's sampler.
  checkpoint::ModelVersion model_version;
  /// Over what the version says.
  std::optional<bool> ancestral_stage_1;
  int64_t num_blocks = 0;
  /// The distilled LoRA's file name, and what a transformer with it in takes; see FusedCache.
  std::string distilled_lora;
  int64_t fused_transformer_bytes = 0;
  /// False if the contexts are given.
  bool encode_prompt = true;
  /// Most tokens that an enhanced prompt may get.
  int64_t max_enhancement_tokens = 0;
  DType compute_dtype = DType::kF32;
  bool on_cuda = false;
  sampling::CudaLaunchShape cuda_launch_shape;
};

/// A request compiled: what to compute, in which units, with which numbers.
struct RecipePlan {
  EffectiveParameters parameters;
  /// Without initial latents.
  std::vector<StageSpec> stages;
  std::vector<WorkUnit> units;
};

/// `request` must be valid. INVALID_ARGUMENT naming the field that does not fit the model, or that
/// the other fields leave without effect.
absl::StatusOr<RecipePlan> MakePlan(const GenerationRequest& request, const PlanInputs& inputs);

/// Gives `phase` another number of units, once it is known; the first of them is unit `completed`
/// of the plan. INTERNAL if it is not, or if count is not positive.
absl::Status SetPhaseUnits(Phase phase, int64_t count, int completed, std::vector<WorkUnit>* plan);

/// Ends the phase of unit `completed` - 1 there: its further units are dropped. INTERNAL if
/// `completed` is not in the plan.
absl::Status EndPhase(int completed, std::vector<WorkUnit>* plan);

}  // namespace ltx::pipeline

#endif  // LTX_ENGINE_PIPELINE_RECIPE_PLAN_H_
