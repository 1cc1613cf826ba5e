#include <cmath>
#include <vector>

#include "kernels/cpu/test_util.h"

namespace ltx::cpu {
namespace {

using Vector = std::vector<double>;

double Activate(double x, Activation activation) {
  switch (activation) {
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kGeluTanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::kExp:
      return std::exp(x);
    case Activation::kNone:
      break;
  }
  return x;
}

constexpr Activation kActivations[] = {Activation::kNone,     Activation::kSilu,
                                       Activation::kGeluTanh, Activation::kTanh,
                                       Activation::kSigmoid,  Activation::kExp};
constexpr DType kTypes[] = {DType::kF32, DType::kBF16};
constexpr int64_t kWidths[] = {0, 1, 2, 7, 8, 13, 31, 64, 97, 331};

class NormTest : public CpuDeviceTest {
 protected:
  void Expect(const absl::StatusOr<Tensor>& got, const Tensor& like, const Vector& want) {
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(got->shape(), like.shape());
    EXPECT_EQ(got->dtype(), like.dtype());
    const double relative = like.dtype() == DType::kF32 ? 3e-6 : 1.0 / 256;
    ExpectClose(Values(*got), want, relative, 3e-6);
  }

  /// What RowVectors mean, token by token: [tokens, D].
  Vector Rows(const RowVectors& vectors, const Tensor& x, const std::vector<int32_t>& index) {
    const std::vector<float> rows = Values(vectors.rows);
    const int64_t tokens = x.shape().num_rows();
    const int64_t width = x.dim(-1);
    Vector out;
    for (int64_t t = 0; t < tokens; ++t) {
      int64_t row = 0;
      if (!index.empty()) {
        row = index[t];
      } else if (vectors.rows.dim(0) > 1) {
        row = t / (tokens / x.dim(0));
      }
      for (int64_t d = 0; d < width; ++d) {
        out.push_back(rows[row * vectors.rows.dim(1) + vectors.offset + d]);
      }
    }
    return out;
  }

  absl::StatusOr<Tensor> Reading(Tensor x, const NormReading& reading) {
    auto results = device_->ResidualNorm(&x, {}, 1e-6f, {reading});
    if (!results.ok()) return results.status();
    return results->front();
  }

