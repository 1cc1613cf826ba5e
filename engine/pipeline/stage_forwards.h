#ifndef LTX_ENGINE_PIPELINE_STAGE_FORWARDS_H_
#define LTX_ENGINE_PIPELINE_STAGE_FORWARDS_H_

#include <vector>

#include "engine/pipeline/stage_spec.h"
#include "engine/pipeline/work_unit.h"

namespace ltx::pipeline {

/// The forwards of the transformer that a stage makes, in order, as work units of `phase`. A step
/// for which every modality keeps its last prediction makes none.
std::vector<WorkUnit> StageForwards(const StageSpec& stage, Phase phase);

}  // namespace ltx::pipeline

#endif  // LTX_ENGINE_PIPELINE_STAGE_FORWARDS_H_
