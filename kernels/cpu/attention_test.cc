#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cpu/test_util.h"

namespace ltx::cpu {
namespace {

using Vector = std::vector<double>;
constexpr double kHidden = -std::numeric_limits<double>::infinity();

struct Sizes {
  int64_t batch = 1;
  int64_t queries = 1;
  int64_t keys = 1;
  int64_t heads = 1;
  int64_t kv_heads = 1;
  int64_t width = 1;
  int64_t value_width = 1;
};

class AttentionTest : public CpuDeviceTest {
 protected:
  struct Operands {
    Tensor q, k, v;
  };
  Operands MakeOperands(const Sizes& s, DType dtype, float spread = 1.0f) {
    return {MakeRandom(Shape({s.batch, s.queries, s.heads * s.width}), dtype, spread),
            MakeRandom(Shape({s.batch, s.keys, s.kv_heads * s.width}), dtype, spread),
            MakeRandom(Shape({s.batch, s.keys, s.kv_heads * s.value_width}), dtype)};
  }

  Vector Reference(const Sizes& s, const Operands& data, const AttentionOptions& options) {
    const std::vector<float> q = Values(data.q);
    const std::vector<float> k = Values(data.k);
    const std::vector<float> v = Values(data.v);
    const std::vector<float> bias =
        options.bias.defined() ? Values(options.bias) : std::vector<float>();
    const std::vector<uint8_t> mask =
        options.key_mask.defined() ? Bytes(options.key_mask) : std::vector<uint8_t>();
    Vector out;
    Vector scores(s.keys);
    for (int64_t b = 0; b < s.batch; ++b) {
      for (int64_t i = 0; i < s.queries; ++i) {
        for (int64_t h = 0; h < s.heads; ++h) {
          const int64_t kv = h / (s.heads / s.kv_heads);
          double largest = kHidden;
          for (int64_t j = 0; j < s.keys; ++j) {
            double score = 0;
            for (int64_t e = 0; e < s.width; ++e) {
              score += static_cast<double>(q[((b * s.queries + i) * s.heads + h) * s.width + e]) *
                       k[((b * s.keys + j) * s.kv_heads + kv) * s.width + e];
            }
            score *= options.scale;
            if (!bias.empty()) {
              const int64_t bias_batch = options.bias.dim(0) == 1 ? 0 : b;
              const int64_t bias_query = options.bias.dim(2) == 1 ? 0 : i;
              // In float, as documented for magnitudes where it matters: lowest() absorbs scores.
              score = static_cast<float>(score) +
                      bias[(bias_batch * options.bias.dim(2) + bias_query) * s.keys + j];
            }
            if (!mask.empty() && mask[b * s.keys + j] == 0) score = kHidden;
            if (options.causal && j > i) score = kHidden;
            if (options.window > 0 && j <= i - options.window) score = kHidden;
            scores[j] = score;
            largest = std::max(largest, score);
          }
          double sum = 0;
          for (double& score : scores) {
            score = largest == kHidden ? 0.0 : std::exp(score - largest);
            sum += score;
          }
          for (int64_t e = 0; e < s.value_width; ++e) {
            double value = 0;
            for (int64_t j = 0; j < s.keys; ++j) {
              if (scores[j] == 0.0) continue;
              value += scores[j] * v[((b * s.keys + j) * s.kv_heads + kv) * s.value_width + e];
            }
            out.push_back(sum == 0.0 ? 0.0 : value / sum);
          }
        }
      }
    }
    return out;
  }

  void Check(const Sizes& s, const Operands& data, const AttentionOptions& options,
             double absolute = 3e-6) {
    SCOPED_TRACE(absl::StrCat("B ", s.batch, " Nq ", s.queries, " Nk ", s.keys, " H ", s.heads, "/",
                              s.kv_heads, " d ", s.width, " dv ", s.value_width, " causal ",
                              options.causal, " window ", options.window, " dtype ",
                              DTypeName(data.q.dtype())));
    auto out = device_->Attention(data.q, data.k, data.v, options);
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ(out->shape(), Shape({s.batch, s.queries, s.heads * s.value_width}));
    EXPECT_EQ(out->dtype(), data.q.dtype());
    const double relative = data.q.dtype() == DType::kF32 ? 3e-6 : 1.0 / 256;
    ExpectClose(Values(*out), Reference(s, data, options), relative, absolute);
    CheckColumns(s, data, options, *out);
  }

