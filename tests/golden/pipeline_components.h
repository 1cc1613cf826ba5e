#ifndef LTX_TESTS_GOLDEN_PIPELINE_COMPONENTS_H_
#define LTX_TESTS_GOLDEN_PIPELINE_COMPONENTS_H_

#include "tests/golden/golden_case.h"

namespace ltx::golden {

/// shape.counts, patchify.* and pipeline.*.
void RegisterPipelineComponents(ComponentRegistry* registry);

}  // namespace ltx::golden

#endif  // LTX_TESTS_GOLDEN_PIPELINE_COMPONENTS_H_
