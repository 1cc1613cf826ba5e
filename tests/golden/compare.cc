#include "tests/golden/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/checkpoint/element_decode.h"
#include "kernels/status_macros.h"

namespace ltx::golden {
namespace {

/// Bounds from here on mark an output as information.
constexpr double kInformationBound = 1e9;
/// What a float output without an entry has to keep.
constexpr double kDefaultRelL2 = 1e-5;
constexpr double kUnbounded = std::numeric_limits<double>::infinity();

struct Tolerance {
  bool ignore = false;
  double rel_l2 = kUnbounded;
  double max_abs = kUnbounded;

  bool information_only() const {
    return ignore || (rel_l2 >= kInformationBound && max_abs >= kInformationBound);
  }
};

absl::StatusOr<double> Bound(const nlohmann::json& entry, const char* key,
                             const std::string& subject) {
  const auto it = entry.find(key);
  if (it == entry.end()) return kUnbounded;
  if (!it->is_number() || !(it->get<double>() >= 0.0)) {
    return absl::InvalidArgumentError(
        absl::StrCat(subject, ": ", key, " is ", it->dump(), ", legal is a number from 0"));
  }
  return it->get<double>();
}

absl::StatusOr<Tolerance> ToleranceOf(const GoldenCase& golden, const std::string& name,
                                      bool is_float) {
  const std::string key = absl::StrCat("out/", name);
  Tolerance tolerance;
  const auto entry = golden.tolerance().find(key);
  if (entry != golden.tolerance().end()) {
    const std::string subject = absl::StrCat(golden.path(), ": tolerance of ", key);
    if (!entry->is_object()) {
      return absl::InvalidArgumentError(absl::StrCat(subject, " is not an object"));
    }
    const auto ignore = entry->find("ignore");
    tolerance.ignore = ignore != entry->end() && ignore->is_boolean() && ignore->get<bool>();
    LTX_ASSIGN_OR_RETURN(tolerance.rel_l2, Bound(*entry, "rel_l2", subject));
    LTX_ASSIGN_OR_RETURN(tolerance.max_abs, Bound(*entry, "max_abs", subject));
    if (tolerance.ignore || entry->contains("rel_l2") || entry->contains("max_abs")) {
      return tolerance;
    }
  }
  if (is_float) {
    tolerance.rel_l2 = kDefaultRelL2;
  } else {
    tolerance.rel_l2 = tolerance.max_abs = 0.0;
  }
  return tolerance;
}

/// `error` in units of `bound`: above 1 is a failure.
double Severity(double error, double bound) {
  if (bound == kUnbounded) return 0.0;
  if (error == 0.0) return 0.0;
  return bound == 0.0 ? kUnbounded : error / bound;
}

/// Measures `ours` against `reference` (equal sizes) and fills errors, severity and verdict.
void Judge(const std::vector<double>& reference, const std::vector<double>& ours,
           const Tolerance& tolerance, OutputComparison* result) {
  double difference_sum = 0.0;
  double reference_sum = 0.0;
  size_t not_finite = 0;
  size_t worst = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    if (!std::isfinite(ours[i]) || !std::isfinite(reference[i])) {
      ++not_finite;
      continue;
    }
    const double difference = ours[i] - reference[i];
    difference_sum += difference * difference;
    reference_sum += reference[i] * reference[i];
    if (std::abs(difference) > result->max_abs) {
      result->max_abs = std::abs(difference);
      worst = i;
    }
  }
  const double difference_norm = std::sqrt(difference_sum);
  const bool zero_reference = reference_sum == 0.0;
  if (zero_reference) {
    result->rel_l2 = difference_norm == 0.0 ? 0.0 : kUnbounded;
  } else {
    result->rel_l2 = difference_norm / std::sqrt(reference_sum);
  }
  double rel_l2_bound = tolerance.rel_l2;
  double max_abs_bound = tolerance.max_abs;
  if (zero_reference) {
    rel_l2_bound = kUnbounded;
    if (max_abs_bound == kUnbounded) max_abs_bound = 0.0;
  }
  result->severity =
      std::max(Severity(result->rel_l2, rel_l2_bound), Severity(result->max_abs, max_abs_bound));
  if (not_finite > 0) {
    result->severity = kUnbounded;
    result->message =
        absl::StrFormat("%d of %d values are NaN or infinite (ours or the reference's)", not_finite,
                        reference.size());
    return;
  }
  result->passed = result->rel_l2 <= rel_l2_bound && result->max_abs <= max_abs_bound;
  if (!result->passed) {
    result->message = absl::StrFormat(
        "rel_l2 %.3g (bound %.3g), max_abs %.3g (bound %.3g) at element %d: %.9g, reference %.9g",
        result->rel_l2, rel_l2_bound, result->max_abs, max_abs_bound, worst, ours[worst],
        reference[worst]);
  }
}

absl::string_view KindName(bool is_float) { return is_float ? "float" : "integer"; }

OutputComparison CompareOne(const std::string& name,
                            const checkpoint::SafetensorsFile::Entry& entry,
                            const Tolerance& tolerance, const GoldenOutputs& ours) {
  OutputComparison result;
  result.name = name;
  result.information_only = tolerance.information_only();
  const auto it = ours.values().find(name);
  if (it == ours.values().end()) {
    result.severity = kUnbounded;
    result.message = "missing";
  } else {
    const GoldenOutputs::Value& value = it->second;
    const bool is_float = value.kind == GoldenOutputs::Kind::kFloat;
    if (is_float != IsFloat(entry.dtype)) {
      result.severity = kUnbounded;
      result.message =
          absl::StrCat("is ", KindName(is_float), ", reference is ", DTypeName(entry.dtype));
    } else if (value.shape != entry.shape ||
               static_cast<int64_t>(value.elements.size()) != entry.shape.num_elements()) {
      result.severity = kUnbounded;
      result.message =
          absl::StrCat("shape ", value.shape.ToString(), " with ", value.elements.size(),
                       " elements, reference ", entry.shape.ToString());
    } else {
      Judge(checkpoint::DecodeDoubles(entry), value.elements, tolerance, &result);
    }
  }
  if (result.information_only) {
    result.passed = true;
    result.severity = 0.0;
    result.message.clear();
  }
  return result;
}

}  // namespace

absl::StatusOr<std::vector<OutputComparison>> CompareOutputs(const GoldenCase& golden,
                                                             const GoldenOutputs& ours) {
  std::vector<OutputComparison> results;
  for (const std::string& name : golden.OutputNames()) {
    const auto& entry = golden.file().entries().find(absl::StrCat("out/", name))->second;
    LTX_ASSIGN_OR_RETURN(Tolerance tolerance, ToleranceOf(golden, name, IsFloat(entry.dtype)));
    // Integers with a bound are rounded values, pixels say; those without are exact in any dtype.
    if (ours.bf16_rel_l2().has_value() && (IsFloat(entry.dtype) || tolerance.rel_l2 > 0.0)) {
      tolerance.rel_l2 = std::max(tolerance.rel_l2, *ours.bf16_rel_l2());
      tolerance.max_abs = kUnbounded;
    }
    const auto value = ours.values().find(name);
    if (ours.bf16_rel_l2().has_value() && value != ours.values().end() &&
        value->second.bf16_slack > 0.0) {
      tolerance.rel_l2 = kUnbounded;
      tolerance.max_abs = value->second.bf16_slack;
    }
    results.push_back(CompareOne(name, entry, tolerance, ours));
  }
  if (results.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(golden.path(), ": holds no out/ tensor"));
  }
  return results;
}

}  // namespace ltx::golden
