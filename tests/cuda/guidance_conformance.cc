#include <array>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/cuda/conformance.h"

namespace ltx::cuda {
namespace {

constexpr DType kFloats[] = {DType::kF32, DType::kBF16};

using Guidance = ConformanceTest;

TEST_F(Guidance, WeightedSums) {
  for (const Shape& shape : {Shape{1, 6, 8}, Shape{2, 33, 128}, Shape{1, 0, 4}, Shape{2, 5, 3}}) {
    const int64_t tokens = shape.dim(0) * shape.dim(1);
    for (const DType dtype : kFloats) {
      const std::vector<Operand> operands = {Normal(shape, dtype), Normal(shape, DType::kF32),
                                             Normal(shape, dtype)};
      std::vector<double> per_token(tokens);
      for (int64_t i = 0; i < tokens; ++i) per_token[i] = 0.1 * static_cast<double>(i % 7) - 0.3;
      for (const DType result : {DType::kF32, DType::kBF16, DType::kF64}) {
        for (const int count : {1, 2, 3}) {
          Check(absl::StrCat("WeightedSum ", count, " ", Describe(shape, dtype), " to ",
                             DTypeName(result)),
                operands, kExact, [&](Device& d, Operands t) {
                  std::vector<WeightedTerm> terms(count);
                  for (int i = 0; i < count; ++i) {
                    terms[i].x = t[i];
                    terms[i].weights = i == 1 ? per_token : std::vector<double>{0.37 - 1.1 * i};
                  }
                  return d.WeightedSum(terms, result);
                });
        }
      }
    }
  }
}

TEST_F(Guidance, GuidedPredictions) {
  for (const DType dtype : kFloats) {
    for (const Shape& shape : {Shape{1, 6, 8}, Shape{2, 333, 128}, Shape{3, 5, 3}}) {
      const std::vector<Operand> operands = {Normal(shape, dtype), Normal(shape, dtype),
                                             Normal(shape, dtype), Normal(shape, dtype)};
      for (const unsigned given : {0u, 1u, 2u, 5u, 7u}) {
        for (const float rescale : {0.0f, 0.7f}) {
          GuidanceScales scales;
          scales.cfg = 3.0f;
          scales.stg = 1.0f;
          scales.modality = 2.5f;
          scales.rescale = rescale;
          const Bound bound = rescale == 0.0f ? kExact : Close(dtype);
          Check(absl::StrCat("Guide ", given, " rescale ", rescale, " ", Describe(shape, dtype)),
                operands, bound, [&](Device& d, Operands t) {
                  const auto pass = [&](unsigned i) {
                    return (given >> i & 1u) != 0 ? t[i + 1] : Tensor();
                  };
                  return d.Guide(t[0], pass(0), pass(1), pass(2), scales);
                });
        }
      }
    }
  }
}

TEST_F(Guidance, BatchDots) {
  for (const DType dtype : kFloats) {
    for (const Shape& shape : {Shape{1, 6, 8}, Shape{2, 333, 128}, Shape{3, 5, 3}}) {
      const std::vector<Operand> operands = {Normal(shape, dtype), Normal(shape, dtype)};
      const auto on_cpu = Upload(cpu(), operands);
      const auto on_gpu = Upload(gpu(), operands);
      ASSERT_TRUE(on_cpu.ok() && on_gpu.ok());
      const auto want = cpu().BatchDot((*on_cpu)[0], (*on_cpu)[1]);
      const auto got = gpu().BatchDot((*on_gpu)[0], (*on_gpu)[1]);
      ASSERT_TRUE(want.ok() && got.ok()) << got.status();
      ASSERT_EQ(got->size(), want->size());
      for (size_t i = 0; i < want->size(); ++i) {
        EXPECT_NEAR((*got)[i], (*want)[i], 1e-9 * static_cast<double>(shape.num_elements()))
            << "BatchDot " << Describe(shape, dtype);
      }
    }
  }
}

}  // namespace
}  // namespace ltx::cuda
