#ifndef LTX_TESTS_GOLDEN_REGISTERED_COMPONENTS_H_
#define LTX_TESTS_GOLDEN_REGISTERED_COMPONENTS_H_

#include "tests/golden/golden_case.h"

namespace ltx::golden {

/// Every component that this build can run.
ComponentRegistry RegisteredComponents();

}  // namespace ltx::golden

#endif  // LTX_TESTS_GOLDEN_REGISTERED_COMPONENTS_H_
