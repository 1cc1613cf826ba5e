#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/test_util.h"

namespace ltx::cpu {
namespace {

constexpr DType kWidths[] = {DType::kU8, DType::kBF16, DType::kI32, DType::kI64};

class LayoutTest : public CpuDeviceTest {
 protected:
  /// Every element distinct as far as its width allows.
  Tensor Counting(const Shape& shape, DType dtype) {
    auto tensor = device_->Allocate(shape, dtype, MemoryOwner::kActivations);
    EXPECT_TRUE(tensor.ok());
    const int64_t width = SizeOf(dtype);
    std::vector<uint8_t> bytes(tensor->num_bytes());
    for (int64_t i = 0; i < tensor->num_elements(); ++i) {
      const uint64_t value = static_cast<uint64_t>(i) * 2654435761u + 1;
      std::memcpy(bytes.data() + i * width, &value, width);
    }
    EXPECT_TRUE(device_->Upload(bytes, *tensor).ok());
    return *tensor;
  }

  /// Element `index` of `x` as bytes; -1 means zero.
  std::vector<uint8_t> Pick(const Tensor& x, const std::vector<int64_t>& indices) {
    const std::vector<uint8_t> all = Bytes(x);
    const int64_t width = SizeOf(x.dtype());
    std::vector<uint8_t> picked(indices.size() * width, 0);
    for (size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] >= 0) {
        std::memcpy(picked.data() + i * width, all.data() + indices[i] * width, width);
      }
    }
    return picked;
  }

  void CheckPermute(const Shape& shape, const std::vector<int>& order) {
    for (const DType dtype : kWidths) {
      const Tensor x = Counting(shape, dtype);
      auto y = device_->Permute(x, order);
      ASSERT_TRUE(y.ok()) << y.status();
      std::vector<int64_t> stride(order.size(), 1);
      for (int i = x.rank() - 2; i >= 0; --i) stride[i] = stride[i + 1] * x.dim(i + 1);
      std::vector<int64_t> indices(y->num_elements());
      for (int64_t i = 0; i < y->num_elements(); ++i) {
        int64_t rest = i;
        int64_t index = 0;
        for (int axis = y->rank() - 1; axis >= 0; --axis) {
          index += rest % y->dim(axis) * stride[order[axis]];
          rest /= y->dim(axis);
        }
        indices[i] = index;
      }
      EXPECT_EQ(Bytes(*y), Pick(x, indices)) << shape.ToString() << " " << DTypeName(dtype);
    }
  }
};

TEST_F(LayoutTest, Permute) {
  CheckPermute({}, {});
  CheckPermute({5}, {0});
  CheckPermute({37, 41}, {1, 0});
  CheckPermute({300, 257}, {1, 0});
  CheckPermute({2, 3, 5, 7}, {0, 2, 1, 3});
  CheckPermute({2, 12, 3, 5, 7}, {0, 2, 3, 4, 1});
  CheckPermute({2, 3, 5, 7, 12}, {0, 4, 1, 2, 3});
  CheckPermute({2, 3, 4, 5, 6, 7}, {5, 3, 1, 0, 2, 4});
  CheckPermute({2, 3, 4, 5, 6, 7}, {0, 1, 2, 3, 4, 5});
  CheckPermute({1, 3, 1, 5}, {3, 2, 1, 0});
  CheckPermute({3, 0, 5}, {2, 1, 0});
  // Enough for several threads.
  CheckPermute({64, 65, 66}, {2, 0, 1});
  CheckPermute({64, 65, 66}, {1, 2, 0});
}

TEST_F(LayoutTest, PermuteRefusesWrongOrders) {
  const Tensor x = Counting({2, 3}, DType::kF32);
  for (const std::vector<int>& order : {std::vector<int>{0}, {0, 0}, {0, 2}, {-1, 0}}) {
    EXPECT_EQ(device_->Permute(x, order).status().code(), absl::StatusCode::kInternal);
  }
}

