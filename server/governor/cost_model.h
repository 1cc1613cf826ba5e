#ifndef LTX_SERVER_GOVERNOR_COST_MODEL_H_
#define LTX_SERVER_GOVERNOR_COST_MODEL_H_

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

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

struct CostUnit {
  CostKind kind = CostKind::kText;
  CostTerms terms{};

  double operator[](CostTerm term) const { return terms[static_cast<int>(term)]; }
  double& operator[](CostTerm term) { return terms[static_cast<int>(term)]; }
};

/// argmin |A x - y| over x >= 0 (Lawson and Hanson, "Solving Least Squares Problems", chapter 23),
/// on a handful of unknowns.
CostTerms NonNegativeLeastSquares(const std::vector<CostTerms>& rows,
                                  const std::vector<double>& values);

/// Seconds of units, learned from measured ones. Per kind, seconds are a sum of the terms with
/// coefficients that are not negative, so that more work never costs less; they are fitted to the
/// medians of the last measurements of each shape, every shape with equal relative weight. What the
/// sum says is then bent to run through the measured shapes, in order of size, since time is not
/// quite linear (larger tensors leave the caches); where they contradict each other, never down. A
/// shape that has been measured often is projected by its own median.
///
/// The first unit in a process with certain products and attentions costs more (kernels are
/// compiled, graphs captured, memory is touched): it does not enter the fit; what it took beyond
/// the next unit of the same computation is learned apart, per kind.
///
/// Plain arithmetic, no clock. Not thread-safe.
class CostModel {
 public:
  /// Seconds of a unit that is not the first of its computation; nothing if no unit of the kind has
  /// been measured.
  std::optional<double> Predict(const CostUnit& unit) const;
  /// What the unit costs besides if it is the first of its computation in this process; 0 if it is
  /// not.
  double FirstUse(const CostUnit& unit) const;
  /// The same for a whole plan: units in order, each computation new at most once.
  struct Total {
    /// False if a kind of the plan has never been measured; the sums leave it out.
    bool known = true;
    double seconds = 0;
    double first_use_seconds = 0;
  };
  Total PredictAll(const std::vector<CostUnit>& units) const;

  /// A unit was measured. Measurements that are no time at all are left out.
  void Observe(const CostUnit& unit, double seconds);

  bool knows(CostKind kind) const {
    const Kind& known = kinds_[static_cast<int>(kind)];
    return !known.shapes.empty() || !known.provisional.empty();
  }
  /// Shapes measured, over all kinds.
  int num_shapes() const;
  const CostTerms& coefficients(CostKind kind) const {
    return kinds_[static_cast<int>(kind)].coefficients;
  }

  /// The measurements as JSON, for the next process.
  std::string ToJson() const;
  /// Replaces what was learned. INVALID_ARGUMENT, and nothing is replaced, for text that is not
  /// what ToJson makes: it may come from anywhere.
  absl::Status FromJson(absl::string_view text);

 private:
  struct Shape {
    std::deque<double> seconds;
    /// Order of the last measurement.
    int64_t last = 0;
  };
  struct Kind {
    std::map<CostTerms, Shape> shapes;
    std::deque<double> first_use;
    CostTerms coefficients{};
    /// What the sum of terms says of measured shapes, and what they took; both rising.
    std::vector<std::pair<double, double>> bend;
    /// Computations met in this process.
    std::set<CostTerms> met;
    /// First units of their computation, until a second one tells how much was first use.
    struct Provisional {
      CostTerms terms{};
      double seconds = 0;
    };
    std::map<CostTerms, Provisional> provisional;
  };

  void Fit(Kind* kind);
  /// What the terms of a kind that has been fitted come to.
  static double Evaluate(const Kind& kind, const CostTerms& terms);
  void Add(Kind* kind, const CostTerms& terms, double seconds);

  std::array<Kind, kCostKindCount> kinds_;
  int64_t clock_ = 0;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_GOVERNOR_COST_MODEL_H_
