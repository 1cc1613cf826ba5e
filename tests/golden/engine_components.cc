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

// pipeline
#include "tests/golden/pipeline_components.h"

// sampler
#include "tests/golden/sampler_components.h"

// text
#include "tests/golden/text_components.h"

// video
#include "tests/golden/video_components.h"

namespace ltx::golden {

ComponentRegistry EngineComponents() {
  ComponentRegistry registry;

  // audio
  RegisterAudioComponents(&registry);

  // dit
  RegisterDitComponents(&registry);

  // guidance
  RegisterGuidanceComponents(&registry);

  // lora
  RegisterLoraComponents(&registry);

  // pipeline
  RegisterPipelineComponents(&registry);

  // sampler
  RegisterSamplerComponents(&registry);

  // text
  RegisterTextComponents(&registry);

  // video
  RegisterVideoComponents(&registry);

  return registry;
}

}  // namespace ltx::golden
