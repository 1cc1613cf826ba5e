#include "engine/media/pixel_convert.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace ltx::media {
namespace {

/// Rows of the matrices: luma, blue difference, red difference.
struct Coefficients {
  float rows[3][3];
};

constexpr Coefficients kMatrix709 = {
    {{0.2126f, 0.7152f, 0.0722f}, {-0.1146f, -0.3854f, 0.5f}, {0.5f, -0.4542f, -0.0458f}}};
/// Kr, Kg, Kb of BT.2020; 1.8814 = 2 (1 - Kb) and 1.4746 = 2 (1 - Kr) scale the differences.
constexpr Coefficients kMatrix2020 = {
    {{0.2627f, 0.6780f, 0.0593f},
     {static_cast<float>(-0.2627 / 1.8814), static_cast<float>(-0.6780 / 1.8814), 0.5f},
     {0.5f, static_cast<float>(-0.6780 / 1.4746), static_cast<float>(-0.0593 / 1.4746)}}};

float Dot(const float (&row)[3], const float* pixel) {
  return row[0] * pixel[0] + row[1] * pixel[1] + row[2] * pixel[2];
}

/// Into [0, high], NaN to 0: a comparison with NaN is false. Values instead of std::clamp's
/// references, and the step over int below, let the compiler make vector code of the loops.
float ClampFromZero(float value, float high) {
  const float floored = value > 0.0f ? value : 0.0f;
  return floored < high ? floored : high;
}

uint8_t TruncateToByte(float value) {
  return static_cast<uint8_t>(static_cast<int>(ClampFromZero(value, 255.0f)));
}

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

void UnitToBytes(absl::Span<const float> unit, absl::Span<uint8_t> bytes) {
  for (size_t i = 0; i < unit.size(); ++i) {
    bytes[i] = TruncateToByte(ClampFromZero(unit[i], 1.0f) * 255.0f);
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
  const Coefficients& m = matrix == YuvMatrix::kBt709 ? kMatrix709 : kMatrix2020;
  const bool limited = range == YuvRange::kLimited;
  const float y_gain = limited ? 219.0f : 255.0f;
  const float y_offset = limited ? 16.0f : 0.0f;
  const float c_gain = limited ? 224.0f : 255.0f;
  // Full-range chroma is centred at 127.5, as the reference has it: (c + 0.5) * 255.
  const float c_offset = limited ? 128.0f : 127.5f;

  planes->y.resize(pixels);
  planes->cb.resize(pixels / 4);
  planes->cr.resize(pixels / 4);
  for (size_t i = 0; i < pixels; ++i) {
    planes->y[i] = Dot(m.rows[0], &rgb[3 * i]) * y_gain + y_offset;
  }
  const size_t row = static_cast<size_t>(width) * 3;
  for (int y = 0; y < height / 2; ++y) {
    for (int x = 0; x < width / 2; ++x) {
      const float* top = &rgb[2 * y * row + 6 * x];
      float mean[3];
      for (int c = 0; c < 3; ++c) {
        mean[c] = 0.25f * ((top[c] + top[3 + c]) + (top[row + c] + top[row + 3 + c]));
      }
      const size_t at = static_cast<size_t>(y) * (width / 2) + x;
      planes->cb[at] = Dot(m.rows[1], mean) * c_gain + c_offset;
      planes->cr[at] = Dot(m.rows[2], mean) * c_gain + c_offset;
    }
  }
  return absl::OkStatus();
}

absl::Status RgbToI420(absl::Span<const float> rgb, int width, int height,
                       absl::Span<uint8_t> out) {
  Yuv420Planes planes;
  LTX_RETURN_IF_ERROR(
      RgbToYuv420(rgb, width, height, YuvMatrix::kBt709, YuvRange::kLimited, &planes));
  uint8_t* next = out.data();
  for (const std::vector<float>* plane : {&planes.y, &planes.cb, &planes.cr}) {
    for (const float value : *plane) *next++ = TruncateToByte(value);
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
