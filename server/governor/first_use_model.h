#ifndef LTX_SERVER_GOVERNOR_FIRST_USE_MODEL_H_
#define LTX_SERVER_GOVERNOR_FIRST_USE_MODEL_H_

#include <array>
#include <deque>
#include <vector>

#include "absl/status/status.h"
#include "kernels/preparation.h"
#include "server/governor/cost_unit.h"

namespace ltx::server {

/// What is new about a unit, to the process that runs it.
struct Novelty {
  CostKind kind = CostKind::kText;
  /// What the device and the model prepare.
  Preparation preparation;
  /// The first unit of its computation: memory is touched, code is compiled for a size.
  bool first_of_computation = false;
  /// The first unit of its kind: libraries start, code is loaded and compiled.
  bool first_of_kind = false;

  bool any() const { return first_of_computation || first_of_kind || preparation.any(); }
};

/// Seconds that a unit takes beyond its like because something about it is new, learned from units
/// measured. They are a sum: so much for each plan of attention, for each recording, and for a new
/// computation of the kind; in the first unit of a kind, what starting took besides. One price of a
/// thing holds for all kinds, so that a size of clip that was never made is projected by what it
/// will prepare. Prices are fitted to the least sum of absolute misses, none negative.
///
/// Plain arithmetic, no clock. Not thread-safe.
class FirstUseModel {
 public:
  double Predict(const Novelty& novelty) const;
  /// A unit with something new took `extra` seconds beyond one without; less than nothing where the
  /// machine's noise is larger than what was new.
  void Observe(const Novelty& novelty, double extra);

  /// What was observed, as lists of numbers, for the next process.
  std::vector<std::vector<double>> ToNumbers() const;
  /// Replaces what was learned. INVALID_ARGUMENT, and nothing is replaced, for numbers that
  /// ToNumbers cannot have made.
  absl::Status FromNumbers(const std::vector<std::vector<double>>& numbers);

 private:
  struct Sample {
    Novelty novelty;
    double extra = 0;
  };
  /// attentions, recorded, and a new computation of each kind.
  static constexpr int kPriceCount = 2 + kCostKindCount;
  static std::vector<double> TermsOf(const Novelty& novelty);

  void Add(const Sample& sample);
  void Fit();
  double PreparationSeconds(const Novelty& novelty) const;

  /// Units that prepared something for good, by kind, that only recorded, and first ones of a kind:
  /// apart, so that what happens often does not drive out what happens rarely.
  std::array<std::deque<Sample>, kCostKindCount> prepared_;
  std::deque<Sample> recorded_;
  std::array<std::deque<Sample>, kCostKindCount> first_;

  std::vector<double> prices_ = std::vector<double>(kPriceCount);
  std::array<double, kCostKindCount> start_seconds_{};
};

}  // namespace ltx::server

#endif  // LTX_SERVER_GOVERNOR_FIRST_USE_MODEL_H_
