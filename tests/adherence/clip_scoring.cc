#include "tests/adherence/clip_scoring.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <tuple>
#include <utility>

#include "kissfft/kiss_fftr.h"

namespace ltx::adherence {
namespace {

struct NamedColour {
  const char* name;
  Rgb rgb;
};

/// The tiny model's world, on the 0..255 scale.
constexpr NamedColour kBackgrounds[] = {{"black", {0, 0, 0}},        {"gray", {128, 128, 128}},
                                        {"dark blue", {10, 20, 90}}, {"dark green", {10, 75, 25}},
                                        {"brown", {90, 55, 25}},     {"beige", {225, 205, 170}}};
constexpr NamedColour kColours[] = {{"red", {230, 30, 30}},     {"green", {30, 200, 50}},
                                    {"blue", {40, 80, 240}},    {"yellow", {240, 220, 40}},
                                    {"orange", {245, 140, 25}}, {"purple", {150, 50, 200}},
                                    {"cyan", {40, 215, 225}},   {"white", {250, 250, 250}}};

constexpr int kBorderPixels = 4;
constexpr double kObjectDifference = 48;
constexpr double kMinWay = 0.12;
constexpr double kDiagonalShare = 0.4;
constexpr double kGrowth = 1.35;
constexpr double kFlatShare = 1.0 / 20;

struct Frames {
  absl::Span<const float> values;
  int64_t count;
  int height, width;
  Rgb At(int64_t frame, int y, int x) const {
    const float* pixel = &values[((frame * height + y) * width + x) * 3];
    return {pixel[0] * 255.0, pixel[1] * 255.0, pixel[2] * 255.0};
  }
};

Rgb Median(std::vector<Rgb> pixels) {
  Rgb median{};
  if (pixels.empty()) return median;
  std::vector<double> channel(pixels.size());
  for (int c = 0; c < 3; ++c) {
    for (size_t i = 0; i < pixels.size(); ++i) channel[i] = pixels[i][c];
    std::nth_element(channel.begin(), channel.begin() + channel.size() / 2, channel.end());
    median[c] = channel[channel.size() / 2];
  }
  return median;
}

Rgb BackgroundOf(const Frames& frames) {
  std::vector<Rgb> border;
  for (int64_t f = 0; f < frames.count; ++f) {
    for (int y = 0; y < frames.height; ++y) {
      for (int x = 0; x < frames.width; ++x) {
        const int distance = std::min({y, x, frames.height - 1 - y, frames.width - 1 - x});
        if (distance < kBorderPixels) border.push_back(frames.At(f, y, x));
      }
    }
  }
  return Median(std::move(border));
}

std::string NearestBackground(const Rgb& rgb) {
  return std::min_element(std::begin(kBackgrounds), std::end(kBackgrounds),
                          [&](const auto& a, const auto& b) {
                            return Distance(a.rgb, rgb) < Distance(b.rgb, rgb);
                          })
      ->name;
}

template <size_t kSize>
Rgb ColourNamed(const NamedColour (&colours)[kSize], absl::string_view name) {
  const auto found =
      std::find_if(std::begin(colours), std::end(colours),
                   [name](const NamedColour& colour) { return colour.name == name; });
  return found == std::end(colours) ? Rgb{} : found->rgb;
}

double EdgeWidth(const Frames& frames, double height) {
  double sum = 0;
  double squares = 0;
  for (int64_t f = 0; f < frames.count; ++f) {
    for (int y = 1; y + 1 < frames.height; ++y) {
      for (int x = 1; x + 1 < frames.width; ++x) {
        const double gradient =
            0.5 * std::hypot(Distance(frames.At(f, y, x + 1), frames.At(f, y, x - 1)),
                             Distance(frames.At(f, y + 1, x), frames.At(f, y - 1, x)));
        if (gradient < kFlatShare * height) continue;
        sum += gradient;
        squares += gradient * gradient;
      }
    }
  }
  return squares > 0 ? height * sum / squares : 0;
}

std::string NearestColour(const Rgb& rgb) {
  const double low = std::min({rgb[0], rgb[1], rgb[2]});
  const double high = std::max({rgb[0], rgb[1], rgb[2]});
  if (low > 0.75 * high) return "white";
  const auto cosine = [](const Rgb& a, const Rgb& b) {
    double ab = 0, aa = 0, bb = 0;
    for (int c = 0; c < 3; ++c) {
      ab += a[c] * b[c];
      aa += a[c] * a[c];
      bb += b[c] * b[c];
    }
    return ab / std::sqrt(aa * bb + 1e-9);
  };
  return std::max_element(
             std::begin(kColours), std::end(kColours),
             [&](const auto& a, const auto& b) { return cosine(a.rgb, rgb) < cosine(b.rgb, rgb); })
      ->name;
}

struct Extent {
  double x = 0, y = 0, area = 0;
};

/// Mean centroid and area over frames [begin, end).
Extent ExtentOf(const Frames& frames, const Rgb& background, int64_t begin, int64_t end,
                std::vector<Rgb>* object) {
  Extent extent;
  for (int64_t f = begin; f < end; ++f) {
    for (int y = 0; y < frames.height; ++y) {
      for (int x = 0; x < frames.width; ++x) {
        const Rgb pixel = frames.At(f, y, x);
        double difference = 0;
        for (int c = 0; c < 3; ++c) {
          difference = std::max(difference, std::abs(pixel[c] - background[c]));
        }
        if (difference <= kObjectDifference) continue;
        extent.x += x;
        extent.y += y;
        extent.area += 1;
        if (object != nullptr) object->push_back(pixel);
      }
    }
  }
  if (extent.area > 0) {
    extent.x /= extent.area;
    extent.y /= extent.area;
  }
  extent.area /= static_cast<double>(end - begin);
  return extent;
}

std::string MotionOf(const Extent& first, const Extent& last, int shorter_side) {
  const double dx = last.x - first.x;
  const double dy = last.y - first.y;
  const double longer = std::max(std::abs(dx), std::abs(dy));
  const double shorter = std::min(std::abs(dx), std::abs(dy));
  if (longer > kMinWay * shorter_side) {
    if (shorter > kDiagonalShare * longer) return "diagonally";
    if (std::abs(dx) > std::abs(dy)) return dx > 0 ? "right" : "left";
    return dy > 0 ? "down" : "up";
  }
  if (first.area <= 0) return "grows";
  const double growth = last.area / first.area;
  return growth > kGrowth ? "grows" : growth < 1 / kGrowth ? "shrinks" : "still";
}

struct FftrFree {
  void operator()(kiss_fftr_cfg config) const { kiss_fftr_free(config); }
};

/// Frequency of the greatest magnitude, and that magnitude over the mean.
std::pair<double, double> Peak(absl::Span<const float> mono, int sample_rate) {
  const int samples = static_cast<int>(mono.size());
  const int size = kiss_fftr_next_fast_size_real(samples);
  const std::unique_ptr<std::remove_pointer_t<kiss_fftr_cfg>, FftrFree> config(
      kiss_fftr_alloc(size, 0, nullptr, nullptr));
  std::vector<float> windowed(size, 0.0f);
  for (int i = 0; i < samples; ++i) {
    windowed[i] = mono[i] * static_cast<float>(0.5 - 0.5 * std::cos(2 * M_PI * i / samples));
  }
  std::vector<kiss_fft_cpx> spectrum(size / 2 + 1);
  kiss_fftr(config.get(), windowed.data(), spectrum.data());
  double sum = 0;
  double peak = -1;
  size_t bin = 0;
  for (size_t i = 0; i < spectrum.size(); ++i) {
    const double magnitude = std::hypot(spectrum[i].r, spectrum[i].i);
    sum += magnitude;
    if (magnitude > peak) {
      peak = magnitude;
      bin = i;
    }
  }
  return {static_cast<double>(bin) * sample_rate / size,
          sum > 0 ? peak / (sum / spectrum.size()) : 0};
}

void ScoreSound(absl::Span<const float> waveform, int sample_rate, ClipScore* score) {
  const size_t samples = waveform.size() / 2;
  if (samples < 3) return;
  std::vector<float> mono(samples);
  double sum = 0;
  for (size_t i = 0; i < samples; ++i) {
    mono[i] = waveform[i] + waveform[samples + i];
    sum += static_cast<double>(mono[i]) * mono[i] / 4;
  }
  score->rms = std::sqrt(sum / samples);
  const absl::Span<const float> all = mono;
  std::tie(score->pitch, score->spectral_crest) = Peak(all, sample_rate);
  score->first_third_pitch = Peak(all.subspan(0, samples / 3), sample_rate).first;
  score->last_third_pitch = Peak(all.subspan(samples - samples / 3), sample_rate).first;

  const size_t window = sample_rate / 50;
  std::vector<double> levels;
  for (size_t begin = 0; begin + window <= samples; begin += window) {
    double energy = 0;
    for (size_t i = begin; i < begin + window; ++i) energy += mono[i] * mono[i];
    levels.push_back(std::sqrt(energy / window));
  }
  const double loudest = *std::max_element(levels.begin(), levels.end());
  const auto quiet = std::count_if(levels.begin(), levels.end(),
                                   [loudest](double level) { return level < 0.1 * loudest; });
  score->quiet_share = static_cast<double>(quiet) / levels.size();
}

}  // namespace

Rgb ObjectColour(absl::string_view name) { return ColourNamed(kColours, name); }
Rgb BackgroundColour(absl::string_view name) { return ColourNamed(kBackgrounds, name); }

double Distance(const Rgb& a, const Rgb& b) {
  return std::sqrt((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]) +
                   (a[2] - b[2]) * (a[2] - b[2]));
}

ClipScore ScoreClip(absl::Span<const float> frame_values, int64_t num_frames, int height, int width,
                    absl::Span<const float> waveform, int sample_rate) {
  const Frames frames = {frame_values, num_frames, height, width};
  ClipScore score;
  const Rgb background = BackgroundOf(frames);
  score.background = NearestBackground(background);
  score.background_rgb = background;
  std::vector<Rgb> object;
  ExtentOf(frames, background, 0, num_frames, &object);
  if (!object.empty()) {
    score.object_rgb = Median(std::move(object));
    score.edge_width = EdgeWidth(frames, Distance(score.object_rgb, background));
  }
  score.colour = NearestColour(score.object_rgb);
  const int64_t fifth = std::max<int64_t>(num_frames / 5, 1);
  score.motion = MotionOf(ExtentOf(frames, background, 0, fifth, nullptr),
                          ExtentOf(frames, background, num_frames - fifth, num_frames, nullptr),
                          std::min(height, width));
  ScoreSound(waveform, sample_rate, &score);
  return score;
}

}  // namespace ltx::adherence
