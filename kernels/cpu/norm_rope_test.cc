#include <cmath>
#include <vector>

#include "kernels/cpu/test_util.h"

namespace ltx::cpu {
namespace {

using Vector = std::vector<double>;
constexpr DType kTypes[] = {DType::kF32, DType::kBF16};

class NormRopeTest : public CpuDeviceTest {
 protected:
  void Expect(const absl::StatusOr<Tensor>& got, const Tensor& like, const Vector& want) {
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(got->shape(), like.shape());
    EXPECT_EQ(got->dtype(), like.dtype());
    const double relative = like.dtype() == DType::kF32 ? 3e-6 : 1.0 / 256;
    ExpectClose(Values(*got), want, relative, 3e-6);
  }

  Vector Normalised(const Tensor& x, const NormRopeOptions& options) {
    const std::vector<float> values = Values(x);
    const std::vector<float> weight =
        options.weight.defined() ? Values(options.weight) : std::vector<float>();
    const int64_t width = x.dim(2);
    const int64_t span =
        options.span == NormRopeOptions::Span::kPerHead ? width / options.heads : width;
    Vector out(values.begin(), values.end());
    for (size_t at = 0; span > 0 && at < out.size(); at += span) {
      double sum = 0;
      for (int64_t i = 0; i < span; ++i) sum += std::pow(values[at + i], 2);
      const double inverse = 1 / std::sqrt(sum / span + options.epsilon);
      for (int64_t i = 0; i < span; ++i) {
        const double w = weight.empty() ? 1.0 : weight[i] + (options.one_plus_weight ? 1.0 : 0.0);
        out[at + i] *= inverse * w;
      }
    }
    return out;
  }

  Vector Rotated(const Vector& x, const Shape& shape, int64_t heads, const RopeTable& rope) {
    const std::vector<float> cos = Values(rope.cos);
    const std::vector<float> sin = Values(rope.sin);
    const int64_t tokens = shape.dim(1);
    const int64_t width = shape.dim(2);
    const int64_t d = width / heads;
    Vector out(x.size());
    for (int64_t b = 0; b < shape.dim(0); ++b) {
      for (int64_t n = 0; n < tokens; ++n) {
        for (int64_t e = 0; e < width; ++e) {
          const int64_t row = (b * tokens + n) * width;
          const int64_t head = e / d;
          const int64_t j = e % d;
          int64_t table = 0;
          int64_t partner = 0;
          bool first = false;
          if (rope.kind == RopeTable::Kind::kSplit) {
            const int64_t table_batch = rope.cos.dim(0) == 1 ? 0 : b;
            const int64_t table_head = rope.cos.dim(1) == 1 ? 0 : head;
            table =
                ((table_batch * rope.cos.dim(1) + table_head) * tokens + n) * (d / 2) + j % (d / 2);
            first = j < d / 2;
            partner = first ? e + d / 2 : e - d / 2;
          } else {
            table = ((rope.cos.dim(0) == 1 ? 0 : b) * tokens + n) * width + e;
            first = e % 2 == 0;
            partner = first ? e + 1 : e - 1;
          }
          out[row + e] =
              x[row + e] * cos[table] + (first ? -1.0 : 1.0) * x[row + partner] * sin[table];
        }
      }
    }
    return out;
  }

  /// x [B, N, W] between random columns.
  Tensor Widened(const Tensor& x, int64_t before, int64_t after) {
    const Tensor left = MakeRandom(Shape({x.dim(0), x.dim(1), before}), x.dtype());
    const Tensor right = MakeRandom(Shape({x.dim(0), x.dim(1), after}), x.dtype());
    return *device_->Concat({left, x, right}, 2);
  }

