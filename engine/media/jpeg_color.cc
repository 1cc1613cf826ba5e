#include "engine/media/jpeg_color.h"

#include <algorithm>
#include <vector>

namespace ltx::media {
namespace {

/// One row of chroma at full width. `near` is the row that covers this line, `far` its neighbour on
/// the other side of the line; equal without vertical steps.
void UpsampleRow(const uint8_t* near, const uint8_t* far, int chroma_width, ChromaSteps steps,
                 std::vector<uint8_t>* out) {
  if (steps.across == 1) {
    std::copy_n(near, chroma_width, out->begin());
    return;
  }
  // Sums of the vertical filter: 4 times a sample with vertical steps, else the sample itself.
  const auto sum = [&](int x) { return steps.down == 2 ? 3 * near[x] + far[x] : int{near[x]}; };
  const int shift = steps.down == 2 ? 4 : 2;
  // The two halves of a pair round differently, so that neither direction wins over a picture.
  const int round_left = steps.down == 2 ? 8 : 1;
  const int round_right = steps.down == 2 ? 7 : 2;
  for (int x = 0; x < chroma_width; ++x) {
    const int here = sum(x);
    const int left = x > 0 ? sum(x - 1) : here;
    const int right = x + 1 < chroma_width ? sum(x + 1) : here;
    (*out)[2 * x] = static_cast<uint8_t>((3 * here + left + round_left) >> shift);
    (*out)[2 * x + 1] = static_cast<uint8_t>((3 * here + right + round_right) >> shift);
  }
}

uint8_t Clamp(int value) { return static_cast<uint8_t>(std::clamp(value, 0, 255)); }

/// Coefficients of ITU-R BT.601 in 16-bit fixed point.
constexpr int Fixed(double value) { return static_cast<int>(value * 65536 + 0.5); }
constexpr int kHalf = 1 << 15;

}  // namespace

void JpegPlanesToRgb(const SamplePlane& y, const SamplePlane& cb, const SamplePlane& cr, int width,
                     int height, ChromaSteps steps, absl::Span<uint8_t> rgb) {
  const int chroma_width = (width + steps.across - 1) / steps.across;
  const int chroma_height = (height + steps.down - 1) / steps.down;
  std::vector<uint8_t> blue(static_cast<size_t>(chroma_width) * steps.across);
  std::vector<uint8_t> red(blue.size());
  uint8_t* out = rgb.data();
  for (int line = 0; line < height; ++line) {
    const int near = line / steps.down;
    const int beside = line % 2 == 0 ? near - 1 : near + 1;
    const int far = steps.down == 2 ? std::clamp(beside, 0, chroma_height - 1) : near;
    UpsampleRow(cb.data + near * cb.stride, cb.data + far * cb.stride, chroma_width, steps, &blue);
    UpsampleRow(cr.data + near * cr.stride, cr.data + far * cr.stride, chroma_width, steps, &red);
    const uint8_t* const luma = y.data + line * y.stride;
    for (int x = 0; x < width; ++x, out += 3) {
      const int b = blue[x] - 128;
      const int r = red[x] - 128;
      out[0] = Clamp(luma[x] + ((Fixed(1.40200) * r + kHalf) >> 16));
      out[1] = Clamp(luma[x] + ((-Fixed(0.34414) * b - Fixed(0.71414) * r + kHalf) >> 16));
      out[2] = Clamp(luma[x] + ((Fixed(1.77200) * b + kHalf) >> 16));
    }
  }
}

}  // namespace ltx::media
