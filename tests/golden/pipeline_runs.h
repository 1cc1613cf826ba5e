#ifndef LTX_TESTS_GOLDEN_PIPELINE_RUNS_H_
#define LTX_TESTS_GOLDEN_PIPELINE_RUNS_H_

#include "tests/golden/golden_case.h"

namespace ltx::golden {

/// pipeline.{distilled, distilled_euler, ti2vid_one_stage, two_stage, two_stage_hq,
/// text_to_audio}: whole runs of the reduced pack.
void RegisterPipelineRuns(ComponentRegistry* registry);

}  // namespace ltx::golden

#endif  // LTX_TESTS_GOLDEN_PIPELINE_RUNS_H_
