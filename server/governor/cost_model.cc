#include "server/governor/cost_model.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"
#include "nlohmann/json.hpp"
#include "server/governor/least_squares.h"
#include "server/governor/median.h"

namespace ltx::server {
namespace {

using nlohmann::json;

/// Measurements kept of one shape: enough for a median that one bad minute does not move. Of most
/// kinds a clip has one unit, of forwards some ten of a shape, and one clip must not decide.
constexpr size_t kSamplesPerShape = 9;
constexpr size_t kForwardsPerShape = 33;
/// Shapes whose sums differ by less than this count as one size.
constexpr double kSameSize = 1.1;
/// From so many on a shape's own median is better than the fit.
constexpr size_t kTrustedSamples = 3;
/// Shapes kept of one kind; the ones not seen for longest go first. A size of clip has a dozen of
/// the video decoder's: far more sizes than a server meets in ordinary use, few enough shapes that
/// a fit takes a fraction of a millisecond.
constexpr size_t kShapesPerKind = 256;
/// Units of one computation that wait to be told what was new about them: a clip has two, the one
/// that is issued and the one that is recorded.
constexpr size_t kPendingUnits = 4;
/// Computations remembered as met, any of which goes when there are more. A server sees dozens.
constexpr size_t kMostMet = 4096;
constexpr int kFormatVersion = 3;
/// Bounds on first uses in a file, above what FirstUseModel keeps.
constexpr size_t kMostFirstUses = 256;
constexpr size_t kNumbersOfFirstUse = 16;

double MedianOf(const std::deque<double>& seconds) {
  return Median(std::vector<double>(seconds.begin(), seconds.end()));
}

double Dot(const CostTerms& a, const CostTerms& b) {
  double sum = 0;
  for (int i = 0; i < kCostTermCount; ++i) sum += a[i] * b[i];
  return sum;
}

void Push(std::deque<double>* values, double value, size_t most) {
  values->push_back(value);
  if (values->size() > most) values->pop_front();
}

/// The rising curve through (sum, seconds), in order of sums: sums that are nearly the same count
/// as one, and where a larger sum took less, both count as one ("pool adjacent violators": Ayer et
/// al., "An empirical distribution function for sampling with incomplete information", 1955), by
/// the mean of their logarithms, so that one that stands out does not lift all that follow.
std::vector<std::pair<double, double>> Rising(
    const std::vector<std::pair<double, double>>& points) {
  struct Pool {
    double sum = 0;
    double log_seconds = 0;
    double count = 0;
  };
  std::vector<Pool> pools;
  for (size_t begin = 0; begin < points.size();) {
    Pool pool;
    size_t end = begin;
    for (; end < points.size() && points[end].first <= kSameSize * points[begin].first; ++end) {
      pool.sum += points[end].first;
      pool.log_seconds += std::log(points[end].second);
      pool.count += 1;
    }
    begin = end;
    while (!pools.empty() &&
           pools.back().log_seconds / pools.back().count > pool.log_seconds / pool.count) {
      pool.sum += pools.back().sum;
      pool.log_seconds += pools.back().log_seconds;
      pool.count += pools.back().count;
      pools.pop_back();
    }
    pools.push_back(pool);
  }
  std::vector<std::pair<double, double>> curve;
  curve.reserve(pools.size());
  for (const Pool& pool : pools) {
    curve.emplace_back(pool.sum / pool.count, std::exp(pool.log_seconds / pool.count));
  }
  return curve;
}

/// What is compiled once and used again: units that differ in preparation and noise alone share it.
CostTerms ComputationOf(const CostUnit& unit) {
  CostUnit computation;
  // Prompts differ in length by nature, and the encoder of files knows no sizes: what is set up for
  // one is set up for all.
  if (unit.kind == CostKind::kText || unit.kind == CostKind::kEnhance ||
      unit.kind == CostKind::kMux) {
    return computation.terms;
  }
  computation[CostTerm::kProducts] = unit[CostTerm::kProducts];
  computation[CostTerm::kAttention] = unit[CostTerm::kAttention];
  // Work without products is known by its size.
  if (unit[CostTerm::kProducts] == 0) computation[CostTerm::kBytes] = unit[CostTerm::kBytes];
  return computation.terms;
}

}  // namespace

std::optional<double> CostModel::Predict(const CostUnit& unit) const {
  const Kind& kind = kinds_[static_cast<int>(unit.kind)];
  if (kind.shapes.empty()) {
    if (kind.pending.empty()) return std::nullopt;
    // One measurement says nothing of the terms: by the ratio of the one that usually decides.
    constexpr int kDecides = static_cast<int>(CostTerm::kProducts);
    const Kind::Pending& first = kind.pending.begin()->second.front();
    const double then = first.terms[kDecides];
    return first.seconds * (then > 0 ? unit.terms[kDecides] / then : 1.0);
  }
  const auto known = kind.shapes.find(unit.terms);
  if (known != kind.shapes.end() && known->second.seconds.size() >= kTrustedSamples) {
    return MedianOf(known->second.seconds);
  }
  return Evaluate(kind, unit.terms);
}

double CostModel::Evaluate(const Kind& kind, const CostTerms& terms) {
  const double sum = Dot(kind.coefficients, terms);
  const auto& bend = kind.bend;
  if (bend.empty()) return sum;
  const auto above = std::find_if(bend.begin(), bend.end(),
                                  [sum](const auto& point) { return point.first >= sum; });
  if (above == bend.begin()) return sum * above->second / above->first;
  const auto below = std::prev(above);
  if (above == bend.end()) return sum * below->second / below->first;
  const double share = (sum - below->first) / (above->first - below->first);
  return below->second + share * (above->second - below->second);
}

Novelty CostModel::NoveltyOf(const CostUnit& unit, const std::set<CostTerms>& met) {
  return {unit.kind, unit.preparation, met.count(ComputationOf(unit)) == 0, met.empty()};
}

CostModel::Total CostModel::PredictAll(const std::vector<CostUnit>& units) const {
  Total total;
  std::array<std::set<CostTerms>, kCostKindCount> met;
  for (int i = 0; i < kCostKindCount; ++i) met[i] = kinds_[i].met;
  for (const CostUnit& unit : units) {
    std::set<CostTerms>& met_of_kind = met[static_cast<int>(unit.kind)];
    const std::optional<double> seconds = Predict(unit);
    total.known = total.known && seconds.has_value();
    Total::Unit predicted = {seconds.value_or(0)};
    if (seconds.has_value()) {
      predicted.first_use_seconds = first_use_.Predict(NoveltyOf(unit, met_of_kind));
    }
    total.seconds += predicted.seconds;
    total.first_use_seconds += predicted.first_use_seconds;
    total.units.push_back(predicted);
    met_of_kind.insert(ComputationOf(unit));
  }
  return total;
}

void CostModel::Observe(const CostUnit& unit, double seconds) {
  if (!(seconds > 0) || seconds > kMostUnitSeconds) return;
  Kind& kind = kinds_[static_cast<int>(unit.kind)];
  const CostTerms computation = ComputationOf(unit);
  const Novelty novelty = NoveltyOf(unit, kind.met);
  if (!novelty.any()) {
    Add(&kind, unit.terms, seconds);
    Fit(&kind);
    Settle(&kind, computation, unit.terms, seconds);
    return;
  }
  kind.met.insert(computation);
  if (kind.met.size() > kMostMet) kind.met.erase(kind.met.begin());
  std::vector<Kind::Pending>& pending = kind.pending[computation];
  if (pending.size() < kPendingUnits) pending.push_back({unit.terms, novelty, seconds});
  if (kind.pending.size() <= kShapesPerKind) return;
  // Not the one that has just come.
  auto oldest = kind.pending.begin();
  if (oldest->first == computation) ++oldest;
  kind.pending.erase(oldest);
}

void CostModel::Settle(Kind* kind, const CostTerms& computation, const CostTerms& terms,
                       double seconds) {
  const auto found = kind->pending.find(computation);
  if (found == kind->pending.end()) return;
  for (const Kind::Pending& unit : found->second) {
    // Against this unit, not against the fit: a fit through few shapes misses by more than first
    // use.
    const double now = Evaluate(*kind, terms);
    const double then = Evaluate(*kind, unit.terms);
    const double steady = now > 0 ? seconds * then / now : seconds;
    // With its sign: where nothing is paid at first use, what the machine adds must cancel out.
    first_use_.Observe(unit.novelty, unit.seconds - steady);
  }
  kind->pending.erase(found);
}

void CostModel::Add(Kind* kind, const CostTerms& terms, double seconds) {
  Shape& shape = kind->shapes[terms];
  const bool forwards = kind == &kinds_[static_cast<int>(CostKind::kForward)];
  Push(&shape.seconds, seconds, forwards ? kForwardsPerShape : kSamplesPerShape);
  shape.last = ++clock_;
  if (kind->shapes.size() <= kShapesPerKind) return;
  kind->shapes.erase(
      std::min_element(kind->shapes.begin(), kind->shapes.end(),
                       [](const auto& a, const auto& b) { return a.second.last < b.second.last; }));
}

void CostModel::Fit(Kind* kind) {
  std::vector<std::vector<double>> rows;
  for (const auto& [terms, shape] : kind->shapes) {
    const double seconds = MedianOf(shape.seconds);
    std::vector<double> row(terms.begin(), terms.end());
    for (double& term : row) term /= seconds;
    rows.push_back(std::move(row));
  }
  const std::vector<double> x =
      NonNegativeLeastSquares(rows, std::vector<double>(rows.size(), 1.0));
  std::copy(x.begin(), x.end(), kind->coefficients.begin());

  std::vector<std::pair<double, double>> points;
  for (const auto& [terms, shape] : kind->shapes) {
    const double sum = Dot(kind->coefficients, terms);
    if (sum > 0) points.emplace_back(sum, MedianOf(shape.seconds));
  }
  std::sort(points.begin(), points.end());
  kind->bend = Rising(points);
}

int CostModel::num_shapes() const {
  size_t count = 0;
  for (const Kind& kind : kinds_) count += kind.shapes.size();
  return static_cast<int>(count);
}

std::string CostModel::ToJson() const {
  json root = {{"format", kFormatVersion}};
  for (int i = 0; i < kCostKindCount; ++i) {
    json shapes = json::array();
    for (const auto& [terms, shape] : kinds_[i].shapes) {
      shapes.push_back({{"terms", terms}, {"seconds", shape.seconds}});
    }
    root[std::string(CostKindName(static_cast<CostKind>(i)))] = {{"shapes", std::move(shapes)}};
  }
  root["first_use"] = first_use_.ToNumbers();
  return root.dump(1);
}

namespace {

/// Numbers in [low, high], at most `most` of them; false for anything else.
bool ReadNumbers(const json& value, size_t least, size_t most, double low, double high,
                 std::vector<double>* numbers) {
  if (!value.is_array() || value.size() < least || value.size() > most) return false;
  for (const json& item : value) {
    if (!item.is_number()) return false;
    const auto number = item.get<double>();
    if (!(number >= low && number <= high)) return false;
    numbers->push_back(number);
  }
  return true;
}

}  // namespace

absl::Status CostModel::FromJson(absl::string_view text) {
  const json root = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  const auto bad = [](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("cost model: ", what));
  };
  if (!root.is_object() || root.value("format", json()) != json(kFormatVersion)) {
    return bad("not a file of this format");
  }
  CostModel read;
  for (int i = 0; i < kCostKindCount; ++i) {
    const std::string name(CostKindName(static_cast<CostKind>(i)));
    const auto found = root.find(name);
    if (found == root.end() || !found->is_object()) return bad(absl::StrCat(name, " is missing"));
    const json shapes = found->value("shapes", json());
    if (!shapes.is_array() || shapes.size() > kShapesPerKind) {
      return bad(absl::StrCat(name, ".shapes is no list of at most ", kShapesPerKind));
    }
    Kind& kind = read.kinds_[i];
    for (const json& shape : shapes) {
      std::vector<double> terms;
      std::vector<double> seconds;
      constexpr double kMostTerm = 1e15;
      if (!shape.is_object() ||
          !ReadNumbers(shape.value("terms", json()), kCostTermCount, kCostTermCount, 0, kMostTerm,
                       &terms) ||
          !ReadNumbers(shape.value("seconds", json()), 1, kForwardsPerShape, 1e-9, kMostUnitSeconds,
                       &seconds)) {
        return bad(absl::StrCat(name, ".shapes holds something that was never measured"));
      }
      CostTerms key{};
      std::copy(terms.begin(), terms.end(), key.begin());
      for (const double value : seconds) read.Add(&kind, key, value);
    }
    if (!kind.shapes.empty()) read.Fit(&kind);
  }
  const json first_uses = root.value("first_use", json());
  if (!first_uses.is_array() || first_uses.size() > kMostFirstUses) {
    return bad(absl::StrCat("first_use is no list of at most ", kMostFirstUses));
  }
  std::vector<std::vector<double>> numbers(first_uses.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    // Which numbers are legal where, FirstUseModel knows.
    constexpr double kAny = 1e18;
    if (!ReadNumbers(first_uses[i], 0, kNumbersOfFirstUse, -kAny, kAny, &numbers[i])) {
      return bad("first_use holds something that is no list of numbers");
    }
  }
  LTX_RETURN_IF_ERROR(read.first_use_.FromNumbers(numbers));
  *this = std::move(read);
  return absl::OkStatus();
}

}  // namespace ltx::server
