#ifndef LTX_TESTS_GOLDEN_PIPELINE_RUNS_H_
#define LTX_TESTS_GOLDEN_PIPELINE_RUNS_H_

#include "tests/golden/golden_case.h"

namespace ltx::golden {

/// pipeline.*: whole runs of a model set.
void RegisterPipelineRuns(ComponentRegistry* registry);

/// The draws of a run: those recorded in the case, or the engine's own from the case's seed.
enum class RunNoise { kRecorded, kGenerated };

/// pipeline.ltx_tiny_distilled.
absl::Status RunLtxTinyDistilled(const GoldenCase& golden, const GoldenContext& context,
                                 RunNoise noise, GoldenOutputs* outputs);

}  // namespace ltx::golden

#endif  // LTX_TESTS_GOLDEN_PIPELINE_RUNS_H_
