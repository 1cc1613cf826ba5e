#ifndef LTX_TESTS_GOLDEN_TINY_RUN_H_
#define LTX_TESTS_GOLDEN_TINY_RUN_H_

#include "tests/golden/golden_case.h"

namespace ltx::golden {

/// pipeline.ltx_tiny_distilled: a run of the trained miniature.
void RegisterTinyRun(ComponentRegistry* registry);

/// The draws of a run: those recorded in the case, or the engine's own from the case's seed.
enum class RunNoise { kRecorded, kGenerated };

absl::Status RunLtxTinyDistilled(const GoldenCase& golden, const GoldenContext& context,
                                 RunNoise noise, GoldenOutputs* outputs);

}  // namespace ltx::golden

#endif  // LTX_TESTS_GOLDEN_TINY_RUN_H_
