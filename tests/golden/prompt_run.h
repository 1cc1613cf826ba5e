#ifndef LTX_TESTS_GOLDEN_PROMPT_RUN_H_
#define LTX_TESTS_GOLDEN_PROMPT_RUN_H_

#include "tests/golden/golden_case.h"

namespace ltx::golden {

/// pipeline.prompts: contexts and predicted length of a pack's prompts.
void RegisterPromptRun(ComponentRegistry* registry);

}  // namespace ltx::golden

#endif  // LTX_TESTS_GOLDEN_PROMPT_RUN_H_
