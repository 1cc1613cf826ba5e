#include "tests/golden/registered_components.h"

#include "tests/golden/engine_components.h"
#include "tests/golden/media_components.h"

namespace ltx::golden {

ComponentRegistry RegisteredComponents() {
  ComponentRegistry registry = EngineComponents();
  RegisterMediaComponents(&registry);
  return registry;
}

}  // namespace ltx::golden
