#ifndef LTX_ENGINE_PIPELINE_STAGE_FORWARDS_H_
#define LTX_ENGINE_PIPELINE_STAGE_FORWARDS_H_

#include <vector>

#include "engine/pipeline/guidance_passes.h"
#include "engine/pipeline/stage_spec.h"
#include "engine/pipeline/work_unit.h"

namespace ltx::pipeline {

/// The passes of an evaluation of this stage: `step` of the schedule, from 0, or its second half.
/// None if every modality keeps its last prediction.
std::vector<GuidancePass> StagePasses(const StageSpec& stage, int step, bool half_step);

/// The forwards of the transformer that a stage makes, in order, as work units of `phase`. A step
/// for which every modality keeps its last prediction makes none.
std::vector<WorkUnit> StageForwards(const StageSpec& stage, Phase phase);

}  // namespace ltx::pipeline

#endif  // LTX_ENGINE_PIPELINE_STAGE_FORWARDS_H_
