#ifndef LTX_TESTS_GOLDEN_MEDIA_COMPONENTS_H_
#define LTX_TESTS_GOLDEN_MEDIA_COMPONENTS_H_

#include "tests/golden/golden_case.h"

namespace ltx::golden {

/// media.normalize, media.pcm16, media.yuv420p_bt709, media.encode_video.
void RegisterMediaComponents(ComponentRegistry* registry);

}  // namespace ltx::golden

#endif  // LTX_TESTS_GOLDEN_MEDIA_COMPONENTS_H_
