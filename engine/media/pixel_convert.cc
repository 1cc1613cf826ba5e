#include "engine/media/pixel_convert.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/picture_math.h"

namespace ltx::media {
namespace {

/// Kr, Kg, Kb of BT.2020; 1.8814 = 2 (1 - Kb) and 1.4746 = 2 (1 - Kr) scale the differences.
constexpr YuvMatrixRows kRows2020 = {
    {0.2627f, 0.6780f, 0.0593f},
    {static_cast<float>(-0.2627 / 1.8814), static_cast<float>(-0.6780 / 1.8814), 0.5f},
    {0.5f, static_cast<float>(-0.6780 / 1.4746), static_cast<float>(-0.0593 / 1.4746)}};

}  // namespace

void NormalizeBytes(absl::Span<const uint8_t> bytes, absl::Span<float> values) {
  for (size_t i = 0; i < bytes.size(); ++i)
    values[i] = static_cast<float>(bytes[i]) / 127.5f - 1.0f;
}

void DenormalizeUnit(absl::Span<const float> values, absl::Span<float> unit) {
  for (size_t i = 0; i < values.size(); ++i) {
    unit[i] = ClampFromZero((values[i] + 1.0f) * 0.5f, 1.0f);
  }
}

absl::Status RgbToYuv420(absl::Span<const float> rgb, int width, int height, YuvMatrix matrix,
                         YuvRange range, Yuv420Planes* planes) {
  if (width <= 0 || height <= 0 || width % 2 != 0 || height % 2 != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a 4:2:0 picture needs positive even sizes, not ", width, " x ", height));
  }
  const size_t pixels = static_cast<size_t>(width) * height;
  if (rgb.size() != pixels * 3) {
    return absl::InvalidArgumentError(absl::StrCat("a picture of ", width, " x ", height, " has ",
                                                   pixels * 3, " RGB values, not ", rgb.size()));
  }
  const YuvMatrixRows rows = matrix == YuvMatrix::kBt709 ? Bt709Rows() : kRows2020;
  const YuvScale scale = range == YuvRange::kLimited ? LimitedYuvScale() : FullYuvScale();

  planes->y.resize(pixels);
  planes->cb.resize(pixels / 4);
  planes->cr.resize(pixels / 4);
  for (size_t i = 0; i < pixels; ++i) {
    const float* const p = &rgb[3 * i];
    planes->y[i] = DotRgb(rows.y, p[0], p[1], p[2]) * scale.y_gain + scale.y_offset;
  }
  const size_t row = static_cast<size_t>(width) * 3;
  for (int y = 0; y < height / 2; ++y) {
    for (int x = 0; x < width / 2; ++x) {
      const float* top = &rgb[2 * y * row + 6 * x];
      float mean[3];
      for (int c = 0; c < 3; ++c) {
        mean[c] = MeanOfFour(top[c], top[3 + c], top[row + c], top[row + 3 + c]);
      }
      const size_t at = static_cast<size_t>(y) * (width / 2) + x;
      planes->cb[at] = DotRgb(rows.cb, mean[0], mean[1], mean[2]) * scale.c_gain + scale.c_offset;
      planes->cr[at] = DotRgb(rows.cr, mean[0], mean[1], mean[2]) * scale.c_gain + scale.c_offset;
    }
  }
  return absl::OkStatus();
}

std::vector<int16_t> WaveformToPcm16(absl::Span<const float> waveform) {
  const size_t samples = waveform.size() / 2;
  std::vector<int16_t> pcm(samples * 2);
  for (size_t channel = 0; channel < 2; ++channel) {
    for (size_t i = 0; i < samples; ++i) {
      const float sample = waveform[channel * samples + i];
      // NaN, which differs from itself, becomes silence.
      const float value = sample == sample ? std::clamp(sample, -1.0f, 1.0f) : 0.0f;
      pcm[2 * i + channel] = static_cast<int16_t>(value * 32767.0f);
    }
  }
  return pcm;
}

}  // namespace ltx::media
