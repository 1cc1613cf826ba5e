#ifndef LTX_TESTS_GOLDEN_DIT_COMPONENTS_H_
#define LTX_TESTS_GOLDEN_DIT_COMPONENTS_H_

#include "tests/golden/golden_case.h"

namespace ltx::golden {

/// The diffusion transformer: dit.rope, dit.rope_full, dit.timestep_embed, dit.attention,
/// dit.block, dit.forward, dit.x0.
void RegisterDitComponents(ComponentRegistry* registry);

}  // namespace ltx::golden

#endif  // LTX_TESTS_GOLDEN_DIT_COMPONENTS_H_
