#ifndef LTX_SERVER_GOVERNOR_MEDIAN_H_
#define LTX_SERVER_GOVERNOR_MEDIAN_H_

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ltx::server {

/// Of at least one value; of an even number the mean of the middle two.
inline double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace ltx::server

#endif  // LTX_SERVER_GOVERNOR_MEDIAN_H_
