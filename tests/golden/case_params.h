#ifndef LTX_TESTS_GOLDEN_CASE_PARAMS_H_
#define LTX_TESTS_GOLDEN_CASE_PARAMS_H_

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tests/golden/golden_case.h"

namespace ltx::golden {

/// A number among the parameters. INVALID_ARGUMENT if it is absent or of another type.
template <typename T>
absl::StatusOr<T> Param(const GoldenCase& golden, const char* name) {
  const auto it = golden.params().find(name);
  if (it == golden.params().end() || !it->is_number()) {
    return absl::InvalidArgumentError(absl::StrCat("params.", name, " is not a number"));
  }
  return it->template get<T>();
}

/// The same for a parameter that may be absent.
template <typename T>
T ParamOr(const nlohmann::json& params, const char* name, T fallback) {
  const auto it = params.find(name);
  return it == params.end() || it->is_null() ? fallback : it->template get<T>();
}

/// The list of cases in params.cases.
inline absl::StatusOr<nlohmann::json> ParamCases(const GoldenCase& golden) {
  const auto it = golden.params().find("cases");
  if (it == golden.params().end() || !it->is_array()) {
    return absl::InvalidArgumentError("params.cases is not a list");
  }
  return *it;
}

}  // namespace ltx::golden

#endif  // LTX_TESTS_GOLDEN_CASE_PARAMS_H_