  struct Modulation {
    RowVectors vectors;
    std::vector<int32_t> index;
  };
  /// Form 0: one row, 1: a row per batch, 2: an index into five rows; from a wider tensor.
  Modulation MakeRows(const Tensor& x, int form, int64_t offset) {
    Modulation m;
    const int64_t rows = form == 0 ? 1 : form == 1 ? x.dim(0) : 5;
    m.vectors.rows = MakeRandom(Shape({rows, x.dim(-1) + offset + 3}), x.dtype());
    m.vectors.offset = offset;
    if (form == 2) {
      for (int64_t t = 0; t < x.shape().num_rows(); ++t) {
        m.index.push_back(static_cast<int32_t>((t * 7 + 3) % 5));
      }
      auto index = TensorFromInts(*device_, m.index, Shape({x.shape().num_rows()}));
      EXPECT_TRUE(index.ok());
      m.vectors.index = *index;
    }
    return m;
  }
};

Vector RmsOf(const std::vector<float>& x, int64_t width, double epsilon) {
  Vector out(x.size());
  for (size_t row = 0; width > 0 && row < x.size() / width; ++row) {
    double sum = 0;
    for (int64_t i = 0; i < width; ++i) sum += std::pow(x[row * width + i], 2);
    for (int64_t i = 0; i < width; ++i) {
      out[row * width + i] = x[row * width + i] / std::sqrt(sum / width + epsilon);
    }
  }
  return out;
}

Vector LayerNormOf(const std::vector<float>& x, int64_t width, double epsilon) {
  Vector out(x.size());
  for (size_t row = 0; width > 0 && row < x.size() / width; ++row) {
    double mean = 0;
    for (int64_t i = 0; i < width; ++i) mean += x[row * width + i];
    mean /= width;
    double variance = 0;
    for (int64_t i = 0; i < width; ++i) variance += std::pow(x[row * width + i] - mean, 2);
    for (int64_t i = 0; i < width; ++i) {
      out[row * width + i] = (x[row * width + i] - mean) / std::sqrt(variance / width + epsilon);
    }
  }
  return out;
}

TEST_F(NormTest, RmsNorm) {
  for (const DType dtype : kTypes) {
    for (const int64_t width : kWidths) {
      const Tensor x = MakeRandom(Shape({2, 3, width}), dtype, 3.0f);
      const Tensor weight = MakeRandom(Shape({width}), dtype);
      const Vector normed = RmsOf(Values(x), width, 1e-6);
      const std::vector<float> w = Values(weight);
      for (const Activation activation : kActivations) {
        for (int form = 0; form < 4; ++form) {
          const bool one_plus = (form & 1) != 0;
          const Tensor given = (form & 2) != 0 ? weight : Tensor();
          Vector want = normed;
          for (size_t i = 0; i < want.size(); ++i) {
            const double factor = given.defined() ? w[i % width] + (one_plus ? 1.0 : 0.0) : 1.0;
            want[i] = Activate(want[i] * factor, activation);
          }
          Expect(device_->RmsNorm(x, given, 1e-6f, one_plus, activation), x, want);
        }
      }
    }
  }
}

TEST_F(NormTest, RmsNormOfManyWideRows) {
  const Tensor x = MakeRandom(Shape({67, 4096}), DType::kF32, 100.0f);
  Expect(device_->RmsNorm(x, Tensor(), 1e-6f), x, RmsOf(Values(x), 4096, 1e-6));
}

TEST_F(NormTest, RmsNormKeepsTinyRows) {
  // Mean square far below epsilon: the row is scaled by 1 / sqrt(epsilon), zeros stay zeros.
  const Tensor x = Make({1e-12f, -2e-12f, 0.0f, 0.0f}, Shape({2, 2}));
  Expect(device_->RmsNorm(x, Tensor(), 1e-8f), x, RmsOf(Values(x), 2, 1e-8));
}

TEST_F(NormTest, RmsNormIntoColumns) {
  for (const DType dtype : kTypes) {
    for (const int64_t width : kWidths) {
      const Tensor x = MakeRandom(Shape({2, 3, width}), dtype, 3.0f);
      const Tensor rows = MakeRandom(Shape({2, 3, 2 * width + 5}), dtype);
      const int64_t first = width + 2;
      // What lies around the columns stays as it is.
      const std::vector<float> before = Values(rows);
      Vector want(before.begin(), before.end());
      const std::vector<float> normed = Values(*device_->RmsNorm(x, Tensor(), 1e-6f));
      for (int64_t i = 0; i < 6 * width; ++i) {
        want[i / width * rows.dim(-1) + first + i % width] = normed[i];
      }
      Columns columns(rows, first, width);
      ASSERT_TRUE(device_->RmsNormInto(x, 1e-6f, &columns).ok());
      ExpectClose(Values(rows), want, 0, 0);
    }
  }
}

TEST_F(NormTest, ModulationInEveryForm) {
  for (const DType dtype : kTypes) {
    for (const int64_t width : kWidths) {
      const Tensor x = MakeRandom(Shape({3, 5, width}), dtype, 2.0f);
      const std::vector<float> values = Values(x);
      for (int form = 0; form < 3; ++form) {
        const Modulation scale = MakeRows(x, form, 2);
        const Modulation shift = MakeRows(x, (form + 1) % 3, 0);
        const Vector scales = Rows(scale.vectors, x, scale.index);
        const Vector shifts = Rows(shift.vectors, x, shift.index);
        const auto modulated = [&](const Vector& base, Activation activation) {
          Vector want(base.size());
          for (size_t i = 0; i < base.size(); ++i) {
            want[i] = Activate(base[i] * (1 + scales[i]) + shifts[i], activation);
          }
          return want;
        };
        Expect(Reading(x, {scale.vectors, shift.vectors}), x,
               modulated(RmsOf(values, width, 1e-6), Activation::kNone));
        Expect(device_->LayerNormModulate(x, 1e-6f, scale.vectors, shift.vectors), x,
               modulated(LayerNormOf(values, width, 1e-6), Activation::kNone));
        for (const Activation activation : {Activation::kNone, Activation::kSilu}) {
          Expect(device_->Modulate(x, scale.vectors, shift.vectors, activation), x,
                 modulated(Vector(values.begin(), values.end()), activation));
        }
      }
    }
  }
}

TEST_F(NormTest, LayerNormSurvivesALargeMean) {
  std::vector<float> values = Random(int64_t{4} * 512);
  for (float& value : values) value += 1000.0f;
  const Tensor x = Make(values, Shape({1, 4, 512}));
  RowVectors zero;
  zero.rows = Make(std::vector<float>(512, 0.0f), Shape({1, 512}));
  auto y = device_->LayerNormModulate(x, 1e-6f, zero, zero);
  ASSERT_TRUE(y.ok()) << y.status();
  ExpectClose(Values(*y), LayerNormOf(values, 512, 1e-6), 0.0, 2e-4);
}

TEST_F(NormTest, ResidualNormAddsInPlaceAndNormsTheSum) {
  for (const DType dtype : kTypes) {
    for (const int64_t width : kWidths) {
      for (int form = 0; form < 4; ++form) {  // 3: no gate
        Tensor state = MakeRandom(Shape({3, 7, width}), dtype);
        const std::vector<float> base = Values(state);
        // Batch rows 1 and 2 alone.
        ResidualUpdate update;
        update.value = MakeRandom(Shape({2, 7, width}), dtype);
        update.first_batch = 1;
        const std::vector<float> added = Values(update.value);
        Vector gates(added.size(), 1.0);
        if (form < 3) {
          const Modulation gate = MakeRows(update.value, form, 2);
          update.gate = gate.vectors;
          gates = Rows(gate.vectors, update.value, gate.index);
        }
        const Modulation scale = MakeRows(state, form % 3, 1);
        const Modulation shift = MakeRows(state, form % 3, 0);
        const NormReading readings[] = {{}, {scale.vectors, shift.vectors}};
        const auto results = device_->ResidualNorm(&state, update, 1e-6f, readings);
        ASSERT_TRUE(results.ok()) << results.status();
        ASSERT_EQ(results->size(), 2u);

        Vector sum(base.begin(), base.end());
        const size_t first = base.size() / 3;
        for (size_t i = 0; i < added.size(); ++i) sum[first + i] += added[i] * gates[i];
        Expect(state, state, sum);
        // The norms are those of the rounded sum.
        const auto normed = device_->RmsNorm(state, Tensor(), 1e-6f);
        ASSERT_TRUE(normed.ok());
        EXPECT_EQ(Bytes((*results)[0]), Bytes(*normed));
        const auto modulated = Reading(state, {scale.vectors, shift.vectors});
        ASSERT_TRUE(modulated.ok());
        EXPECT_EQ(Bytes((*results)[1]), Bytes(*modulated));
      }
    }
  }
}

TEST_F(NormTest, ResidualNormOfNothingToAddLeavesTheState) {
  Tensor state = MakeRandom(Shape({2, 3, 16}));
  const std::vector<uint8_t> before = Bytes(state);
  const NormReading readings[] = {{}};
  const auto results = device_->ResidualNorm(&state, {}, 1e-6f, readings);
  ASSERT_TRUE(results.ok());
  EXPECT_EQ(results->size(), 1u);
  EXPECT_EQ(Bytes(state), before);
}

Vector GroupNormOf(const std::vector<float>& x, const Shape& shape, int64_t groups, double epsilon,
                   const std::vector<float>& weight, const std::vector<float>& bias,
                   Activation activation) {
  const int64_t channels = shape.dim(-1);
  const int64_t positions = shape.num_rows() / shape.dim(0);
  const int64_t width = channels / groups;
  Vector out(x.size());
  for (int64_t b = 0; b < shape.dim(0); ++b) {
    for (int64_t g = 0; g < groups; ++g) {
      double sum = 0;
      double squares = 0;
      const auto each = [&](auto&& f) {
        for (int64_t p = 0; p < positions; ++p) {
          for (int64_t c = g * width; c < (g + 1) * width; ++c) {
            f((b * positions + p) * channels + c, c);
          }
        }
      };
      each([&](int64_t at, int64_t) { sum += x[at]; });
      const double count = static_cast<double>(positions * width);
      const double mean = sum / count;
      each([&](int64_t at, int64_t) { squares += std::pow(x[at] - mean, 2); });
      const double inverse = 1 / std::sqrt(squares / count + epsilon);
      each([&](int64_t at, int64_t c) {
        out[at] = Activate((x[at] - mean) * inverse * weight[c] + bias[c], activation);
      });
    }
  }
  return out;
}

TEST_F(NormTest, GroupNorm) {
  struct Case {
    Shape shape;
    int64_t groups;
  };
  const Case cases[] = {{{2, 3, 5, 7, 64}, 32}, {{1, 130, 32}, 32}, {{2, 9, 11, 13}, 1},
                        {{1, 1, 35}, 5},        {{3, 1000, 6}, 2},  {{1, 0, 8}, 4},
                        {{2, 4, 0}, 1},         {{1, 64, 24}, 3},   {{1, 5, 4, 257}, 1}};
  for (const DType dtype : kTypes) {
    for (const Case& c : cases) {
      const int64_t channels = c.shape.dim(-1);
      const Tensor x = MakeRandom(c.shape, dtype, 2.0f);
      const Tensor weight = MakeRandom(Shape({channels}), dtype);
      const Tensor bias = MakeRandom(Shape({channels}), dtype);
      for (const Activation activation : {Activation::kNone, Activation::kSilu}) {
        GroupNormOptions options;
        options.groups = c.groups;
        options.activation = activation;
        Expect(device_->GroupNorm(x, weight, bias, options), x,
               GroupNormOf(Values(x), c.shape, c.groups, options.epsilon, Values(weight),
                           Values(bias), activation));
      }
    }
  }
}

TEST_F(NormTest, GroupNormSurvivesALargeMean) {
  std::vector<float> values = Random(int64_t{3000} * 16);
  for (float& value : values) value += 500.0f;
  const Tensor x = Make(values, Shape({1, 3000, 16}));
  const Tensor weight = Make(std::vector<float>(16, 1.0f), Shape({16}));
  const Tensor bias = Make(std::vector<float>(16, 0.0f), Shape({16}));
  GroupNormOptions options;
  options.groups = 4;
  auto y = device_->GroupNorm(x, weight, bias, options);
  ASSERT_TRUE(y.ok()) << y.status();
  ExpectClose(Values(*y),
              GroupNormOf(values, x.shape(), 4, options.epsilon, Values(weight), Values(bias),
                          Activation::kNone),
              0.0, 1e-4);
}

TEST_F(NormTest, GroupNormDoesNotDependOnTheThreadCount) {
  const Tensor x = MakeRandom(Shape({1, 7000, 32}));
  const Tensor weight = MakeRandom(Shape({32}));
  const Tensor bias = MakeRandom(Shape({32}));
  auto two = device_->GroupNorm(x, weight, bias, {});
  ASSERT_TRUE(two.ok());
  CpuDeviceOptions options;
  options.threads = 1;
  auto single = CpuDevice::Create(options);
  ASSERT_TRUE(single.ok());
  Device& device = **single;
  auto one = device.GroupNorm(x, weight, bias, {});
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(Values(*one), Values(*two));
}

TEST_F(NormTest, RefusesWhatDoesNotFit) {
  const Tensor x = MakeRandom(Shape({2, 3, 8}));
  const Tensor short_weight = MakeRandom(Shape({7}));
  const Tensor weight = MakeRandom(Shape({8}));
  const Tensor other_dtype = MakeRandom(Shape({8}), DType::kBF16);
  EXPECT_EQ(device_->RmsNorm(x, short_weight, 1e-6f).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(device_->RmsNorm(x, other_dtype, 1e-6f).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(device_->RmsNorm(Tensor(), weight, 1e-6f).status().code(), absl::StatusCode::kInternal);
  for (Columns columns : {Columns(x, 1, 8), Columns(x, 0, 7), Columns(weight), Columns(),
                          Columns(x, -8, 8), Columns(MakeRandom(Shape({2, 3, 8}), DType::kBF16))}) {
    EXPECT_EQ(device_->RmsNormInto(x, 1e-6f, &columns).code(), absl::StatusCode::kInternal);
  }
  GroupNormOptions three;
  three.groups = 3;
  EXPECT_EQ(device_->GroupNorm(x, weight, weight, three).status().code(),
            absl::StatusCode::kInternal);
  EXPECT_EQ(device_->GroupNorm(x, weight, Tensor(), {}).status().code(),
            absl::StatusCode::kInternal);

  RowVectors good;
  good.rows = MakeRandom(Shape({1, 8}));
  RowVectors bad = good;
  bad.offset = 1;
  EXPECT_EQ(device_->Modulate(x, good, bad).status().code(), absl::StatusCode::kInternal);
  bad = good;
  bad.rows = MakeRandom(Shape({3, 8}));
  EXPECT_EQ(Reading(x, {bad, good}).status().code(), absl::StatusCode::kInternal);
  bad = good;
  bad.index = *TensorFromInts(*device_, std::vector<int32_t>{0, 0, 0, 0, 0, 1}, Shape({6}));
  Tensor state = x;
  ResidualUpdate update;
  update.value = x;
  update.gate = bad;
  EXPECT_EQ(device_->ResidualNorm(&state, update, 1e-6f, {}).status().code(),
            absl::StatusCode::kInternal);
  update.gate = good;
  update.first_batch = 1;
  EXPECT_EQ(device_->ResidualNorm(&state, update, 1e-6f, {}).status().code(),
            absl::StatusCode::kInternal);
  const NormReading half[] = {{good, RowVectors()}};
  EXPECT_EQ(device_->ResidualNorm(&state, {}, 1e-6f, half).status().code(),
            absl::StatusCode::kInternal);
  EXPECT_EQ(device_->LayerNormModulate(x, 1e-6f, RowVectors(), good).status().code(),
            absl::StatusCode::kInternal);

  const Tensor bytes = *TensorFromBytes(*device_, std::vector<uint8_t>(8), Shape({8}));
  const absl::Status status = device_->RmsNorm(bytes, Tensor(), 1e-6f).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(status.message().find("U8"), std::string::npos) << status;
}

TEST_F(NormTest, SurvivesFailedAllocations) {
  const Tensor x = MakeRandom(Shape({1, 100, 32}));
  const Tensor weight = MakeRandom(Shape({32}));
  ExpectSurvivesEveryFailedAllocation([&] { return device_->RmsNorm(x, weight, 1e-6f); });
  ExpectSurvivesEveryFailedAllocation([&] { return device_->GroupNorm(x, weight, weight, {}); });
}

}  // namespace
}  // namespace ltx::cpu
