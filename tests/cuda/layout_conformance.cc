#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/cuda/conformance.h"

namespace ltx::cuda {
namespace {

constexpr DType kWidths[] = {DType::kU8, DType::kBF16, DType::kF32, DType::kI64};

using Layout = ConformanceTest;

TEST_F(Layout, Cast) {
  constexpr DType kTypes[] = {DType::kF32, DType::kF64, DType::kBF16, DType::kF16, DType::kU8,
                              DType::kI8,  DType::kI32, DType::kI64,  DType::kBool};
  for (const int64_t count : {0, 1, 7, 1000, 4099}) {
    for (const DType from : kTypes) {
      // Finite values: the bits of a NaN that is converted are nobody's promise.
      Operand x = Bytes({count}, from);
      if (IsFloat(from)) {
        Operand floats = Normal({count}, DType::kF32, 30.0f);
        const auto tensors = Upload(cpu(), {floats});
        const auto cast = cpu().Cast((*tensors)[0], from);
        ASSERT_TRUE(cast.ok()) << cast.status();
        ASSERT_TRUE(cpu().Download(*cast, absl::MakeSpan(x.bytes)).ok());
      }
      for (const DType to : kTypes) {
        Check(absl::StrCat("Cast ", DTypeName(from), " ", DTypeName(to), " ", count), {x}, kExact,
              [&](Device& d, Operands t) { return d.Cast(t[0], to); });
      }
    }
  }
  // Doubles that lie between two bf16 and f16 values, where two roundings would go astray.
  Operand doubles{true, {64}, DType::kF64, {}};
  std::vector<double> values(64);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = 1.0 + 0x1p-8 + static_cast<double>(static_cast<int64_t>(i) - 32) * 0x1p-40;
  }
  const auto* const bytes = reinterpret_cast<const uint8_t*>(values.data());
  doubles.bytes.assign(bytes, bytes + values.size() * sizeof(double));
  for (const DType to : {DType::kBF16, DType::kF16}) {
    Check(absl::StrCat("Cast ties ", DTypeName(to)), {doubles}, kExact,
          [&](Device& d, Operands t) { return d.Cast(t[0], to); });
  }
}

TEST_F(Layout, ByteFrames) {
  for (const Shape& shape :
       {Shape{1, 2, 2, 3}, Shape{3, 6, 10, 3}, Shape{2, 64, 96, 3}, Shape{0, 4, 4, 3}}) {
    // Beyond [0, 1] on both sides, and NaN.
    Operand frames = Uniform(shape, DType::kF32, -0.1f, 1.1f);
    for (size_t i = 0; i + 4 <= frames.bytes.size(); i += 4 * 1001) {
      const float nan = std::nanf("");
      std::memcpy(&frames.bytes[i], &nan, sizeof(nan));
    }
    Check(absl::StrCat("ByteFrames ", Describe(shape, DType::kF32)), {frames}, kExact,
          [](Device& d, Operands t) -> absl::StatusOr<std::vector<Tensor>> {
            auto bytes = d.ToByteFrames(t[0], MemoryOwner::kMedia);
            if (!bytes.ok()) return bytes.status();
            return std::vector<Tensor>{bytes->rgb, bytes->i420};
          });
  }
}

TEST_F(Layout, Permute) {
  for (const DType dtype : kWidths) {
    for (const Shape& shape :
         {Shape{}, Shape{5}, Shape{3, 4}, Shape{65, 130}, Shape{2, 3, 4}, Shape{33, 2, 40},
          Shape{2, 3, 4, 5}, Shape{1, 7, 1, 9}, Shape{2, 3, 2, 5, 6}, Shape{2, 2, 3, 2, 4, 3},
          Shape{3, 0, 4}, Shape{64, 8, 48}}) {
      std::vector<int> order(shape.rank());
      std::iota(order.begin(), order.end(), 0);
      const Operand x = Bytes(shape, dtype);
      int tried = 0;
      do {
        Check(absl::StrCat("Permute ", absl::StrJoin(order, ","), " ", Describe(shape, dtype)), {x},
              kExact, [&](Device& d, Operands t) { return d.Permute(t[0], order); });
      } while (std::next_permutation(order.begin(), order.end()) && ++tried < 120);
    }
  }
}

TEST_F(Layout, SliceConcatPad) {
  for (const DType dtype : kWidths) {
    for (const Shape& shape : {Shape{6, 5, 8}, Shape{4, 3, 7}, Shape{3, 64, 32}}) {
      for (int axis = 0; axis < 3; ++axis) {
        const std::string at = absl::StrCat("axis ", axis, " ", Describe(shape, dtype));
        const Operand x = Bytes(shape, dtype);
        const int64_t extent = shape.dim(axis);
        for (const auto& [begin, end] :
             std::vector<std::pair<int64_t, int64_t>>{{0, extent}, {1, extent}, {1, 1}, {1, 3}}) {
          Check(absl::StrCat("Slice ", begin, ":", end, " ", at), {x}, kExact,
                [&, begin = begin, end = end](Device& d, Operands t) {
                  return d.Slice(t[0], axis, begin, end);
                });
        }
        Shape other = shape;
        other.set_dim(axis, 3);
        Shape none = shape;
        none.set_dim(axis, 0);
        Check("Concat " + at, {x, Bytes(other, dtype), Bytes(none, dtype), x}, kExact,
              [&](Device& d, Operands t) { return d.Concat(t, axis - 3); });
        for (const PadMode mode :
             {PadMode::kZeros, PadMode::kReplicate, PadMode::kReflect, PadMode::kCircular}) {
          for (const auto& [before, after] :
               std::vector<std::pair<int64_t, int64_t>>{{0, 0}, {2, 1}, {0, 2}}) {
            Check(absl::StrCat("Pad ", static_cast<int>(mode), " ", before, " ", after, " ", at),
                  {x}, kExact, [&, before = before, after = after](Device& d, Operands t) {
                    return d.Pad(t[0], axis, before, after, mode);
                  });
          }
        }
      }
    }
  }
}

TEST_F(Layout, RowsAndParts) {
  for (const DType dtype : kWidths) {
    for (const int64_t width : {1, 3, 8, 48}) {
      const std::string at = absl::StrCat(width, " ", DTypeName(dtype));
      for (const std::vector<int32_t>& indices :
           std::vector<std::vector<int32_t>>{{}, {4}, {0, 0, 6, 2, 5, 1, 1}}) {
        Check(absl::StrCat("GatherRows ", indices.size(), " of ", at), {Bytes({7, width}, dtype)},
              kExact, [&](Device& d, Operands t) { return d.GatherRows(t[0], indices); });
      }
      for (const int parts : {1, 2, 49, 130}) {
        std::vector<Operand> operands;
        for (int i = 0; i < parts; ++i) operands.push_back(Bytes({2, 5, width}, dtype));
        Check(absl::StrCat("Interleave ", parts, " of ", at), operands, kExact,
              [](Device& d, Operands t) { return d.Interleave(t); });
      }
      for (const Shape& shape : {Shape{2, 3, 5, width}, Shape{1, 0, 4, width}}) {
        Check("UpsampleNearest2x " + Describe(shape, dtype), {Bytes(shape, dtype)}, kExact,
              [](Device& d, Operands t) { return d.UpsampleNearest2x(t[0]); });
      }
    }
  }
}

TEST_F(Layout, DepthToSpace) {
  for (const DType dtype : kWidths) {
    for (const std::array<int, 3>& factors :
         std::vector<std::array<int, 3>>{{1, 1, 1}, {2, 2, 2}, {1, 2, 2}, {2, 1, 1}, {1, 4, 4}}) {
      const int64_t product = int64_t{factors[0]} * factors[1] * factors[2];
      for (const int64_t channels : {1, 3, 16, 700}) {
        for (const auto& [frames, width] :
             std::vector<std::pair<int64_t, int64_t>>{{3, 5}, {1, 70}, {0, 2}}) {
          const Shape shape = {2, frames, 3, width, channels * product};
          for (const bool drop : {false, true}) {
            Check(absl::StrCat("DepthToSpace ", absl::StrJoin(factors, ","), drop ? " drop " : " ",
                               Describe(shape, dtype)),
                  {Bytes(shape, dtype)}, kExact,
                  [&](Device& d, Operands t) { return d.DepthToSpace(t[0], factors, drop); });
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace ltx::cuda