  /// Queries | values | keys as columns of one tensor where they have as many rows, else each
  /// between other columns, give the same bytes.
  void CheckColumns(const Sizes& s, const Operands& data, const AttentionOptions& options,
                    const Tensor& want) {
    const auto between = [&](const Tensor& x) {
      const Tensor other = MakeRandom(Shape({x.dim(0), x.dim(1), 3}), x.dtype());
      return Columns(*device_->Concat({other, x, other}, 2), 3, x.dim(2));
    };
    Columns q = between(data.q);
    Columns k = between(data.k);
    Columns v = between(data.v);
    if (s.queries == s.keys) {
      const Tensor joined = *device_->Concat({data.q, data.v, data.k}, 2);
      q = Columns(joined, 0, data.q.dim(2));
      v = Columns(joined, q.width, data.v.dim(2));
      k = Columns(joined, q.width + v.width, data.k.dim(2));
    }
    const auto out = device_->Attention(q, k, v, options);
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ(Bytes(*out), Bytes(want));
  }

  AttentionOptions OptionsOf(const Sizes& s) {
    AttentionOptions options;
    options.heads = s.heads;
    options.kv_heads = s.kv_heads;
    options.scale = s.width == 0 ? 1.0f : 1.0f / std::sqrt(static_cast<float>(s.width));
    return options;
  }

  /// About `share` of the keys visible.
  Tensor KeyMask(const Sizes& s, double share) {
    std::vector<uint8_t> mask(s.batch * s.keys);
    std::uniform_real_distribution<double> uniform;
    for (uint8_t& m : mask) m = uniform(generator_) < share ? 1 : 0;
    return *TensorFromBytes(*device_, mask, Shape({s.batch, s.keys}));
  }
};

TEST_F(AttentionTest, SizesOfAllKinds) {
  const Sizes sizes[] = {
      {1, 1, 1, 1, 1, 1, 1},      {2, 3, 5, 2, 2, 7, 3},       {1, 7, 64, 1, 1, 8, 8},
      {1, 6, 65, 3, 3, 16, 16},   {2, 97, 63, 2, 1, 16, 24},   {1, 100, 129, 2, 2, 17, 9},
      {1, 13, 200, 4, 2, 64, 64}, {1, 193, 130, 1, 1, 40, 12}, {1, 11, 31, 2, 1, 128, 128},
      {1, 5, 70, 1, 1, 512, 512}, {3, 2, 9, 6, 2, 13, 5},      {1, 96, 128, 2, 2, 32, 33},
      {1, 9, 24, 1, 1, 256, 8},   {2, 0, 5, 2, 2, 4, 4},       {2, 3, 0, 2, 2, 4, 4},
      {0, 3, 5, 2, 2, 4, 4},      {1, 3, 5, 2, 2, 0, 4},       {1, 3, 5, 2, 2, 4, 0},
      {1, 300, 17, 1, 1, 8, 41},  {1, 12, 41, 8, 8, 10, 26},
  };
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const Sizes& s : sizes) Check(s, MakeOperands(s, dtype), OptionsOf(s));
  }
}

TEST_F(AttentionTest, MasksWindowsAndBiasesTogether) {
  const Sizes sizes[] = {{2, 37, 37, 4, 2, 16, 16}, {2, 150, 150, 2, 1, 8, 24}};
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const Sizes& s : sizes) {
      const Operands data = MakeOperands(s, dtype);
      for (const bool causal : {false, true}) {
        for (const int64_t window : {0, 5, 100}) {
          for (const bool masked : {false, true}) {
            for (int bias = 0; bias < 5; ++bias) {
              AttentionOptions options = OptionsOf(s);
              options.causal = causal;
              options.window = window;
              if (masked) options.key_mask = KeyMask(s, 0.6);
              if (bias > 0) {
                options.bias = MakeRandom(
                    Shape({bias % 2 == 0 ? s.batch : 1, 1, bias > 2 ? s.queries : 1, s.keys}),
                    DType::kF32, 2.0f);
              }
              Check(s, data, options);
            }
          }
        }
      }
    }
  }
}

TEST_F(AttentionTest, ManyKeysInOnePass) {
  const Sizes s{1, 20, 5003, 2, 2, 32, 32};
  Check(s, MakeOperands(s, DType::kF32), OptionsOf(s));
  AttentionOptions options = OptionsOf(s);
  options.key_mask = KeyMask(s, 0.01);
  Check(s, MakeOperands(s, DType::kF32, 4.0f), options, 2e-5);
}

