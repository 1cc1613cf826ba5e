#ifndef LTX_KERNELS_CPU_STATISTICS_H_
#define LTX_KERNELS_CPU_STATISTICS_H_

#include <cmath>

#include "kernels/cpu/vector.h"

namespace ltx::cpu {

/// Sum over a row of f(element vector): four times eight running sums, so that each adds few enough
/// terms for rounding to stay near 1e-7 at the widths of transformer rows.
template <typename T, typename Function>
float RowSum(const T* row, int64_t count, const Function& f) {
  Vec sums[4] = {Zero(), Zero(), Zero(), Zero()};
  int64_t i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    for (int64_t k = 0; k < 4; ++k) sums[k] = sums[k] + f(Load(row + i + k * kLanes));
  }
  ForEachGroup(count - i, [&](int64_t offset, auto lanes) {
    sums[0] = sums[0] + lanes.Fill(f(lanes.Load(row + i + offset)), Zero());
  });
  return SumLanes((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

/// 1 / sqrt(mean of squares + epsilon).
template <typename T>
float InverseRms(const T* row, int64_t count, float epsilon) {
  const float sum = RowSum(row, count, [](Vec v) { return v * v; });
  return 1.0f / std::sqrt(sum / static_cast<float>(count) + epsilon);
}

}  // namespace ltx::cpu

#endif  // LTX_KERNELS_CPU_STATISTICS_H_
