#ifndef LTX_TESTS_GOLDEN_AUDIO_COMPONENTS_H_
#define LTX_TESTS_GOLDEN_AUDIO_COMPONENTS_H_

#include "tests/golden/golden_case.h"

namespace ltx::golden {

/// audio.activation1d, audio.upsample_hann, audio.latent_grid, audio.vae.decode, audio.vocoder and
/// audio.decode_full.
void RegisterAudioComponents(ComponentRegistry* registry);

}  // namespace ltx::golden

#endif  // LTX_TESTS_GOLDEN_AUDIO_COMPONENTS_H_