TEST_F(AttentionTest, ExtremeScoresDoNotOverflow) {
  const Sizes s{1, 17, 150, 2, 2, 16, 16};
  AttentionOptions options = OptionsOf(s);
  options.scale = 1.0f;
  // Scores of some 10^8: one key takes all.
  Check(s, MakeOperands(s, DType::kF32, 5000.0f), options);
  // Falling and rising scores force a new maximum in no block, or in every block.
  for (const float slope : {-50.0f, 50.0f}) {
    const Operands random = MakeOperands(s, DType::kF32);
    std::vector<float> q(s.queries * 32, 1.0f);
    std::vector<float> k(s.keys * 32);
    for (int64_t j = 0; j < s.keys; ++j) {
      std::fill_n(k.begin() + j * 32, 32, slope * static_cast<float>(j) / 16.0f);
    }
    const Operands data{Make(q, random.q.shape()), Make(k, random.k.shape()), random.v};
    Check(s, data, options);
  }
}

TEST_F(AttentionTest, FullyHiddenQueriesYieldZeros) {
  const Sizes s{2, 70, 70, 2, 2, 16, 16};
  const Operands data = MakeOperands(s, DType::kF32);
  AttentionOptions options = OptionsOf(s);
  options.causal = true;
  options.window = 4;
  std::vector<uint8_t> mask(s.batch * s.keys, 1);
  // Row 0: padding on the left. Row 1: everything.
  std::fill_n(mask.begin(), 40, uint8_t{0});
  std::fill_n(mask.begin() + s.keys, s.keys, uint8_t{0});
  options.key_mask = *TensorFromBytes(*device_, mask, Shape({s.batch, s.keys}));
  Check(s, data, options);
  auto out = device_->Attention(data.q, data.k, data.v, options);
  ASSERT_TRUE(out.ok());
  const std::vector<float> values = Values(*out);
  for (int64_t i = 0; i < 40 * 32; ++i) ASSERT_EQ(values[i], 0.0f);
  for (int64_t i = s.queries * 32; i < s.batch * s.queries * 32; ++i) ASSERT_EQ(values[i], 0.0f);
  EXPECT_NE(values[40 * 32], 0.0f);
}

TEST_F(AttentionTest, HiddenKeysMayHoldAnything) {
  const Sizes s{1, 9, 100, 1, 1, 16, 16};
  Operands data = MakeOperands(s, DType::kF32);
  AttentionOptions options = OptionsOf(s);
  options.key_mask = KeyMask(s, 0.5);
  const Vector want = Reference(s, data, options);
  const std::vector<uint8_t> mask = Bytes(options.key_mask);
  std::vector<float> k = Values(data.k);
  std::vector<float> v = Values(data.v);
  for (int64_t j = 0; j < s.keys; ++j) {
    if (mask[j] != 0) continue;
    std::fill_n(k.begin() + j * 16, 16, std::numeric_limits<float>::quiet_NaN());
    std::fill_n(v.begin() + j * 16, 16, std::numeric_limits<float>::infinity());
  }
  auto out = device_->Attention(data.q, Make(k, data.k.shape()), Make(v, data.v.shape()), options);
  ASSERT_TRUE(out.ok());
  ExpectClose(Values(*out), want, 3e-6, 3e-6);
}

TEST_F(AttentionTest, AdditiveMasksBehaveAsInSoftmax) {
  const Sizes s{1, 8, 80, 2, 2, 16, 16};
  const Operands data = MakeOperands(s, DType::kF32);
  AttentionOptions options = OptionsOf(s);
  const float lowest = std::numeric_limits<float>::lowest();
  for (const float hidden : {lowest, -1e4f, std::log(std::numeric_limits<float>::min()),
                             -std::numeric_limits<float>::infinity()}) {
    std::vector<float> bias(s.queries * s.keys, 0.0f);
    for (int64_t i = 0; i < s.queries; ++i) {
      for (int64_t j = 0; j < s.keys; ++j) {
        if ((i + j) % 3 == 0) bias[i * s.keys + j] = hidden;
      }
    }
    options.bias = Make(bias, Shape({1, 1, s.queries, s.keys}));
    Check(s, data, options);
  }
  // All keys at the lowest number: the scores vanish in it, every key weighs the same.
  options.bias = Make(std::vector<float>(s.keys, lowest), Shape({1, 1, 1, s.keys}));
  Check(s, data, options);
  auto out = device_->Attention(data.q, data.k, data.v, options);
  ASSERT_TRUE(out.ok());
  const std::vector<float> v = Values(data.v);
  double mean = 0;
  for (int64_t j = 0; j < s.keys; ++j) mean += v[j * 32] / static_cast<double>(s.keys);
  EXPECT_NEAR(Values(*out)[0], mean, 1e-6);
}

