#ifndef LTX_TESTS_GOLDEN_VIDEO_COMPONENTS_H_
#define LTX_TESTS_GOLDEN_VIDEO_COMPONENTS_H_

#include "tests/golden/golden_case.h"

namespace ltx::golden {

/// vae.video.* of the convolutional decoder and upsampler.*.
void RegisterVideoComponents(ComponentRegistry* registry);

}  // namespace ltx::golden

#endif  // LTX_TESTS_GOLDEN_VIDEO_COMPONENTS_H_
