#ifndef LTX_ENGINE_MEDIA_JPEG_COLOR_H_
#define LTX_ENGINE_MEDIA_JPEG_COLOR_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace ltx::media {

/// A plane of samples with a distance between its rows.
struct SamplePlane {
  const uint8_t* data = nullptr;
  ptrdiff_t stride = 0;
};

/// How many luma samples one chroma sample stands for, across and down: 1 or 2 each.
struct ChromaSteps {
  int across = 1;
  int down = 1;
};

/// Full-range BT.601 planes of a JPEG picture to rgb [H, W, 3] as libjpeg does it, which the
/// reference decodes with: chroma is interpolated by the triangle filter (weights 3 and 1 to the
/// nearer and the farther sample) with its rounding, then converted in 16-bit fixed point. (1, 2)
/// is not a form that libjpeg interpolates in this way: callers must not ask for it.
void JpegPlanesToRgb(const SamplePlane& y, const SamplePlane& cb, const SamplePlane& cr, int width,
                     int height, ChromaSteps steps, absl::Span<uint8_t> rgb);

}  // namespace ltx::media

#endif  // LTX_ENGINE_MEDIA_JPEG_COLOR_H_
