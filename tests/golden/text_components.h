#ifndef LTX_TESTS_GOLDEN_TEXT_COMPONENTS_H_
#define LTX_TESTS_GOLDEN_TEXT_COMPONENTS_H_

#include "tests/golden/golden_case.h"

namespace ltx::golden {

/// Adds text.tokenize, text.gemma3_forward, text.gemma4_forward, text.generate,
/// text.feature_extractor, text.connector, text.encode, duration.head and duration.frames.
void RegisterTextComponents(ComponentRegistry* registry);

}  // namespace ltx::golden

#endif  // LTX_TESTS_GOLDEN_TEXT_COMPONENTS_H_
