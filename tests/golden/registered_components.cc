#include "tests/golden/registered_components.h"

#include "tests/golden/engine_components.h"
// Each area has its own block of includes and calls below, so that additions stay apart.

// audio
#include "tests/golden/audio_components.h"

// dit
#include "tests/golden/dit_components.h"

// guidance
#include "tests/golden/guidance_components.h"

// lora
#include "tests/golden/lora_components.h"

// media
#include "tests/golden/media_components.h"

namespace ltx::golden {

ComponentRegistry RegisteredComponents() {
  ComponentRegistry registry = EngineComponents();
  ComponentRegistry registry;

  // audio
  RegisterAudioComponents(&registry);

  // dit
  RegisterDitComponents(&registry);

  // guidance
  RegisterGuidanceComponents(&registry);

  // lora
  RegisterLoraComponents(&registry);

  // media
  RegisterMediaComponents(&registry);
  return registry;
}

}  // namespace ltx::golden
