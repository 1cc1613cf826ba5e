#ifndef LTX_TESTS_GOLDEN_GUIDANCE_COMPONENTS_H_
#define LTX_TESTS_GOLDEN_GUIDANCE_COMPONENTS_H_

#include "tests/golden/golden_case.h"

namespace ltx::golden {

/// guider.*.
void RegisterGuidanceComponents(ComponentRegistry* registry);

}  // namespace ltx::golden

#endif  // LTX_TESTS_GOLDEN_GUIDANCE_COMPONENTS_H_
