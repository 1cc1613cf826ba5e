#ifndef LTX_TESTS_GOLDEN_ENGINE_COMPONENTS_H_
#define LTX_TESTS_GOLDEN_ENGINE_COMPONENTS_H_

#include "tests/golden/golden_case.h"

namespace ltx::golden {

/// Every component of the engine, media files apart: links no FFmpeg.
ComponentRegistry EngineComponents();

}  // namespace ltx::golden

#endif  // LTX_TESTS_GOLDEN_ENGINE_COMPONENTS_H_
