#ifndef LTX_SERVER_GOVERNOR_COST_UNIT_H_
#define LTX_SERVER_GOVERNOR_COST_UNIT_H_

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "kernels/preparation.h"

namespace ltx::server {

/// Kinds of work whose speed differs.
enum class CostKind : uint8_t {
  kText,
  /// A token of a prompt that is being rewritten.
  kEnhance,
  /// Merging an adapter into the transformer's weights.
  kFuse,
  /// An evaluation of the transformer, and the sampler's step after it.
  kForward,
  kUpsample,
  kVideoDecode,
  kAudioDecode,
  /// Checking and encoding a finished clip on the host.
  kMux,
};
inline constexpr int kCostKindCount = 8;
/// "text", "enhance", "fuse", "forward", "upsample", "video_decode", "audio_decode", "mux".
absl::string_view CostKindName(CostKind kind);

/// What the seconds of a unit are a sum of. For a forward over T tokens in P passes, products and
/// bytes are a + b P T and attention is c P T^2, so that a sum of these terms is the polynomial in
/// tokens and passes that its time follows; counting operations instead of tokens makes the same
/// model cover recipes, audio tokens and skipped attentions.
enum class CostTerm : uint8_t {
  /// 1 for every unit.
  kUnit,
  /// 1 if the unit prepares its stage.
  kStart,
  /// 10^9 multiply-adds of products and convolutions, and of attention.
  kProducts,
  kAttention,
  /// 10^9 bytes of results.
  kBytes,
  /// 10^6 normal deviates drawn on the host.
  kNormals,
  /// 10^3 frames written into a file, with the sound that goes with them.
  kFrames,
};
inline constexpr int kCostTermCount = 7;
using CostTerms = std::array<double, kCostTermCount>;

/// A day: no unit takes that long, in seconds.
inline constexpr double kMostUnitSeconds = 86400;

struct CostUnit {
  CostKind kind = CostKind::kText;
  CostTerms terms{};
  /// What the unit prepares for later ones, or did.
  Preparation preparation;

  double operator[](CostTerm term) const { return terms[static_cast<int>(term)]; }
  double& operator[](CostTerm term) { return terms[static_cast<int>(term)]; }
};

}  // namespace ltx::server

#endif  // LTX_SERVER_GOVERNOR_COST_UNIT_H_