TEST_F(LayoutTest, Slice) {
  for (const DType dtype : kWidths) {
    const Tensor x = Counting({3, 5, 7}, dtype);
    for (const auto& [axis, begin, end] : std::vector<std::array<int, 3>>{
             {0, 1, 3}, {1, 2, 4}, {2, 0, 6}, {-1, 3, 3}, {0, 0, 3}, {-2, 4, 5}}) {
      auto y = device_->Slice(x, axis, begin, end);
      ASSERT_TRUE(y.ok()) << y.status();
      std::vector<int64_t> indices;
      const int a = axis < 0 ? axis + 3 : axis;
      for (int64_t i = 0; i < 3; ++i)
        for (int64_t j = 0; j < 5; ++j)
          for (int64_t k = 0; k < 7; ++k) {
            const int64_t at[3] = {i, j, k};
            if (at[a] >= begin && at[a] < end) indices.push_back((i * 5 + j) * 7 + k);
          }
      EXPECT_EQ(y->dim(axis), end - begin);
      EXPECT_EQ(Bytes(*y), Pick(x, indices));
    }
  }
  const Tensor x = Counting({3, 5}, DType::kF32);
  EXPECT_EQ(device_->Slice(x, 1, 0, 6).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(device_->Slice(x, 1, 3, 2).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(device_->Slice(x, 2, 0, 1).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(device_->Slice(Tensor(), 0, 0, 1).status().code(), absl::StatusCode::kInternal);
}

TEST_F(LayoutTest, ConcatUndoesSlice) {
  for (const DType dtype : kWidths) {
    const Tensor x = Counting({3, 5, 7}, dtype);
    for (const int axis : {0, 1, 2, -1}) {
      const int64_t extent = x.dim(axis);
      std::vector<Tensor> parts;
      for (const auto& [begin, end] :
           std::vector<std::pair<int64_t, int64_t>>{{0, 1}, {1, 1}, {1, extent}}) {
        auto part = device_->Slice(x, axis, begin, end);
        ASSERT_TRUE(part.ok());
        parts.push_back(*part);
      }
      auto y = device_->Concat(parts, axis);
      ASSERT_TRUE(y.ok()) << y.status();
      EXPECT_EQ(y->shape(), x.shape());
      EXPECT_EQ(Bytes(*y), Bytes(x));
    }
  }
  const Tensor a = Counting({3, 5}, DType::kF32);
  EXPECT_EQ(device_->Concat({}, 0).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(device_->Concat({a, Counting({3, 4}, DType::kF32)}, 0).status().code(),
            absl::StatusCode::kInternal);
  EXPECT_EQ(device_->Concat({a, Counting({3, 5}, DType::kI32)}, 0).status().code(),
            absl::StatusCode::kInternal);
}

TEST_F(LayoutTest, Pad) {
  const auto seen = [](int64_t p, int64_t extent, PadMode mode) -> int64_t {
    if (p >= 0 && p < extent) return p;
    switch (mode) {
      case PadMode::kZeros:
        return -1;
      case PadMode::kReplicate:
        return p < 0 ? 0 : extent - 1;
      case PadMode::kReflect:
        return p < 0 ? -p : 2 * extent - 2 - p;
      case PadMode::kCircular:
        return (p + 10 * extent) % extent;
    }
    return -1;
  };
  for (const DType dtype : kWidths) {
    const Tensor x = Counting({4, 5, 6}, dtype);
    for (const PadMode mode :
         {PadMode::kZeros, PadMode::kReplicate, PadMode::kReflect, PadMode::kCircular}) {
      for (int axis = 0; axis < 3; ++axis) {
        auto y = device_->Pad(x, axis, 3, 2, mode);
        ASSERT_TRUE(y.ok()) << y.status();
        std::vector<int64_t> indices;
        const Shape& shape = y->shape();
        for (int64_t i = 0; i < shape.dim(0); ++i)
          for (int64_t j = 0; j < shape.dim(1); ++j)
            for (int64_t k = 0; k < shape.dim(2); ++k) {
              int64_t at[3] = {i, j, k};
              at[axis] = seen(at[axis] - 3, x.dim(axis), mode);
              indices.push_back(at[axis] < 0 ? -1 : (at[0] * 5 + at[1]) * 6 + at[2]);
            }
        EXPECT_EQ(Bytes(*y), Pick(x, indices));
      }
    }
  }
  const Tensor x = Counting({3, 2}, DType::kF32);
  EXPECT_EQ(device_->Pad(x, 1, 2, 0, PadMode::kReflect).status().code(),
            absl::StatusCode::kInternal);
  EXPECT_EQ(device_->Pad(x, 1, -1, 0, PadMode::kZeros).status().code(),
            absl::StatusCode::kInternal);
  EXPECT_EQ(
      device_->Pad(Counting({0, 2}, DType::kF32), 0, 1, 0, PadMode::kReplicate).status().code(),
      absl::StatusCode::kInternal);
  auto zeros = device_->Pad(Counting({0, 2}, DType::kF32), 0, 1, 1, PadMode::kZeros);
  ASSERT_TRUE(zeros.ok());
  EXPECT_EQ(Values(*zeros), std::vector<float>(4, 0.0f));
  auto same = device_->Pad(x, 0, 0, 0, PadMode::kReflect);
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(Bytes(*same), Bytes(x));
}

TEST_F(LayoutTest, GatherRows) {
  for (const DType dtype : kWidths) {
    const Tensor table = Counting({7, 3}, dtype);
    auto y = device_->GatherRows(table, {6, 0, 6, 2});
    ASSERT_TRUE(y.ok());
    EXPECT_EQ(Bytes(*y), Pick(table, {18, 19, 20, 0, 1, 2, 18, 19, 20, 6, 7, 8}));
    auto none = device_->GatherRows(table, {});
    ASSERT_TRUE(none.ok());
    EXPECT_EQ(none->shape(), Shape({0, 3}));
  }
  const Tensor table = Counting({7, 3}, DType::kF32);
  EXPECT_EQ(device_->GatherRows(table, {7}).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(device_->GatherRows(table, {-1}).status().code(), absl::StatusCode::kInternal);
}

TEST_F(LayoutTest, Interleave) {
  for (const DType dtype : kWidths) {
    for (const auto& [rows, width] :
         std::vector<std::pair<int64_t, int64_t>>{{2, 5}, {3, 0}, {1, 1}, {50, 67}, {500, 200}}) {
      const Tensor all = Counting({3, rows, width}, dtype);
      std::vector<Tensor> parts;
      for (int64_t l = 0; l < 3; ++l) {
        parts.push_back(*all.Rows(l, l + 1)->Reshape({rows, width}));
      }
      auto y = device_->Interleave(parts);
      ASSERT_TRUE(y.ok());
      EXPECT_EQ(y->shape(), Shape({rows, width * 3}));
      std::vector<int64_t> indices;
      for (int64_t i = 0; i < rows * width; ++i) {
        for (int64_t l = 0; l < 3; ++l) indices.push_back(l * rows * width + i);
      }
      EXPECT_EQ(Bytes(*y), Pick(all, indices));
    }
  }
  const Tensor a = Counting({2, 3}, DType::kF32);
  EXPECT_EQ(device_->Interleave({a, Counting({2, 4}, DType::kF32)}).status().code(),
            absl::StatusCode::kInternal);
  EXPECT_EQ(device_->Interleave({}).status().code(), absl::StatusCode::kInternal);
}

TEST_F(LayoutTest, DepthToSpace) {
  for (const DType dtype : kWidths) {
    for (const auto& factors : std::vector<std::array<int, 3>>{
             {1, 1, 1}, {2, 2, 2}, {1, 4, 4}, {2, 1, 1}, {1, 2, 3}, {3, 1, 2}}) {
      for (const bool drop : {false, true}) {
        const auto [p1, p2, p3] = factors;
        const int64_t c = 5;
        const Tensor x = Counting({2, 3, 2, 4, c * p1 * p2 * p3}, dtype);
        auto y = device_->DepthToSpace(x, factors, drop);
        ASSERT_TRUE(y.ok()) << y.status();
        const int64_t t_out = 3 * p1 - (drop ? 1 : 0);
        ASSERT_EQ(y->shape(), Shape({2, t_out, 2 * p2, 4 * p3, c}));
        std::vector<int64_t> indices;
        for (int64_t b = 0; b < 2; ++b)
          for (int64_t t = drop ? 1 : 0; t < 3 * p1; ++t)
            for (int64_t h = 0; h < 2 * p2; ++h)
              for (int64_t w = 0; w < 4 * p3; ++w)
                for (int64_t k = 0; k < c; ++k) {
                  const int64_t channel = ((k * p1 + t % p1) * p2 + h % p2) * p3 + w % p3;
                  indices.push_back((((b * 3 + t / p1) * 2 + h / p2) * 4 + w / p3) * x.dim(4) +
                                    channel);
                }
        EXPECT_EQ(Bytes(*y), Pick(x, indices));
      }
    }
  }
  EXPECT_EQ(device_->DepthToSpace(Counting({1, 2, 2, 2, 6}, DType::kF32), {2, 2, 1}, false)
                .status()
                .code(),
            absl::StatusCode::kInternal);
  auto empty = device_->DepthToSpace(Counting({1, 0, 2, 2, 8}, DType::kF32), {2, 2, 2}, true);
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ(empty->shape(), Shape({1, 0, 4, 4, 1}));
}

TEST_F(LayoutTest, UpsampleNearest2x) {
  for (const DType dtype : kWidths) {
    const Tensor x = Counting({2, 3, 5, 7}, dtype);
    auto y = device_->UpsampleNearest2x(x);
    ASSERT_TRUE(y.ok());
    ASSERT_EQ(y->shape(), Shape({2, 6, 10, 7}));
    std::vector<int64_t> indices;
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t h = 0; h < 6; ++h)
        for (int64_t w = 0; w < 10; ++w)
          for (int64_t c = 0; c < 7; ++c) indices.push_back(((b * 3 + h / 2) * 5 + w / 2) * 7 + c);
    EXPECT_EQ(Bytes(*y), Pick(x, indices));
  }
  auto empty = device_->UpsampleNearest2x(Counting({1, 0, 3, 2}, DType::kF32));
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ(empty->shape(), Shape({1, 0, 6, 2}));
  EXPECT_EQ(device_->UpsampleNearest2x(Counting({1, 2, 3}, DType::kF32)).status().code(),
            absl::StatusCode::kInternal);
}

template <typename T>
absl::Span<const uint8_t> AsBytes(const std::vector<T>& values) {
  return absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(values.data()),
                             values.size() * sizeof(T));
}

TEST_F(LayoutTest, CastAmongFloats) {
  const std::vector<float> values = {0.0f,        -0.0f,    1.0f,
                                     -2.5f,       65504.0f, 1e-5f,
                                     6.1e-5f,     3.14159f, 1.00390625f,
                                     1.01171875f, -7e-8f,   std::numeric_limits<float>::infinity()};
  const Tensor x = Make(values, {static_cast<int64_t>(values.size())});
  for (const DType through : {DType::kF64, DType::kF32}) {
    auto wide = device_->Cast(x, through);
    ASSERT_TRUE(wide.ok());
    auto back = device_->Cast(*wide, DType::kF32);
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(Bytes(*back), Bytes(x));
    auto bf16 = device_->Cast(*wide, DType::kBF16);
    ASSERT_TRUE(bf16.ok());
    std::vector<float> want;
    for (const float value : values) want.push_back(RoundToBFloat16(value));
    EXPECT_EQ(Values(*bf16), want);
    auto f16 = device_->Cast(*wide, DType::kF16);
    ASSERT_TRUE(f16.ok());
    auto f16_back = device_->Cast(*f16, DType::kF32);
    ASSERT_TRUE(f16_back.ok());
    const std::vector<float> got = Values(*f16_back);
    for (size_t i = 0; i < values.size(); ++i) {
      if (std::isinf(values[i])) {
        EXPECT_EQ(got[i], values[i]);
      } else {
        // Half an ulp of 11 bits, or of the smallest half denormal.
        EXPECT_NEAR(got[i], values[i], std::max(std::abs(values[i]) / 2048.0, 3e-8));
      }
    }
    auto bf16_again = device_->Cast(*device_->Cast(*bf16, DType::kF64), DType::kBF16);
    ASSERT_TRUE(bf16_again.ok());
    EXPECT_EQ(Bytes(*bf16_again), Bytes(*bf16));
  }
}

TEST_F(LayoutTest, CastRoundsOnce) {
  // Just above and below the middle of two bf16 numbers: a detour through float ends in a tie.
  const double middle = 1.0 + 1.0 / 256;
  const std::vector<double> values = {middle + 1e-12, middle - 1e-12, middle, -middle - 1e-12,
                                      1.0 + 3.0 / 256 - 1e-12};
  auto x = device_->Allocate({5}, DType::kF64, MemoryOwner::kActivations);
  ASSERT_TRUE(x.ok());
  ASSERT_TRUE(device_->Upload(AsBytes(values), *x).ok());
  auto y = device_->Cast(*x, DType::kBF16);
  ASSERT_TRUE(y.ok());
  EXPECT_EQ(Values(*y), (std::vector<float>{1.0078125f, 1.0f, 1.0f, -1.0078125f, 1.0078125f}));
}

TEST_F(LayoutTest, CastFromIntegers) {
  const std::vector<int64_t> wide = {0, -5, 16777217, int64_t{1} << 40, -(int64_t{1} << 62)};
  auto i64 = device_->Allocate({5}, DType::kI64, MemoryOwner::kActivations);
  ASSERT_TRUE(i64.ok());
  ASSERT_TRUE(device_->Upload(AsBytes(wide), *i64).ok());
  auto y = device_->Cast(*i64, DType::kF32);
  ASSERT_TRUE(y.ok());
  std::vector<float> want(wide.begin(), wide.end());
  EXPECT_EQ(Values(*y), want);
  EXPECT_EQ(device_->Cast(*i64, DType::kBF16).status().code(), absl::StatusCode::kUnimplemented);

  const Tensor i32 = *TensorFromInts(*device_, std::vector<int32_t>{-7, 0, 1 << 30}, {3});
  EXPECT_EQ(Values(*device_->Cast(i32, DType::kF32)), (std::vector<float>{-7, 0, 1 << 30}));
  const Tensor u8 = *TensorFromBytes(*device_, std::vector<uint8_t>{0, 128, 255}, {3});
  EXPECT_EQ(Values(*device_->Cast(u8, DType::kF32)), (std::vector<float>{0, 128, 255}));
  EXPECT_EQ(Values(*device_->Cast(u8, DType::kBF16)), (std::vector<float>{0, 128, 255}));
  EXPECT_EQ(device_->Cast(i32, DType::kU8).status().code(), absl::StatusCode::kUnimplemented);
}

TEST_F(LayoutTest, CastOddLengths) {
  for (const int64_t count : {0, 1, 7, 8, 9, 100003}) {
    const Tensor x = MakeRandom({count});
    auto y = device_->Cast(x, DType::kBF16);
    ASSERT_TRUE(y.ok());
    std::vector<float> want = Values(x);
    for (float& value : want) value = RoundToBFloat16(value);
    EXPECT_EQ(Values(*y), want);
    EXPECT_EQ(Values(*device_->Cast(*y, DType::kF32)), want);
  }
}

TEST_F(LayoutTest, FailedAllocations) {
  const Tensor x = MakeRandom({2, 3, 4, 8});
  const Tensor volume = *x.Reshape({1, 2, 3, 4, 8});
  const Tensor table = *x.Reshape({24, 8});
  const auto survives = [&](const auto& op) { ExpectSurvivesEveryFailedAllocation(op); };
  survives([&] { return device_->Cast(x, DType::kBF16); });
  survives([&] { return device_->Permute(x, {3, 1, 2, 0}); });
  survives([&] { return device_->Slice(x, 1, 0, 2); });
  survives([&] { return device_->Concat({x, x}, 2); });
  survives([&] { return device_->Pad(x, 2, 1, 1, PadMode::kReflect); });
  survives([&] { return device_->GatherRows(table, {3, 4}); });
  survives([&] { return device_->Interleave({x, x}); });
  survives([&] { return device_->DepthToSpace(volume, {2, 2, 2}, true); });
  survives([&] { return device_->UpsampleNearest2x(x); });
}

}  // namespace
}  // namespace ltx::cpu
