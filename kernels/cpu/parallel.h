#ifndef LTX_KERNELS_CPU_PARALLEL_H_
#define LTX_KERNELS_CPU_PARALLEL_H_

#include <algorithm>
#include <cstdint>

namespace ltx::cpu {

/// Calls body(begin, end) on disjoint ranges that cover [0, count), on at most `threads` OpenMP
/// threads (oneDNN's own runtime here, so the two share one pool). Ranges hold at least `grain`
/// items: below that the hand-over costs more than the work. The split depends on count, threads
/// and grain alone.
template <typename Body>
void ParallelFor(int threads, int64_t count, int64_t grain, const Body& body) {
  if (count <= 0) return;
  const int64_t parts =
      std::clamp<int64_t>(count / std::max<int64_t>(grain, 1), 1, std::max(threads, 1));
  if (parts == 1) {
    body(int64_t{0}, count);
    return;
  }
#pragma omp parallel for num_threads(static_cast <int>(parts)) schedule(static, 1)
  for (int64_t part = 0; part < parts; ++part) {
    body(count * part / parts, count * (part + 1) / parts);
  }
}

/// Elements below which a loop of cheap (a few instructions) or costly (an exponential) steps is
/// not worth handing to a second thread: some ten microseconds of work.
inline constexpr int64_t kCheapGrain = 1 << 15;
inline constexpr int64_t kCostlyGrain = 1 << 13;

/// Rows of `width` elements that make up `elements`.
inline int64_t RowGrain(int64_t elements, int64_t width) {
  return elements / (width < 1 ? 1 : width) + 1;
}

}  // namespace ltx::cpu

#endif  // LTX_KERNELS_CPU_PARALLEL_H_
