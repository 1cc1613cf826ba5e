#include <array>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "tests/cuda/conformance.h"

namespace ltx::cuda {
namespace {

constexpr DType kFloats[] = {DType::kF32, DType::kBF16};
constexpr Activation kActivations[] = {Activation::kNone,     Activation::kSilu,
                                       Activation::kGeluTanh, Activation::kTanh,
                                       Activation::kSigmoid,  Activation::kExp};
/// None, one, less and more than a packet, more than a block, ends that fill no packet.
const Shape kShapes[] = {{0}, {1}, {7}, {3, 0, 5}, {5, 33}, {4, 1031}, {2, 65, 96}};

using Elementwise = ConformanceTest;

TEST_F(Elementwise, Unary) {
  for (const DType dtype : kFloats) {
    for (const Shape& shape : kShapes) {
      const std::string at = Describe(shape, dtype);
      const std::vector<Operand> x = {Normal(shape, dtype, 3.0f)};
      for (const Activation activation : kActivations) {
        Check(absl::StrCat("Apply ", static_cast<int>(activation), " ", at), x, Close(dtype),
              [&](Device& d, Operands t) { return d.Apply(t[0], activation); });
      }
      Check("LeakyRelu " + at, x, kExact,
            [](Device& d, Operands t) { return d.LeakyRelu(t[0], 0.1f); });
      Check("Clamp " + at, x, kExact,
            [](Device& d, Operands t) { return d.Clamp(t[0], -1.0f, 1.5f); });
      Check("SoftCap " + at, x, Close(dtype),
            [](Device& d, Operands t) { return d.SoftCap(t[0], 2.0f); });
      Check("LogFloor " + at, x, Close(dtype),
            [](Device& d, Operands t) { return d.LogFloor(t[0], 1e-5f); });
      Check("Scale " + at, x, kExact, [](Device& d, Operands t) { return d.Scale(t[0], 0.3f); });
    }
  }
}

TEST_F(Elementwise, SpecialValues) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<float> values = {0.0f,   -0.0f,   kInf,  -kInf,  NAN,   100.0f, -100.0f,
                                     1e-30f, -1e-30f, 3e38f, -3e38f, 20.0f, -20.0f};
  for (const DType dtype : kFloats) {
    const std::vector<Operand> x = {Values(values, {13}, dtype)};
    for (const Activation activation : kActivations) {
      Check(absl::StrCat("Apply ", static_cast<int>(activation), " special"), x, Close(dtype),
            [&](Device& d, Operands t) { return d.Apply(t[0], activation); });
    }
    Check("Clamp special", x, Close(dtype),
          [](Device& d, Operands t) { return d.Clamp(t[0], -1.0f, 1.5f); });
    Check("LogFloor special", x, Close(dtype),
          [](Device& d, Operands t) { return d.LogFloor(t[0], 1e-5f); });
  }
}

TEST_F(Elementwise, Binary) {
  for (const DType dtype : kFloats) {
    for (const Shape& shape : kShapes) {
      const std::string at = Describe(shape, dtype);
      const std::vector<Operand> ab = {Normal(shape, dtype), Normal(shape, dtype)};
      Check("Add " + at, ab, kExact, [](Device& d, Operands t) { return d.Add(t[0], t[1]); });
      // The two GELUs may round to neighbours, which the product keeps apart.
      Check("GeluTanhMul " + at, ab, {dtype == DType::kBF16 ? 0x1p-6 : 2e-6, 1e-3},
            [](Device& d, Operands t) { return d.GeluTanhMul(t[0], t[1]); });
    }
    for (const auto& [l, u, w] :
         std::vector<std::array<int64_t, 3>>{{2, 3, 64}, {0, 3, 8}, {9, 1, 5}}) {
      Check(absl::StrCat("OuterSum ", l, " ", u, " ", w, " ", DTypeName(dtype)),
            {Normal({l, w}, dtype), Normal({u, w}, dtype)}, kExact,
            [](Device& d, Operands t) { return d.OuterSum(t[0], t[1]); });
    }
  }
}

TEST_F(Elementwise, ByChannel) {
  for (const DType dtype : kFloats) {
    for (const Shape& shape :
         {Shape{3, 5, 24}, Shape{2, 7}, Shape{0, 8}, Shape{4, 0}, Shape{2, 300, 128}}) {
      const std::string at = Describe(shape, dtype);
      const Operand x = Normal(shape, dtype);
      const Operand c = Uniform({shape.dim(-1)}, dtype, 0.5f, 2.0f);
      const Operand s = Normal({shape.dim(-1)}, dtype);
      for (const auto& [scale, shift] :
           std::vector<std::pair<Operand, Operand>>{{c, s}, {c, {}}, {{}, s}, {{}, {}}}) {
        Check("ScaleShiftChannels " + at, {x, scale, shift}, kExact,
              [](Device& d, Operands t) { return d.ScaleShiftChannels(t[0], t[1], t[2]); });
      }
      Check("NormalizeChannels " + at, {x, s, c}, kExact,
            [](Device& d, Operands t) { return d.NormalizeChannels(t[0], t[1], t[2]); });
    }
    for (const int64_t bins : {1, 5, 64, 257}) {
      Check(absl::StrCat("Magnitude ", bins, " ", DTypeName(dtype)),
            {Normal({3, 4, 2 * bins}, dtype)}, kExact,
            [](Device& d, Operands t) { return d.Magnitude(t[0]); });
    }
    Check(absl::StrCat("AddSpatialNoise ", DTypeName(dtype)),
          {Normal({2, 3, 5, 7, 24}, dtype), Normal({5, 7}, dtype), Normal({24}, dtype)}, kExact,
          [](Device& d, Operands t) { return d.AddSpatialNoise(t[0], t[1], t[2]); });
  }
}

TEST_F(Elementwise, ViewsAtAnyAddress) {
  // Rows of an odd width start at addresses that no packet fits.
  for (const DType dtype : kFloats) {
    Check(absl::StrCat("Apply view ", DTypeName(dtype)), {Normal({5, 37}, dtype)}, Close(dtype),
          [](Device& d, Operands t) -> absl::StatusOr<Tensor> {
            const auto rows = t[0].Rows(1, 4);
            if (!rows.ok()) return rows.status();
            return d.Apply(*rows, Activation::kSilu);
          });
  }
}

using Diffusion = ConformanceTest;

TEST_F(Diffusion, States) {
  for (const DType dtype : kFloats) {
    for (const Shape& shape : {Shape{1, 6, 8}, Shape{2, 33, 128}, Shape{0, 4, 8}, Shape{2, 5, 3}}) {
      const std::string at = Describe(shape, dtype);
      const std::vector<Operand> xy = {Normal(shape, dtype), Normal(shape, dtype),
                                       Normal(shape, dtype)};
      for (const float weight : {0.0f, 0.3f, 0.5f, 0.9f, 1.0f, -0.7f}) {
        Check(absl::StrCat("Lerp ", weight, " ", at), xy, kExact,
              [&](Device& d, Operands t) { return d.Lerp(t[0], t[1], weight); });
      }
      Check("EulerStep " + at, xy, kExact,
            [](Device& d, Operands t) { return d.EulerStep(t[0], t[1], 0.909375f, 0.725f); });
      Check("LinearCombination 3 " + at, xy, kExact, [](Device& d, Operands t) {
        return d.LinearCombination(0.7f, t[0], -1.3f, t[1], 0.11f, t[2]);
      });
      Check("LinearCombination 2 " + at, xy, kExact, [](Device& d, Operands t) {
        return d.LinearCombination(0.7f, t[0], -1.3f, t[1], 0.0f, Tensor());
      });
      const std::vector<Operand> tokens = {
          xy[0], xy[1], Uniform({shape.dim(0), shape.dim(1)}, DType::kF32, 0.0f, 1.0f)};
      Check("LerpTokens " + at, tokens, kExact,
            [](Device& d, Operands t) { return d.LerpTokens(t[0], t[1], t[2]); });
      Check("VelocityToDenoised " + at, tokens, kExact,
            [](Device& d, Operands t) { return d.VelocityToDenoised(t[0], t[1], t[2]); });
      Check("BlendClean " + at, tokens, kExact,
            [](Device& d, Operands t) { return d.BlendClean(t[0], t[1], t[2]); });
    }
  }
}

TEST_F(Diffusion, AllFinite) {
  for (const DType dtype : kFloats) {
    for (const int64_t count : {1, 1000, 1 << 20}) {
      for (const float bad : {1.0f, static_cast<float>(INFINITY), static_cast<float>(NAN)}) {
        std::vector<float> values(count, 0.5f);
        values[count * 2 / 3] = bad;
        const auto tensors = Upload(gpu(), {Values(values, {count}, dtype)});
        ASSERT_TRUE(tensors.ok());
        const auto finite = gpu().AllFinite((*tensors)[0]);
        ASSERT_TRUE(finite.ok()) << finite.status();
        EXPECT_EQ(*finite, std::isfinite(bad)) << "AllFinite of " << count << ", " << bad;
      }
    }
    const auto none = Upload(gpu(), {Values({}, {0}, dtype)});
    ASSERT_TRUE(none.ok());
    EXPECT_TRUE(*gpu().AllFinite((*none)[0]));
  }
}

}  // namespace
}  // namespace ltx::cuda
