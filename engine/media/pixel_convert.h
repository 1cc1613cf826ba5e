#ifndef LTX_ENGINE_MEDIA_PIXEL_CONVERT_H_
#define LTX_ENGINE_MEDIA_PIXEL_CONVERT_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace ltx::media {

/// Maps between the value ranges of models, files and screens. The bytes of finished frames are
/// made on the device: Device::ToByteFrames.

/// 0..255 -> [-1, 1]: x / 127.5 - 1 in f32.
void NormalizeBytes(absl::Span<const uint8_t> bytes, absl::Span<float> values);

/// [-1, 1] -> [0, 1]: clamp((x + 1) / 2, 0, 1) in f32; NaN becomes 0.
void DenormalizeUnit(absl::Span<const float> values, absl::Span<float> unit);

enum class YuvMatrix : uint8_t {
  /// BT.709 with the reference's four-digit constants.
  kBt709,
  /// BT.2020 non-constant luminance.
  kBt2020,
};
enum class YuvRange : uint8_t { kLimited, kFull };

/// Planes of one picture before rounding: y [H, W], then cb and cr [H/2, W/2] each, on the 8-bit
/// scale (limited: luma 16..235, chroma 16..240 around 128).
struct Yuv420Planes {
  std::vector<float> y;
  std::vector<float> cb;
  std::vector<float> cr;
};

/// One picture rgb [H, W, 3] in [0, 1] to 4:2:0 planes, chroma by the plain mean of 2 x 2 pixels
/// (the reference's color/yuv.py). INVALID_ARGUMENT unless width and height are positive and even
/// and the span has H * W * 3 elements.
absl::Status RgbToYuv420(absl::Span<const float> rgb, int width, int height, YuvMatrix matrix,
                         YuvRange range, Yuv420Planes* planes);

/// Float stereo planes [2, N] to interleaved signed 16 bit [N, 2]: clip to [-1, 1], times 32767,
/// truncation towards zero; NaN becomes 0.
std::vector<int16_t> WaveformToPcm16(absl::Span<const float> waveform);

}  // namespace ltx::media

#endif  // LTX_ENGINE_MEDIA_PIXEL_CONVERT_H_
