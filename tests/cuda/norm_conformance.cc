#include <array>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/cuda/conformance.h"

namespace ltx::cuda {
namespace {

constexpr DType kFloats[] = {DType::kF32, DType::kBF16};

/// A sum over a row, then a few roundings.
Bound RowBound(DType dtype) {
  return dtype == DType::kBF16 ? Bound{0x1p-7, 2e-3} : Bound{1e-5, 1e-6};
}

class Norms : public ConformanceTest {
 protected:
  /// The three ways of giving tokens their rows: one for all, one a batch row, an index.
  struct Rows {
    std::string name;
    Operand rows;
    Operand index;
    int64_t offset = 0;
  };
  std::vector<Rows> AllRows(const Shape& shape, DType dtype) {
    const int64_t width = shape.dim(2);
    std::vector<int32_t> index(shape.dim(0) * shape.dim(1));
    for (size_t i = 0; i < index.size(); ++i) index[i] = static_cast<int32_t>(i * 7 % 3);
    return {{"one", Normal({1, width}, dtype), {}, 0},
            {"batch", Normal({shape.dim(0), 3 * width}, dtype), {}, width},
            {"index", Normal({3, 2 * width}, dtype), Ints(index), width}};
  }
  static RowVectors Vectors(const Tensor& rows, const Tensor& index, int64_t offset) {
    RowVectors vectors;
    vectors.rows = rows;
    vectors.index = index;
    vectors.offset = offset;
    return vectors;
  }
};

TEST_F(Norms, Rms) {
  for (const DType dtype : kFloats) {
    for (const Shape& shape :
         {Shape{3, 64}, Shape{2, 5, 4096}, Shape{1, 3, 4, 5, 128}, Shape{7, 33}, Shape{2, 1},
          Shape{0, 16}, Shape{300, 96}, Shape{2, 12288}}) {
      const Operand x = Normal(shape, dtype, 2.0f);
      const Operand w = Normal({shape.dim(-1)}, dtype, 0.5f);
      for (const bool one_plus : {false, true}) {
        for (const Activation activation : {Activation::kNone, Activation::kSilu}) {
          const std::string at = absl::StrCat(one_plus, " act ", static_cast<int>(activation), " ",
                                              Describe(shape, dtype));
          const auto op = [&](Device& d, Operands t) {
            return d.RmsNorm(t[0], t[1], 1e-6f, one_plus, activation);
          };
          Check("RmsNorm weight " + at, {x, w}, RowBound(dtype), op);
          if (!one_plus) Check("RmsNorm plain " + at, {x, {}}, RowBound(dtype), op);
        }
      }
    }
  }
}

TEST_F(Norms, RmsIntoColumns) {
  for (const DType dtype : kFloats) {
    // A hidden state beside others, then columns that begin between two packs of 16 bytes, rows
    // that are no multiple of one, rows of their own, and none.
    const std::tuple<Shape, int64_t, int64_t> cases[] = {{{1, 70, 3840}, 3 * 3840, 2 * 3840},
                                                         {{2, 5, 64}, 199, 67},
                                                         {{1, 9, 33}, 165, 66},
                                                         {{3, 256}, 256, 0},
                                                         {{1, 0, 256}, 512, 256}};
    for (const auto& [shape, width, first] : cases) {
      Shape rows = shape;
      rows.set_dim(-1, width);
      Check(absl::StrCat("RmsNormInto ", first, " of ", width, " ", Describe(shape, dtype)),
            {Normal(shape, dtype, 2.0f), Normal(rows, dtype)}, RowBound(dtype),
            [first = first](Device& d, Operands t) -> absl::StatusOr<Tensor> {
              Columns columns(t[1], first, t[0].dim(-1));
              if (auto done = d.RmsNormInto(t[0], 1e-6f, &columns); !done.ok()) return done;
              return t[1];
            });
    }
  }
}

TEST_F(Norms, Modulated) {
  for (const DType dtype : kFloats) {
    for (const Shape& shape : {Shape{2, 5, 64}, Shape{1, 130, 2048}, Shape{2, 7, 33},
                               Shape{2, 0, 16}, Shape{3, 4, 4096}}) {
      for (const Rows& rows : AllRows(shape, dtype)) {
        const std::string at = absl::StrCat(rows.name, " ", Describe(shape, dtype));
        const std::vector<Operand> operands = {Normal(shape, dtype, 2.0f), rows.rows, rows.index};
        const auto first = [](Operands t) { return Vectors(t[1], t[2], 0); };
        const auto second = [&](Operands t) { return Vectors(t[1], t[2], rows.offset); };
        Check("LayerNormModulate " + at, operands, RowBound(dtype), [&](Device& d, Operands t) {
          return d.LayerNormModulate(t[0], 1e-6f, first(t), second(t));
        });
        for (const Activation activation : {Activation::kNone, Activation::kSilu}) {
          Check(absl::StrCat("Modulate ", static_cast<int>(activation), " ", at), operands,
                RowBound(dtype), [&](Device& d, Operands t) {
                  return d.Modulate(t[0], first(t), second(t), activation);
                });
        }
      }
    }
  }
}

TEST_F(Norms, Residual) {
  for (const DType dtype : kFloats) {
    for (const Shape& shape : {Shape{3, 5, 64}, Shape{2, 9, 2048}, Shape{1, 33, 4096}}) {
      for (const Rows& rows : AllRows(shape, dtype)) {
        const std::string at = absl::StrCat(rows.name, " ", Describe(shape, dtype));
        const std::vector<Operand> operands = {Normal(shape, dtype, 2.0f), rows.rows, rows.index,
                                               Normal(shape, dtype)};
        // The last one has a single reading, all others two.
        for (const int variant : {0, 1, 2, 3, 4}) {
          Check(absl::StrCat("ResidualNorm ", variant, " ", at), operands, RowBound(dtype),
                [&](Device& d, Operands t) -> absl::StatusOr<std::vector<Tensor>> {
                  Tensor state = t[0];
                  ResidualUpdate update;
                  if (variant > 0) update.value = t[3];
                  if (variant > 1) update.gate = Vectors(t[1], t[2], 0);
                  if (variant == 3 && rows.name == "one" && t[0].dim(0) > 1) {
                    auto part = t[3].Rows(1, 2);
                    if (!part.ok()) return part.status();
                    update.value = *part;
                    update.first_batch = 1;
                  }
                  std::vector<NormReading> readings(variant == 4 ? 1 : 2);
                  if (variant == 2) {
                    readings[1].scale = Vectors(t[1], t[2], rows.offset);
                    readings[1].shift = Vectors(t[1], t[2], 0);
                  }
                  readings[0].scale = Vectors(t[1], t[2], 0);
                  readings[0].shift = Vectors(t[1], t[2], rows.offset);
                  auto result = d.ResidualNorm(&state, update, 1e-6f, readings);
                  if (!result.ok()) return result.status();
                  result->push_back(state);
                  return result;
                });
        }
      }
    }
  }
}

TEST_F(Norms, Groups) {
  for (const DType dtype : kFloats) {
    for (const Shape& shape : {Shape{1, 4, 5, 64}, Shape{2, 3, 8, 8, 32}, Shape{2, 70, 96},
                               Shape{1, 9, 33, 17, 128}, Shape{0, 3, 32}, Shape{2, 0, 32}}) {
      for (const int64_t groups : {1, 16, 32}) {
        for (const Activation activation : {Activation::kNone, Activation::kSilu}) {
          GroupNormOptions options;
          options.groups = groups;
          options.activation = activation;
          Check(absl::StrCat("GroupNorm ", groups, " act ", static_cast<int>(activation), " ",
                             Describe(shape, dtype)),
                {Normal(shape, dtype, 2.0f), Normal({shape.dim(-1)}, dtype),
                 Normal({shape.dim(-1)}, dtype)},
                RowBound(dtype),
                [&](Device& d, Operands t) { return d.GroupNorm(t[0], t[1], t[2], options); });
        }
      }
    }
    // A mean far from zero: the variance must not cancel.
    GroupNormOptions options;
    options.groups = 4;
    Check(absl::StrCat("GroupNorm offset ", DTypeName(DType::kF32)),
          {Uniform({1, 30, 30, 32}, DType::kF32, 100.0f, 101.0f), Normal({32}, DType::kF32),
           Normal({32}, DType::kF32)},
          {1e-3, 1e-4},
          [&](Device& d, Operands t) { return d.GroupNorm(t[0], t[1], t[2], options); });
  }
}

TEST_F(Norms, SnakeAndItsFilters) {
  for (const Shape& shape : {Shape{1, 50, 24}, Shape{2, 1, 8}, Shape{1, 4097, 7}, Shape{2, 3, 96},
                             Shape{1, 0, 8}, Shape{1, 12, 192}}) {
    Check("AntiAliasedSnake " + Describe(shape, DType::kF32),
          {Normal(shape, DType::kF32), Normal({12}, DType::kF32, 0.3f),
           Normal({12}, DType::kF32, 0.3f), Uniform({shape.dim(2)}, DType::kF32, 0.5f, 3.0f),
           Uniform({shape.dim(2)}, DType::kF32, 0.3f, 2.0f)},
          {1e-5, 1e-5},
          [](Device& d, Operands t) { return d.AntiAliasedSnake(t[0], t[1], t[2], t[3], t[4]); });
  }
}

}  // namespace
}  // namespace ltx::cuda
