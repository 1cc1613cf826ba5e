#include "kernels/cpu/vector.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace ltx::cpu {
namespace {

TEST(VectorTest, NarrowingEqualsTheScalarConversion) {
  // Every upper half with the lower halves around the tie.
  alignas(32) float values[kLanes];
  for (uint32_t upper = 0; upper <= 0xffff; ++upper) {
    constexpr uint32_t kLower[kLanes] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff, 0x4000, 0xc000};
    for (int i = 0; i < kLanes; ++i) {
      const uint32_t bits = upper << 16 | kLower[i];
      std::memcpy(&values[i], &bits, sizeof(bits));
    }
    BFloat16 narrowed[kLanes];
    Store(narrowed, Load(values));
    for (int i = 0; i < kLanes; ++i) {
      ASSERT_EQ(narrowed[i].bits, BFloat16(values[i]).bits) << upper << " lane " << i;
    }
  }
}

TEST(VectorTest, WideningIsExact) {
  for (uint32_t first = 0; first <= 0xffff; first += kLanes) {
    BFloat16 source[kLanes];
    for (int i = 0; i < kLanes; ++i) source[i].bits = static_cast<uint16_t>(first + i);
    float widened[kLanes];
    Store(widened, Load(source));
    for (int i = 0; i < kLanes; ++i) {
      const auto want = static_cast<float>(source[i]);
      ASSERT_EQ(std::memcmp(&widened[i], &want, sizeof(want)), 0) << first + i;
    }
  }
}

template <typename T>
void ExpectGroupsStayInside() {
  for (int64_t count = 0; count <= 35; ++count) {
    std::vector<T> source(count + 2, T(100.0f));
    std::vector<T> target(count + 2, T(-1.0f));
    for (int64_t i = 0; i < count; ++i) source[i + 1] = T(static_cast<float>(i));
    int64_t groups = 0;
    ForEachGroup(count, [&](int64_t i, auto lanes) {
      lanes.Store(target.data() + 1 + i, lanes.Load(source.data() + 1 + i) + Broadcast(1.0f));
      ++groups;
    });
    EXPECT_EQ(groups, (count + kLanes - 1) / kLanes);
    EXPECT_EQ(static_cast<float>(target.front()), -1.0f);
    EXPECT_EQ(static_cast<float>(target.back()), -1.0f);
    for (int64_t i = 0; i < count; ++i) {
      EXPECT_EQ(static_cast<float>(target[i + 1]), static_cast<float>(i + 1));
    }
  }
}

TEST(VectorTest, GroupsCoverEveryElementOnceAndNothingElse) {
  ExpectGroupsStayInside<float>();
  ExpectGroupsStayInside<BFloat16>();
}

TEST(VectorTest, PartialLoadsAreZeroBeyondTheEndAndFillReplacesThat) {
  const float source[kLanes] = {1, 2, 3, 4, 5, 6, 7, 8};
  float loaded[kLanes];
  Store(loaded, PartLanes{3}.Load(source));
  float filled[kLanes];
  Store(filled, PartLanes{3}.Fill(Load(source), Broadcast(-9.0f)));
  for (int i = 0; i < kLanes; ++i) {
    EXPECT_EQ(loaded[i], i < 3 ? source[i] : 0.0f);
    EXPECT_EQ(filled[i], i < 3 ? source[i] : -9.0f);
  }
}

TEST(VectorTest, Reductions) {
  const float values[kLanes] = {1, -2, 4, -8, 16, 32, -64, 128};
  EXPECT_EQ(SumLanes(Load(values)), 107.0f);
  EXPECT_EQ(MaxLanes(Load(values)), 128.0f);
  float swapped[kLanes];
  Store(swapped, SwapPairs(Load(values)));
  for (int i = 0; i < kLanes; ++i) EXPECT_EQ(swapped[i], values[i ^ 1]);
}

}  // namespace
}  // namespace ltx::cpu
