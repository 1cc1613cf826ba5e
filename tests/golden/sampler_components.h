#ifndef LTX_TESTS_GOLDEN_SAMPLER_COMPONENTS_H_
#define LTX_TESTS_GOLDEN_SAMPLER_COMPONENTS_H_

#include "tests/golden/golden_case.h"

namespace ltx::golden {

/// schedule.*, noiser.gaussian and sampler.*.
void RegisterSamplerComponents(ComponentRegistry* registry);

}  // namespace ltx::golden

#endif  // LTX_TESTS_GOLDEN_SAMPLER_COMPONENTS_H_