  RopeTable Tables(RopeTable::Kind kind, const Shape& x, int64_t heads, bool batch, bool head,
                   DType dtype) {
    RopeTable rope;
    rope.kind = kind;
    const int64_t batches = batch ? x.dim(0) : 1;
    Shape shape({batches, x.dim(1), x.dim(2)});
    if (kind == RopeTable::Kind::kSplit) {
      shape = Shape({batches, head ? heads : 1, x.dim(1), x.dim(2) / heads / 2});
    }
    std::vector<float> angles = Random(shape.num_elements(), 3.0f);
    std::vector<float> cos;
    std::vector<float> sin;
    for (size_t i = 0; i < angles.size(); ++i) {
      // An interleaved table holds each value twice.
      const float angle = kind == RopeTable::Kind::kSplit ? angles[i] : angles[i / 2 * 2];
      cos.push_back(std::cos(angle));
      sin.push_back(std::sin(angle));
    }
    rope.cos = Make(cos, shape, dtype);
    rope.sin = Make(sin, shape, dtype);
    return rope;
  }
};

struct Sizes {
  int64_t batch, tokens, heads, width;
};
constexpr Sizes kSizes[] = {{1, 1, 1, 2},  {2, 3, 3, 10}, {2, 5, 4, 16}, {1, 7, 2, 64},
                            {3, 2, 5, 26}, {2, 0, 2, 8},  {2, 2, 2, 0},  {1, 33, 8, 128}};

TEST_F(NormRopeTest, EveryCombination) {
  for (const DType dtype : kTypes) {
    for (const Sizes& size : kSizes) {
      const int64_t width = size.heads * size.width;
      const Tensor x = MakeRandom(Shape({size.batch, size.tokens, width}), dtype, 3.0f);
      for (int form = 0; form < 8; ++form) {
        NormRopeOptions options;
        options.heads = size.heads;
        const bool per_head = (form & 1) != 0;
        options.span =
            per_head ? NormRopeOptions::Span::kPerHead : NormRopeOptions::Span::kFullWidth;
        options.one_plus_weight = (form & 2) != 0;
        if ((form & 4) != 0) {
          options.weight = MakeRandom(Shape({per_head ? size.width : width}), dtype);
        }
        const Vector normed = Normalised(x, options);
        Expect(device_->NormRope(x, options), x, normed);
        for (int table = 0; table < 4; ++table) {
          for (const auto kind : {RopeTable::Kind::kSplit, RopeTable::Kind::kInterleaved}) {
            options.rope =
                Tables(kind, x.shape(), size.heads, (table & 1) != 0, (table & 2) != 0, dtype);
            Expect(device_->NormRope(x, options), x,
                   Rotated(normed, x.shape(), size.heads, options.rope));
          }
        }
      }
    }
  }
}

TEST_F(NormRopeTest, RopeAlone) {
  for (const DType dtype : kTypes) {
    for (const Sizes& size : kSizes) {
      const Tensor x = MakeRandom(Shape({size.batch, size.tokens, size.heads * size.width}), dtype);
      const std::vector<float> values = Values(x);
      for (int table = 0; table < 4; ++table) {
        for (const auto kind : {RopeTable::Kind::kSplit, RopeTable::Kind::kInterleaved}) {
          const RopeTable rope =
              Tables(kind, x.shape(), size.heads, (table & 1) != 0, (table & 2) != 0, dtype);
          Expect(device_->Rope(x, size.heads, rope), x,
                 Rotated(Vector(values.begin(), values.end()), x.shape(), size.heads, rope));
        }
      }
    }
  }
}

TEST_F(NormRopeTest, OddHeadsNeedNoTables) {
  const Tensor x = MakeRandom(Shape({2, 3, 21}));
  NormRopeOptions options;
  options.heads = 3;
  options.span = NormRopeOptions::Span::kPerHead;
  Expect(device_->NormRope(x, options), x, Normalised(x, options));
}

TEST_F(NormRopeTest, HeadGate) {
  for (const DType dtype : kTypes) {
    for (const Sizes& size : kSizes) {
      const Tensor x = MakeRandom(Shape({size.batch, size.tokens, size.heads * size.width}), dtype);
      const Tensor logits = MakeRandom(Shape({size.batch, size.tokens, size.heads}), dtype, 4.0f);
      const std::vector<float> values = Values(x);
      const std::vector<float> gates = Values(logits);
      Vector want(values.size());
      for (size_t i = 0; i < want.size(); ++i) {
        want[i] = values[i] * 2.0 / (1.0 + std::exp(-static_cast<double>(gates[i / size.width])));
      }
      // The logits may be columns of a wider tensor.
      for (const int64_t before : {0, 3}) {
        Tensor gated = Make(values, x.shape(), dtype);
        const Tensor wide = Widened(logits, before, 2);
        const absl::Status status = device_->HeadGate(&gated, Columns(wide, before, size.heads));
        ASSERT_TRUE(status.ok()) << status;
        Expect(gated, x, want);
      }
    }
  }
}

TEST_F(NormRopeTest, InPlaceOnColumnsChangesNothingElse) {
  for (const DType dtype : kTypes) {
    for (const Sizes& size : kSizes) {
      const int64_t width = size.heads * size.width;
      const Tensor x = MakeRandom(Shape({size.batch, size.tokens, width}), dtype);
      for (const auto kind : {RopeTable::Kind::kSplit, RopeTable::Kind::kInterleaved}) {
        NormRopeOptions first;
        first.heads = size.heads;
        first.weight = MakeRandom(Shape({width}), dtype);
        NormRopeOptions second = first;
        second.weight = Tensor();
        second.rope = Tables(kind, x.shape(), size.heads, true, true, dtype);
        // | x | x | 5 columns |
        const Tensor twice = *device_->Concat({x, x}, 2);
        const Tensor wide = Widened(twice, 0, 5);
        const NormRopePart parts[] = {{Columns(wide, 0, width), first},
                                      {Columns(wide, width, width), second}};
        const Tensor rest = *device_->Slice(wide, 2, 2 * width, 2 * width + 5);
        const absl::Status status = device_->NormRopeInPlace(parts);
        ASSERT_TRUE(status.ok()) << status;
        EXPECT_EQ(Bytes(*device_->Slice(wide, 2, 0, width)), Bytes(*device_->NormRope(x, first)));
        EXPECT_EQ(Bytes(*device_->Slice(wide, 2, width, 2 * width)),
                  Bytes(*device_->NormRope(x, second)));
        EXPECT_EQ(Bytes(*device_->Slice(wide, 2, 2 * width, 2 * width + 5)), Bytes(rest));
      }
    }
  }
}

TEST_F(NormRopeTest, RefusesWhatDoesNotFit) {
  const Tensor x = MakeRandom(Shape({2, 3, 16}));
  const auto code = [](const absl::StatusOr<Tensor>& result) { return result.status().code(); };
  NormRopeOptions options;
  options.heads = 3;
  EXPECT_EQ(code(device_->NormRope(x, options)), absl::StatusCode::kInternal);
  options.heads = 2;
  options.weight = MakeRandom(Shape({8}));
  EXPECT_EQ(code(device_->NormRope(x, options)), absl::StatusCode::kInternal);
  options.weight = Tensor();
  // Tables of other tokens, other heads, another dtype, without a sine.
  const Shape other_tokens({2, 4, 16});
  options.rope = Tables(RopeTable::Kind::kSplit, other_tokens, 2, true, true, DType::kF32);
  EXPECT_EQ(code(device_->NormRope(x, options)), absl::StatusCode::kInternal);
  const RopeTable four = Tables(RopeTable::Kind::kSplit, x.shape(), 4, true, true, DType::kF32);
  EXPECT_EQ(code(device_->Rope(x, 2, four)), absl::StatusCode::kInternal);
  const RopeTable narrow = Tables(RopeTable::Kind::kSplit, x.shape(), 2, true, true, DType::kBF16);
  EXPECT_EQ(code(device_->Rope(x, 2, narrow)), absl::StatusCode::kInternal);
  RopeTable half = Tables(RopeTable::Kind::kInterleaved, x.shape(), 2, true, true, DType::kF32);
  half.sin = Tensor();
  EXPECT_EQ(code(device_->Rope(x, 2, half)), absl::StatusCode::kInternal);
  EXPECT_EQ(code(device_->Rope(x, 2, RopeTable())), absl::StatusCode::kInternal);
  Tensor gated = x;
  for (const Shape& shape : {Shape({2, 3, 3}), Shape({2, 4, 2})}) {
    EXPECT_EQ(device_->HeadGate(&gated, MakeRandom(shape)).code(), absl::StatusCode::kInternal);
  }
  const Tensor logits = MakeRandom(Shape({2, 3, 4}));
  EXPECT_EQ(device_->HeadGate(&gated, Columns(logits, 3, 2)).code(), absl::StatusCode::kInternal);
  const NormRopePart part[] = {{Columns(x, 8, 16), options}};
  EXPECT_EQ(device_->NormRopeInPlace(part).code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace ltx::cpu
