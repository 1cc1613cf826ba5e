#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/cuda/conformance.h"

namespace ltx::cuda {
namespace {

constexpr DType kFloats[] = {DType::kF32, DType::kBF16};

/// Weights of a softmax in bf16 products carry their own rounding.
Bound AttentionBound(DType dtype) {
  return dtype == DType::kBF16 ? Bound{0x1p-6, 1.5e-2} : Bound{2e-5, 2e-5};
}

using Attentions = ConformanceTest;

TEST_F(Attentions, HeadsMasksAndBiases) {
  struct Case {
    int64_t batch, queries, keys, heads, kv_heads, d, dv;
  };
  for (const DType dtype : kFloats) {
    for (const Case& c :
         {Case{1, 7, 7, 2, 2, 32, 32}, Case{2, 130, 130, 4, 4, 64, 64},
          Case{1, 64, 200, 2, 2, 128, 128}, Case{2, 33, 65, 4, 2, 64, 64},
          Case{1, 100, 100, 8, 1, 256, 256}, Case{1, 40, 40, 4, 2, 512, 512},
          Case{1, 1, 1, 1, 1, 16, 16}, Case{1, 5, 9, 2, 2, 24, 40}, Case{1, 0, 4, 2, 2, 32, 32},
          Case{1, 3, 0, 2, 2, 32, 32}, Case{1, 700, 300, 3, 3, 128, 128}}) {
      const std::vector<Operand> operands = {
          Normal({c.batch, c.queries, c.heads * c.d}, dtype),
          Normal({c.batch, c.keys, c.kv_heads * c.d}, dtype),
          Normal({c.batch, c.keys, c.kv_heads * c.dv}, dtype),
          Mask({c.batch, c.keys}, 0.6),
          Normal({c.batch, 1, c.queries, c.keys}, DType::kF32, 2.0f),
          Normal({1, 1, 1, c.keys}, DType::kF32, 2.0f)};
      const std::string at =
          absl::StrCat(c.batch, " ", c.queries, "x", c.keys, " heads ", c.heads, "/", c.kv_heads,
                       " d ", c.d, "/", c.dv, " ", DTypeName(dtype));
      for (const char* variant :
           {"plain", "mask", "bias", "row_bias", "mask_bias", "causal", "window", "causal_mask"}) {
        const std::string v = variant;
        AttentionOptions options;
        options.heads = c.heads;
        options.kv_heads = c.kv_heads;
        options.scale = 1.0f / std::sqrt(static_cast<float>(c.d));
        if (v == "causal" || v == "window" || v == "causal_mask") {
          if (c.queries != c.keys) continue;
          options.causal = true;
          if (v == "window") options.window = 5;
        }
        Check("Attention " + v + " " + at, operands, AttentionBound(dtype),
              [&](Device& d, Operands t) {
                AttentionOptions with = options;
                if (v == "mask" || v == "mask_bias" || v == "causal_mask") with.key_mask = t[3];
                if (v == "bias" || v == "mask_bias") with.bias = t[4];
                if (v == "row_bias") with.bias = t[5];
                return d.Attention(t[0], t[1], t[2], with);
              });
      }
    }
    // A query that sees nothing yields zeros.
    Operand none = Mask({1, 20}, 0.0);
    Check(absl::StrCat("Attention nothing_visible ", DTypeName(dtype)),
          {Normal({1, 9, 64}, dtype), Normal({1, 20, 64}, dtype), Normal({1, 20, 64}, dtype), none},
          kExact, [](Device& d, Operands t) {
            AttentionOptions options;
            options.key_mask = t[3];
            return d.Attention(t[0], t[1], t[2], options);
          });
  }
}

TEST_F(Attentions, ColumnsOfAFusedProduct) {
  for (const DType dtype : kFloats) {
    for (const int64_t d_head : {64, 128}) {
      const int64_t width = 2 * d_head;
      const Operand fused = Normal({2, 50, 3 * width + 8}, dtype);
      Check(absl::StrCat("Attention columns ", d_head, " ", DTypeName(dtype)), {fused},
            AttentionBound(dtype), [&](Device& d, Operands t) {
              AttentionOptions options;
              options.heads = 2;
              options.kv_heads = 2;
              options.scale = 0.1f;
              return d.Attention(Columns(t[0], 0, width), Columns(t[0], width, width),
                                 Columns(t[0], 2 * width, width), options);
            });
      Check(absl::StrCat("HeadGate columns ", d_head, " ", DTypeName(dtype)),
            {Normal({2, 50, width}, dtype), fused}, Close(dtype),
            [&](Device& d, Operands t) -> absl::StatusOr<Tensor> {
              Tensor x = t[0];
              if (absl::Status s = d.HeadGate(&x, Columns(t[1], 3 * width + 2, 2)); !s.ok()) {
                return s;
              }
              return x;
            });
    }
    for (const auto& [n, heads, d_head] :
         std::vector<std::array<int64_t, 3>>{{5, 3, 16}, {33, 32, 128}, {0, 2, 8}, {7, 1, 5}}) {
      Check(absl::StrCat("HeadGate ", n, " ", heads, " ", d_head, " ", DTypeName(dtype)),
            {Normal({2, n, heads * d_head}, dtype), Normal({2, n, heads}, dtype)}, Close(dtype),
            [](Device& d, Operands t) -> absl::StatusOr<Tensor> {
              Tensor x = t[0];
              if (absl::Status s = d.HeadGate(&x, t[1]); !s.ok()) return s;
              return x;
            });
    }
  }
}

TEST_F(Attentions, PlansMadeAheadAreThoseOfTheOperation) {
  AttentionSize size;
  size.heads = size.kv_heads = 4;
  size.queries = 333;
  size.keys = 211;
  size.head_dim = size.value_dim = 128;
  size.dtype = DType::kBF16;
  size.scale = 0.1f;
  AttentionOptions options;
  options.heads = options.kv_heads = size.heads;
  options.scale = size.scale;
  const Operand q = Normal({1, size.queries, 512}, size.dtype);
  const Operand k = Normal({1, size.keys, 512}, size.dtype);
  std::vector<std::vector<uint8_t>> results;
  for (const bool ahead : {false, true}) {
    auto device = CudaDevice::Create({});
    ASSERT_TRUE(device.ok()) << device.status();
    const OpScratch& scratch = (*device)->op_scratch();
    EXPECT_EQ(scratch.FirstUseOf(size).preparation.attentions, 1);
    if (ahead) {
      (*device)->PrepareAhead({size});
      // A kernel that has to be compiled takes seconds.
      for (int i = 0; i < 3000 && scratch.FirstUseOf(size).preparation.any(); ++i) {
        absl::SleepFor(absl::Milliseconds(10));
      }
      EXPECT_FALSE(scratch.FirstUseOf(size).preparation.any());
    }
    const auto operands = Upload(**device, {q, k});
    ASSERT_TRUE(operands.ok());
    const auto y = (*device)->Attention((*operands)[0], (*operands)[1], (*operands)[1], options);
    ASSERT_TRUE(y.ok()) << y.status();
    EXPECT_EQ((*device)->prepared().attentions, ahead ? 0 : 1);
    results.emplace_back(y->num_bytes());
    ASSERT_TRUE((*device)->Download(*y, absl::MakeSpan(results.back())).ok());
    // One that comes before its plan waits for it, or makes it.
    size.queries += 1;
    (*device)->PrepareAhead({size, size});
    const auto longer = Upload(**device, {Normal({1, size.queries, 512}, size.dtype)});
    ASSERT_TRUE(longer.ok());
    EXPECT_TRUE((*device)->Attention((*longer)[0], (*operands)[1], (*operands)[1], options).ok());
    EXPECT_FALSE(scratch.FirstUseOf(size).preparation.any());
    size.queries -= 1;
  }
  EXPECT_TRUE(results[0] == results[1]);
}

TEST_F(Attentions, NormsAndRotations) {
  struct Case {
    int64_t batch, n, heads, d;
  };
  for (const DType dtype : kFloats) {
    for (const Case& c : {Case{1, 5, 2, 32}, Case{2, 33, 32, 128}, Case{2, 9, 4, 64},
                          Case{1, 7, 3, 6}, Case{1, 0, 2, 16}, Case{1, 20, 8, 256}}) {
      const int64_t width = c.heads * c.d;
      const Operand x = Normal({c.batch, c.n, width}, dtype, 2.0f);
      const std::string at =
          absl::StrCat(c.batch, " ", c.n, " ", c.heads, "x", c.d, " ", DTypeName(dtype));
      struct Table {
        std::string name;
        Shape shape;
        RopeTable::Kind kind;
      };
      for (const Table& table :
           {Table{"none", {}, RopeTable::Kind::kSplit},
            Table{"split", {1, 1, c.n, c.d / 2}, RopeTable::Kind::kSplit},
            Table{"split_heads", {c.batch, c.heads, c.n, c.d / 2}, RopeTable::Kind::kSplit},
            Table{"interleaved", {1, c.n, width}, RopeTable::Kind::kInterleaved},
            Table{"interleaved_batch", {c.batch, c.n, width}, RopeTable::Kind::kInterleaved}}) {
        for (const DType table_dtype : {DType::kF32, dtype}) {
          if (table_dtype == DType::kF32 && dtype != DType::kF32 && table.name != "split") continue;
          const bool given = table.name != "none";
          const Operand cos = given ? Uniform(table.shape, table_dtype, -1.0f, 1.0f) : Operand{};
          const Operand sin = given ? Uniform(table.shape, table_dtype, -1.0f, 1.0f) : Operand{};
          const auto rope = [&](Operands t) {
            RopeTable result;
            result.kind = table.kind;
            result.cos = t[2];
            result.sin = t[3];
            return result;
          };
          for (const bool per_head : {false, true}) {
            NormRopeOptions options;
            options.heads = c.heads;
            options.span =
                per_head ? NormRopeOptions::Span::kPerHead : NormRopeOptions::Span::kFullWidth;
            options.one_plus_weight = per_head;
            const std::vector<Operand> operands = {x, Normal({per_head ? c.d : width}, dtype, 0.5f),
                                                   cos, sin};
            const std::string name = absl::StrCat(per_head ? "per_head " : "full ", table.name, " ",
                                                  DTypeName(table_dtype), " ", at);
            Check("NormRope " + name, operands, CloseSum(dtype), [&](Device& d, Operands t) {
              NormRopeOptions with = options;
              with.weight = t[1];
              if (given) with.rope = rope(t);
              return d.NormRope(t[0], with);
            });
            Check("NormRopeInPlace " + name, operands, CloseSum(dtype),
                  [&](Device& d, Operands t) -> absl::StatusOr<Tensor> {
                    NormRopePart part;
                    part.x = t[0];
                    part.options = options;
                    part.options.weight = t[1];
                    if (given) part.options.rope = rope(t);
                    if (absl::Status s = d.NormRopeInPlace({part}); !s.ok()) return s;
                    return t[0];
                  });
          }
          if (given) {
            Check(absl::StrCat("Rope ", table.name, " ", DTypeName(table_dtype), " ", at),
                  {x, {}, cos, sin}, CloseSum(dtype),
                  [&](Device& d, Operands t) { return d.Rope(t[0], c.heads, rope(t)); });
          }
        }
      }
    }
    // Queries and keys of one fused product in one call: any width, and those of the transformer.
    for (const auto& [d, heads, rotate] : std::vector<std::array<int64_t, 3>>{
             {32, 2, 1}, {128, 32, 1}, {128, 32, 0}, {64, 32, 1}, {64, 32, 0}}) {
      const int64_t width = d * heads;
      // A part of the gate's columns follows, whole packs of them or not.
      for (const int64_t rest : {4, 32}) {
        const Shape table = {1, heads, 9, d / 2};
        Check(absl::StrCat("NormRopeInPlace parts ", heads, "x", d, " rotate ", rotate, " rest ",
                           rest, " ", DTypeName(dtype)),
              {Normal({2, 9, 3 * width + rest}, dtype), Normal({width}, dtype),
               Normal({width}, dtype), Uniform(table, dtype, -1.0f, 1.0f),
               Uniform(table, dtype, -1.0f, 1.0f)},
              CloseSum(dtype),
              [width = width, heads = heads, rotate = rotate](
                  Device& device, Operands t) -> absl::StatusOr<Tensor> {
                NormRopePart q;
                q.x = Columns(t[0], 0, width);
                q.options.heads = heads;
                q.options.weight = t[1];
                if (rotate != 0) {
                  q.options.rope.cos = t[3];
                  q.options.rope.sin = t[4];
                }
                NormRopePart k = q;
                k.x = Columns(t[0], width, width);
                k.options.weight = t[2];
                if (absl::Status s = device.NormRopeInPlace({q, k}); !s.ok()) return s;
                return t[0];
              });
      }
      // Of sequences and batches of different lengths.
      const Shape q_table = {1, heads, 9, d / 2};
      const Shape k_table = {1, heads, 4, d / 2};
      Check(absl::StrCat("NormRopeInPlace unlike parts ", heads, "x", d, " rotate ", rotate, " ",
                         DTypeName(dtype)),
            {Normal({3, 9, width}, dtype), Normal({2, 4, 2 * width}, dtype), Normal({width}, dtype),
             Normal({width}, dtype), Uniform(q_table, dtype, -1.0f, 1.0f),
             Uniform(k_table, dtype, -1.0f, 1.0f)},
            CloseSum(dtype),
            [width = width, heads = heads, rotate = rotate](
                Device& device, Operands t) -> absl::StatusOr<std::vector<Tensor>> {
              NormRopePart q;
              q.x = t[0];
              q.options.heads = heads;
              q.options.weight = t[2];
              NormRopePart k;
              k.x = Columns(t[1], width, width);
              k.options.heads = heads;
              k.options.weight = t[3];
              if (rotate != 0) {
                // Not a rotation, but the same everywhere.
                q.options.rope.cos = q.options.rope.sin = t[4];
                k.options.rope.cos = k.options.rope.sin = t[5];
              }
              if (absl::Status s = device.NormRopeInPlace({q, k}); !s.ok()) return s;
              return std::vector<Tensor>{t[0], t[1]};
            });
    }
  }
}

}  // namespace
}  // namespace ltx::cuda
