#include "tests/golden/registered_components.h"

// Each area has its own block of includes and calls below, so that additions stay apart.

// audio

// dit

// media
#include "tests/golden/media_components.h"

// pipeline

// text

// video

namespace ltx::golden {

ComponentRegistry RegisteredComponents() {
  ComponentRegistry registry;

  // audio

  // dit

  // media
  RegisterMediaComponents(&registry);

  // pipeline

  // text

  // video

  return registry;
}

}  // namespace ltx::golden
