#include "server/governor/cost_model.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

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
/// the video decoder's: far more sizes than a server meets in ordinary use, few enough shapes that a
/// fit takes a fraction of a millisecond.
constexpr size_t kShapesPerKind = 256;
constexpr size_t kFirstUseSamples = 16;
constexpr int kFormatVersion = 2;
/// A day: no unit takes that long.
constexpr double kMostSeconds = 86400;

double Median(std::deque<double> values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
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

/// Least squares over the unknowns in `free` alone, by the normal equations: the unknowns are few
/// and scaled alike. A pivot near zero leaves its unknown at zero.
CostTerms Solve(const std::array<std::array<double, kCostTermCount>, kCostTermCount>& normal,
                const CostTerms& right, const std::array<bool, kCostTermCount>& free) {
  std::vector<int> index;
  for (int i = 0; i < kCostTermCount; ++i) {
    if (free[i]) index.push_back(i);
  }
  const size_t n = index.size();
  std::vector<std::vector<double>> m(n, std::vector<double>(n + 1));
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) m[i][j] = normal[index[i]][index[j]];
    m[i][n] = right[index[i]];
  }
  std::vector<bool> solved(n, false);
  for (size_t column = 0; column < n; ++column) {
    size_t pivot = column;
    for (size_t row = column + 1; row < n; ++row) {
      if (std::abs(m[row][column]) > std::abs(m[pivot][column])) pivot = row;
    }
    std::swap(m[column], m[pivot]);
    // The columns have unit length, so that this is relative.
    if (std::abs(m[column][column]) < 1e-10) {
      for (size_t row = 0; row < n; ++row) m[row][column] = 0;
      m[column][column] = 1;
      m[column][n] = 0;
      for (size_t j = column + 1; j < n; ++j) m[column][j] = 0;
    }
    for (size_t row = 0; row < n; ++row) {
      if (row == column) continue;
      const double factor = m[row][column] / m[column][column];
      for (size_t j = column; j <= n; ++j) m[row][j] -= factor * m[column][j];
    }
  }
  CostTerms x{};
  for (size_t i = 0; i < n; ++i) x[index[i]] = m[i][n] / m[i][i];
  return x;
}

/// What is compiled once and used again: units that differ in preparation and noise alone share it.
CostTerms ComputationOf(const CostUnit& unit) {
  CostUnit computation;
  // Prompts differ in length by nature; what is set up for them is set up for all.
  if (unit.kind == CostKind::kText || unit.kind == CostKind::kEnhance) return computation.terms;
  computation[CostTerm::kProducts] = unit[CostTerm::kProducts];
  computation[CostTerm::kAttention] = unit[CostTerm::kAttention];
  // Work without products is known by its size.
  if (unit[CostTerm::kProducts] == 0) computation[CostTerm::kBytes] = unit[CostTerm::kBytes];
  return computation.terms;
}

}  // namespace

absl::string_view CostKindName(CostKind kind) {
  static constexpr absl::string_view kNames[kCostKindCount] = {
      "text", "enhance", "fuse", "forward", "upsample", "video_decode", "audio_decode", "mux"};
  return kNames[static_cast<int>(kind)];
}

CostTerms NonNegativeLeastSquares(const std::vector<CostTerms>& rows,
                                  const std::vector<double>& values) {
  // Columns of unit length: the terms have units of their own.
  CostTerms length{};
  for (const CostTerms& row : rows) {
    for (int i = 0; i < kCostTermCount; ++i) length[i] += row[i] * row[i];
  }
  for (double& l : length) l = l > 0 ? std::sqrt(l) : 0;
  std::array<std::array<double, kCostTermCount>, kCostTermCount> normal{};
  CostTerms right{};
  for (size_t r = 0; r < rows.size(); ++r) {
    CostTerms scaled{};
    for (int i = 0; i < kCostTermCount; ++i) {
      scaled[i] = length[i] > 0 ? rows[r][i] / length[i] : 0;
    }
    for (int i = 0; i < kCostTermCount; ++i) {
      right[i] += scaled[i] * values[r];
      for (int j = 0; j < kCostTermCount; ++j) normal[i][j] += scaled[i] * scaled[j];
    }
  }

  CostTerms x{};
  std::array<bool, kCostTermCount> free{};
  // Each round frees one unknown or ends; a bound keeps rounding from going round in circles.
  for (int round = 0; round < 4 * kCostTermCount; ++round) {
    int best = -1;
    double best_gradient = 1e-12;
    for (int i = 0; i < kCostTermCount; ++i) {
      if (free[i] || length[i] == 0) continue;
      const double gradient = right[i] - Dot(normal[i], x);
      if (gradient > best_gradient) {
        best_gradient = gradient;
        best = i;
      }
    }
    if (best < 0) break;
    free[best] = true;
    while (true) {
      const CostTerms target = Solve(normal, right, free);
      double step = 1;
      for (int i = 0; i < kCostTermCount; ++i) {
        if (free[i] && target[i] < 0) step = std::min(step, x[i] / (x[i] - target[i]));
      }
      for (int i = 0; i < kCostTermCount; ++i) {
        if (free[i]) x[i] += step * (target[i] - x[i]);
      }
      if (step >= 1) break;
      for (int i = 0; i < kCostTermCount; ++i) {
        if (free[i] && target[i] < 0 && x[i] <= 1e-15) {
          free[i] = false;
          x[i] = 0;
        }
      }
    }
  }
  for (int i = 0; i < kCostTermCount; ++i) {
    x[i] = length[i] > 0 ? std::max(x[i], 0.0) / length[i] : 0;
  }
  return x;
}

