#ifndef LTX_TESTS_GOLDEN_LORA_COMPONENTS_H_
#define LTX_TESTS_GOLDEN_LORA_COMPONENTS_H_

#include "tests/golden/golden_case.h"

namespace ltx::golden {

/// lora.fuse.
void RegisterLoraComponents(ComponentRegistry* registry);

}  // namespace ltx::golden

#endif  // LTX_TESTS_GOLDEN_LORA_COMPONENTS_H_
