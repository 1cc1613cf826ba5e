#include "tests/golden/engine_components.h"
#include "tests/golden/registered_components.h"

namespace ltx::golden {

ComponentRegistry RegisteredComponents() { return EngineComponents(); }

}  // namespace ltx::golden