std::optional<double> CostModel::Predict(const CostUnit& unit) const {
  const Kind& kind = kinds_[static_cast<int>(unit.kind)];
  if (kind.shapes.empty()) {
    if (kind.provisional.empty()) return std::nullopt;
    // One measurement says nothing of the terms: by the ratio of the one that usually decides.
    constexpr int kDecides = static_cast<int>(CostTerm::kProducts);
    const Kind::Provisional& first = kind.provisional.begin()->second;
    const double then = first.terms[kDecides];
    return first.seconds * (then > 0 ? unit.terms[kDecides] / then : 1.0);
  }
  const auto known = kind.shapes.find(unit.terms);
  if (known != kind.shapes.end() && known->second.seconds.size() >= kTrustedSamples) {
    return Median(known->second.seconds);
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

double CostModel::FirstUse(const CostUnit& unit) const {
  const Kind& kind = kinds_[static_cast<int>(unit.kind)];
  if (kind.first_use.empty() || kind.met.count(ComputationOf(unit)) > 0) return 0;
  return std::max(0.0, Median(kind.first_use));
}

CostModel::Total CostModel::PredictAll(const std::vector<CostUnit>& units) const {
  Total total;
  std::set<std::pair<CostKind, CostTerms>> met;
  for (const CostUnit& unit : units) {
    const std::optional<double> seconds = Predict(unit);
    if (!seconds.has_value()) {
      total.known = false;
      continue;
    }
    total.seconds += *seconds;
    if (met.insert({unit.kind, ComputationOf(unit)}).second) {
      total.first_use_seconds += FirstUse(unit);
    }
  }
  return total;
}

void CostModel::Observe(const CostUnit& unit, double seconds) {
  if (!(seconds > 0) || seconds > kMostSeconds) return;
  Kind& kind = kinds_[static_cast<int>(unit.kind)];
  const CostTerms computation = ComputationOf(unit);
  if (kind.met.insert(computation).second) {
    kind.provisional[computation] = {unit.terms, seconds};
    if (kind.provisional.size() > kShapesPerKind) kind.provisional.erase(kind.provisional.begin());
    return;
  }
  Add(&kind, unit.terms, seconds);
  Fit(&kind);
  const auto first = kind.provisional.find(computation);
  if (first == kind.provisional.end()) return;
  // Against this unit, not against the fit: a fit through few shapes misses by more than first use.
  const double now = Evaluate(kind, unit.terms);
  const double then = Evaluate(kind, first->second.terms);
  const double steady = now > 0 ? seconds * then / now : seconds;
  // With its sign: where nothing is paid at first use, what the machine adds must cancel out.
  Push(&kind.first_use, first->second.seconds - steady, kFirstUseSamples);
  kind.provisional.erase(first);
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
  std::vector<CostTerms> rows;
  std::vector<double> values;
  for (const auto& [terms, shape] : kind->shapes) {
    const double seconds = Median(shape.seconds);
    CostTerms row = terms;
    for (double& term : row) term /= seconds;
    rows.push_back(row);
    values.push_back(1);
  }
  kind->coefficients = NonNegativeLeastSquares(rows, values);

  std::vector<std::pair<double, double>> points;
  for (const auto& [terms, shape] : kind->shapes) {
    const double sum = Dot(kind->coefficients, terms);
    if (sum > 0) points.emplace_back(sum, Median(shape.seconds));
  }
  std::sort(points.begin(), points.end());
  kind->bend.clear();
  for (size_t begin = 0; begin < points.size();) {
    size_t end = begin;
    double sum = 0;
    double seconds = 0;
    for (; end < points.size() && points[end].first <= kSameSize * points[begin].first; ++end) {
      sum += points[end].first;
      seconds += points[end].second;
    }
    const auto count = static_cast<double>(end - begin);
    const double least = kind->bend.empty() ? 0 : kind->bend.back().second;
    kind->bend.emplace_back(sum / count, std::max(seconds / count, least));
    begin = end;
  }
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
    root[std::string(CostKindName(static_cast<CostKind>(i)))] = {
        {"shapes", std::move(shapes)}, {"first_use", kinds_[i].first_use}};
  }
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
          !ReadNumbers(shape.value("seconds", json()), 1, kForwardsPerShape, 1e-9, kMostSeconds,
                       &seconds)) {
        return bad(absl::StrCat(name, ".shapes holds something that was never measured"));
      }
      CostTerms key{};
      std::copy(terms.begin(), terms.end(), key.begin());
      for (const double value : seconds) read.Add(&kind, key, value);
    }
    std::vector<double> first_use;
    if (!ReadNumbers(found->value("first_use", json()), 0, kFirstUseSamples, -kMostSeconds,
                     kMostSeconds, &first_use)) {
      return bad(absl::StrCat(name, ".first_use holds something that was never measured"));
    }
    kind.first_use.assign(first_use.begin(), first_use.end());
    if (!kind.shapes.empty()) read.Fit(&kind);
  }
  *this = std::move(read);
  return absl::OkStatus();
}

}  // namespace ltx::server
