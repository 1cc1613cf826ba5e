#include "tools/random_model/random_values.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/match.h"

namespace ltx::random_model {
namespace {

/// Of everything that is added or multiplied on the side.
constexpr float kSmall = 1.0f / 16.0f;
/// Of the video decoder's last convolution: the pictures of random latents have nothing in common,
/// and with a contrast like this they are not yet the noise that verify::VerifyClip refuses.
constexpr float kPictureContrast = 1.0f / 8.0f;
constexpr int kVolumeWeightRank = 5;
/// One byte of a hash chooses a value.
constexpr int kLevels = 256;

/// The mixing function of SplitMix64 (Steele, Lea, Flood 2014): every bit of the result depends on
/// every bit of the counter.
uint64_t Mix(uint64_t counter) {
  uint64_t z = counter * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace

ValueRange RangeOf(absl::string_view name, const Shape& shape) {
  const bool weight = absl::EndsWith(name, "weight");
  if (shape.rank() >= 2 && weight) {
    const double fan_in =
        static_cast<double>(shape.num_elements()) / static_cast<double>(shape.dim(0));
    // An even distribution of half-width w has the variance w^2 / 3.
    const auto spread = static_cast<float>(std::sqrt(3.0 / fan_in));
    const bool picture =
        shape.rank() == kVolumeWeightRank && absl::EndsWith(name, "decoder.conv_out.conv.weight");
    return {0.0f, picture ? kPictureContrast * spread : spread};
  }
  if ((weight && absl::StrContains(name, "norm")) || absl::EndsWith(name, "std-of-means") ||
      absl::EndsWith(name, "layer_scalar")) {
    return {1.0f, kSmall};
  }
  if (absl::EndsWith(name, ".filter")) {
    const float mean = 1.0f / static_cast<float>(shape.num_elements());
    return {mean, mean / 2};
  }
  return {0.0f, kSmall};
}

void FillRandom(const ValueRange& range, uint64_t seed, int64_t begin,
                absl::Span<BFloat16> values) {
  std::array<BFloat16, kLevels> levels;
  for (int i = 0; i < kLevels; ++i) {
    const float unit = (2.0f * static_cast<float>(i) + 1.0f) / kLevels - 1.0f;
    levels[i] = BFloat16(range.centre + range.spread * unit);
  }
  // Far enough apart that sequences of different seeds have no counter in common.
  uint64_t counter = Mix(seed + 1) + static_cast<uint64_t>(begin / kRandomBlock);
  const size_t count = values.size();
  for (size_t i = 0; i < count; i += kRandomBlock) {
    uint64_t bits = Mix(counter++);
    const size_t end = std::min<size_t>(count, i + kRandomBlock);
    for (size_t j = i; j < end; ++j, bits >>= 8) values[j] = levels[bits & 0xff];
  }
}

}  // namespace ltx::random_model