TEST_F(AttentionTest, NanIsNotSwallowed) {
  const Sizes s{1, 3, 70, 1, 1, 8, 8};
  Operands data = MakeOperands(s, DType::kF32);
  std::vector<float> k = Values(data.k);
  k[66 * 8] = std::numeric_limits<float>::quiet_NaN();
  auto out = device_->Attention(data.q, Make(k, data.k.shape()), data.v, OptionsOf(s));
  ASSERT_TRUE(out.ok());
  for (const float value : Values(*out)) EXPECT_TRUE(std::isnan(value));
}

TEST_F(AttentionTest, NeverHoldsAllScores) {
  const auto workspace_of = [&](int64_t keys) {
    const Sizes s{1, 2000, keys, 1, 1, 16, 16};
    const Operands data = MakeOperands(s, DType::kF32);
    device_->ledger().ResetPeaks();
    EXPECT_TRUE(device_->Attention(data.q, data.k, data.v, OptionsOf(s)).ok());
    return device_->ledger().Read().by_owner[static_cast<int>(MemoryOwner::kWorkspace)].peak_bytes;
  };
  const int64_t few = workspace_of(100);
  EXPECT_GT(few, 0);
  EXPECT_LT(few, int64_t{2000} * 100 * 4);
  EXPECT_EQ(workspace_of(4000), few);
}

TEST_F(AttentionTest, ThreadsDoNotChangeTheResult) {
  const Sizes s{1, 192, 100, 2, 2, 16, 16};
  const Operands data = MakeOperands(s, DType::kF32);
  auto two = device_->Attention(data.q, data.k, data.v, OptionsOf(s));
  CpuDeviceOptions single_thread;
  single_thread.threads = 1;
  auto single = CpuDevice::Create(single_thread);
  ASSERT_TRUE(single.ok());
  auto one = (*single)->Attention(data.q, data.k, data.v, OptionsOf(s));
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(Values(*one), Values(*two));
}

TEST_F(AttentionTest, RefusesWhatDoesNotFit) {
  const Sizes s{2, 4, 6, 2, 2, 8, 8};
  const Operands data = MakeOperands(s, DType::kF32);
  const auto code = [&](const Operands& o, const AttentionOptions& options) {
    return device_->Attention(o.q, o.k, o.v, options).status().code();
  };
  AttentionOptions options = OptionsOf(s);
  options.heads = 3;
  EXPECT_EQ(code(data, options), absl::StatusCode::kInternal);
  options = OptionsOf(s);
  options.kv_heads = 1;
  EXPECT_EQ(code(data, options), absl::StatusCode::kInternal);
  options = OptionsOf(s);
  options.causal = true;
  EXPECT_EQ(code(data, options), absl::StatusCode::kInternal);
  options = OptionsOf(s);
  options.key_mask = *TensorFromBytes(*device_, std::vector<uint8_t>(6, 1), Shape({1, 6}));
  EXPECT_EQ(code(data, options), absl::StatusCode::kInternal);
  options = OptionsOf(s);
  options.bias = MakeRandom(Shape({1, 1, 3, 6}));
  EXPECT_EQ(code(data, options), absl::StatusCode::kInternal);
  options.bias = MakeRandom(Shape({1, 1, 1, 6}), DType::kBF16);
  EXPECT_EQ(code(data, options), absl::StatusCode::kInternal);
  options = OptionsOf(s);
  Operands mixed = data;
  mixed.v = MakeRandom(data.v.shape(), DType::kBF16);
  EXPECT_EQ(code(mixed, options), absl::StatusCode::kInternal);
  mixed.v = Tensor();
  EXPECT_EQ(code(mixed, options), absl::StatusCode::kInternal);
}

TEST_F(AttentionTest, SurvivesFailedAllocations) {
  const Sizes s{1, 30, 40, 2, 2, 16, 16};
  const Operands data = MakeOperands(s, DType::kBF16);
  ExpectSurvivesEveryFailedAllocation(
      [&] { return device_->Attention(data.q, data.k, data.v, OptionsOf(s)); });
}

}  // namespace
}  // namespace ltx::cpu
