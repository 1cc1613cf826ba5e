#include "kernels/cpu/strided_copy.h"

#include <cstdint>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"

namespace ltx::cpu {
namespace {

template <typename T>
void Check(const std::vector<StridedAxis>& axes) {
  std::vector<T> from(20000);
  std::iota(from.begin(), from.end(), T{1});
  std::vector<StridedAxis> in_bytes = axes;
  int64_t count = 1;
  for (StridedAxis& axis : in_bytes) {
    axis.stride *= sizeof(T);
    count *= axis.extent;
  }
  std::vector<T> want;
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i;
    int64_t index = 0;
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      index += rest % axis->extent * axis->stride;
      rest /= axis->extent;
    }
    want.push_back(from[index]);
  }
  for (const int threads : {1, 3}) {
    // One element more, which must stay as it is.
    std::vector<T> to(count + 1, T{0});
    StridedCopy(threads, from.data(), in_bytes, sizeof(T), to.data());
    EXPECT_EQ(to.back(), T{0});
    to.pop_back();
    EXPECT_EQ(to, want);
  }
}

template <typename T>
void CheckAll() {
  Check<T>({});
  Check<T>({{7, 1}});
  Check<T>({{7, 3}});
  Check<T>({{1, 5}, {6, 2}, {1, 9}});
  Check<T>({{4, 30}, {5, 6}, {6, 1}});       // one dense run
  Check<T>({{4, 1}, {5, 4}});                // a transposition
  Check<T>({{133, 1}, {129, 133}});          // a large one, with tails
  Check<T>({{3, 0}, {4, 2}});                // repetition
  Check<T>({{2, 3000}, {40, 1}, {60, 45}});  // planes
  Check<T>({{300, 50}, {2, 1}, {25, 2}});    // a short middle axis
  Check<T>({{3, 0}, {0, 1}});                // nothing
}

TEST(StridedCopyTest, EveryWidth) {
  CheckAll<uint8_t>();
  CheckAll<uint16_t>();
  CheckAll<uint32_t>();
  CheckAll<uint64_t>();
}

}  // namespace
}  // namespace ltx::cpu
