#ifndef LTX_KERNELS_CUDA_ROW_TEAM_H_
#define LTX_KERNELS_CUDA_ROW_TEAM_H_

#include <cstdint>

namespace ltx::cuda {

/// Launches in which a power-of-two team of threads owns a row: narrow rows share a block, wide
/// ones take it whole.
inline constexpr int kRowThreads = 256;
inline constexpr int kRowWarps = kRowThreads / 32;

/// Smallest power of two, at most a block, with team * per_thread >= items.
inline int TeamFor(int64_t items, int per_thread) {
  int team = 1;
  while (team < kRowThreads && static_cast<int64_t>(team) * per_thread < items) team *= 2;
  return team;
}

/// Blocks of kRowThreads for `rows` teams.
inline unsigned BlocksFor(int64_t rows, int team) {
  const int64_t rows_per_block = kRowThreads / team;
  return static_cast<unsigned>((rows + rows_per_block - 1) / rows_per_block);
}

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_ROW_TEAM_H_
