#include "bench/sample.h"

#include <algorithm>
#include <vector>

namespace ltx::bench {

double Median(absl::Span<const double> values) {
  if (values.empty()) return 0;
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const size_t middle = sorted.size() / 2;
  if (sorted.size() % 2 == 1) return sorted[middle];
  return (sorted[middle - 1] + sorted[middle]) / 2;
}

double Minimum(absl::Span<const double> values) {
  return values.empty() ? 0 : *std::min_element(values.begin(), values.end());
}

nlohmann::json Summarize(absl::Span<const double> values) {
  return {{"median", Median(values)},
          {"min", Minimum(values)},
          {"all", std::vector<double>(values.begin(), values.end())}};
}

}  // namespace ltx::bench
