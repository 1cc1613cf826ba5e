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
#include "server/governor/cost_unit.h"
#include "server/governor/first_use_model.h"

namespace ltx::server {

/// Seconds of units, learned from measured ones. Per kind, seconds are a sum of the terms with
/// coefficients that are not negative, so that more work never costs less; they are fitted to the
/// medians of the last measurements of each shape, every shape with equal relative weight. What the
/// sum says is then bent to run through the measured shapes, in order of size, since time is not
/// quite linear (larger tensors leave the caches); where they contradict each other, never down. A
/// shape that has been measured often is projected by its own median.
///
/// Units with something new about them (plans are made, graphs recorded, memory is touched) take
/// longer and do not enter the fit; what they took beyond the next unit of the same
/// computation goes to a FirstUseModel.
///
/// Plain arithmetic, no clock. Not thread-safe.
class CostModel {
 public:
  /// Seconds of a unit when nothing about it is new; nothing if no unit of the kind has been
  /// measured.
  std::optional<double> Predict(const CostUnit& unit) const;
  /// The same for a whole plan, units in order, and what they cost besides: for what they prepare,
  /// and for being the first of their computation and kind in this process, each at most once.
  struct Total {
    struct Unit {
      double seconds = 0;
      double first_use_seconds = 0;
    };
    /// False if a kind of the plan has never been measured; such units count as nothing.
    bool known = true;
    double seconds = 0;
    double first_use_seconds = 0;
    std::vector<Unit> units;
  };
  Total PredictAll(const std::vector<CostUnit>& units) const;

  /// A unit was measured; its preparation is what it did prepare. Measurements that are no time at
  /// all are left out.
  void Observe(const CostUnit& unit, double seconds);

  bool knows(CostKind kind) const {
    const Kind& known = kinds_[static_cast<int>(kind)];
    return !known.shapes.empty() || !known.pending.empty();
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
    CostTerms coefficients{};
    /// What the sum of terms says of measured shapes, and what they took; both rising.
    std::vector<std::pair<double, double>> bend;
    /// Computations met in this process.
    std::set<CostTerms> met;
    /// Units with something new, by computation, until one without tells what was due to that.
    struct Pending {
      CostTerms terms{};
      Novelty novelty;
      double seconds = 0;
    };
    std::map<CostTerms, std::vector<Pending>> pending;
  };

  /// `met`: computations of the kind before this unit.
  static Novelty NoveltyOf(const CostUnit& unit, const std::set<CostTerms>& met);
  /// Tells what units of a computation took beyond one of `terms` with nothing new.
  void Settle(Kind* kind, const CostTerms& computation, const CostTerms& terms, double seconds);
  void Fit(Kind* kind);
  /// What the terms of a kind that has been fitted come to.
  static double Evaluate(const Kind& kind, const CostTerms& terms);
  void Add(Kind* kind, const CostTerms& terms, double seconds);

  std::array<Kind, kCostKindCount> kinds_;
  FirstUseModel first_use_;
  int64_t clock_ = 0;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_GOVERNOR_COST_MODEL_H_
