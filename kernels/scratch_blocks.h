#ifndef LTX_KERNELS_SCRATCH_BLOCKS_H_
#define LTX_KERNELS_SCRATCH_BLOCKS_H_

#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <vector>

#include "absl/types/span.h"

namespace ltx {

/// Scratch of an operation: the blocks that it holds at once, in bytes, in the order in which it
/// takes them. A pool cuts its segments by the single block, so their sum would not tell what it
/// holds afterwards.
class ScratchBlocks {
 public:
  ScratchBlocks() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): most operations take one block.
  ScratchBlocks(int64_t bytes) : ScratchBlocks({bytes}) {}
  /// Without those of no bytes.
  ScratchBlocks(std::initializer_list<int64_t> blocks) {
    for (const int64_t bytes : blocks) {
      if (bytes > 0) blocks_.push_back(bytes);
    }
  }

  int64_t bytes() const { return std::accumulate(blocks_.begin(), blocks_.end(), int64_t{0}); }
  absl::Span<const int64_t> blocks() const { return blocks_; }

 private:
  std::vector<int64_t> blocks_;
};

}  // namespace ltx

#endif  // LTX_KERNELS_SCRATCH_BLOCKS_H_
