#include "engine/dit/attention.h"

#include <cmath>

#include "engine/dit/test_model.h"
#include "gtest/gtest.h"

namespace ltx::dit {
namespace {

constexpr int64_t kWidth = 8;
constexpr int64_t kHeads = 2;

class GatedAttentionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    TensorShapes shapes;
    AddAttention(&shapes, "a", kWidth, kWidth, kWidth, kHeads, /*gated=*/true);
    ASSERT_TRUE(weights_.Add(RandomFile(shapes), "a.").ok());
    x_ = RandomValues(2 * 3 * kWidth, 7);
  }

  absl::StatusOr<GatedAttention> Load(bool gated) {
    AttentionConfig config;
    config.query_dim = config.context_dim = kWidth;
    config.heads = kHeads;
    config.head_dim = kWidth / kHeads;
    config.gated = gated;
    config.self = true;
    return GatedAttention::Load(
        checkpoint::WeightLoader(device_.get(), &weights_, DType::kF32, MemoryOwner::kWeightsDit),
        config);
  }

  std::vector<float> Run(const AttentionInputs& inputs, bool gated = true) {
    const auto attention = Load(gated);
    EXPECT_TRUE(attention.ok()) << attention.status();
    const auto out = attention->Forward(*device_, inputs);
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? Values(*device_, *out) : std::vector<float>();
  }

  AttentionInputs Inputs() {
    AttentionInputs inputs;
    inputs.x = *TensorFromFloats(*device_, x_, {2, 3, kWidth});
    return inputs;
  }

  std::unique_ptr<cpu::CpuDevice> device_ = TestDevice();
  checkpoint::WeightSet weights_;
  std::vector<float> x_;
};

TEST_F(GatedAttentionTest, BatchRowsThatSkipPassTheirValues) {
  AttentionInputs inputs = Inputs();
  const std::vector<float> plain = Run(inputs);
  inputs.keep.weights = {0.0f, 0.0f};
  inputs.keep.all_skipped = true;
  const std::vector<float> skipped = Run(inputs);
  inputs.keep.weights = {1.0f, 0.0f};
  inputs.keep.all_skipped = false;
  const std::vector<float> mixed = Run(inputs);
  const size_t half = plain.size() / 2;
  const auto head = [half](const std::vector<float>& v) {
    return std::vector<float>(v.begin(), v.begin() + half);
  };
  const auto tail = [half](const std::vector<float>& v) {
    return std::vector<float>(v.begin() + half, v.end());
  };
  EXPECT_LT(RelativeDistance(head(mixed), head(plain)), 1e-6);
  EXPECT_LT(RelativeDistance(tail(mixed), tail(skipped)), 1e-6);
  EXPECT_GT(RelativeDistance(skipped, plain), 1e-3);
}

TEST_F(GatedAttentionTest, SamplesThatShareAContextJoin) {
  AttentionConfig config;
  config.query_dim = config.context_dim = kWidth;
  config.heads = kHeads;
  config.head_dim = kWidth / kHeads;
  config.gated = true;
  const auto attention = GatedAttention::Load(
      checkpoint::WeightLoader(device_.get(), &weights_, DType::kF32, MemoryOwner::kWeightsDit),
      config);
  ASSERT_TRUE(attention.ok()) << attention.status();
  AttentionInputs inputs;
  inputs.x = *TensorFromFloats(*device_, RandomValues(4 * 3 * kWidth, 3), {4, 3, kWidth});
  const Tensor contexts =
      *TensorFromFloats(*device_, RandomValues(2 * 5 * kWidth, 4), {2, 5, kWidth});
  const Tensor first = *contexts.Rows(0, 1);
  const Tensor second = *contexts.Rows(1, 2);
  inputs.context = *device_->Concat({second, first, first, second}, 0);
  const auto repeated = attention->Forward(*device_, inputs);
  ASSERT_TRUE(repeated.ok()) << repeated.status();
  inputs.context = contexts;
  inputs.context_rows = {1, 0, 0, 1};
  const auto shared = attention->Forward(*device_, inputs);
  ASSERT_TRUE(shared.ok()) << shared.status();
  EXPECT_LT(RelativeDistance(Values(*device_, *shared), Values(*device_, *repeated)), 1e-6);
}

TEST_F(GatedAttentionTest, GatesAreASwitch) {
  EXPECT_GT(RelativeDistance(Run(Inputs(), false), Run(Inputs(), true)), 1e-3);
}

TEST_F(GatedAttentionTest, KeysMayHaveTheirOwnTable) {
  AttentionInputs inputs = Inputs();
  const std::vector<float> angles = RandomValues(3 * kWidth / 2, 9, 3.0f);
  const auto table = [&](float factor) {
    std::vector<float> cos;
    std::vector<float> sin;
    for (const float angle : angles) {
      cos.push_back(std::cos(factor * angle));
      sin.push_back(std::sin(factor * angle));
    }
    RopeTable rope;
    rope.cos = *TensorFromFloats(*device_, cos, {1, kHeads, 3, kWidth / kHeads / 2});
    rope.sin = *TensorFromFloats(*device_, sin, {1, kHeads, 3, kWidth / kHeads / 2});
    return rope;
  };
  const std::vector<float> plain = Run(inputs);
  inputs.rope = table(1.0f);
  const std::vector<float> shared = Run(inputs);
  inputs.key_rope = table(1.0f);
  EXPECT_EQ(Run(inputs), shared);
  inputs.key_rope = table(2.0f);
  EXPECT_GT(RelativeDistance(Run(inputs), shared), 1e-4);
  EXPECT_GT(RelativeDistance(shared, plain), 1e-4);
}

TEST_F(GatedAttentionTest, SoftmaxScaleIsThatOfOneHead) {
  // One query head by hand: ungated, identity-free check of the scores through the output.
  AttentionInputs inputs = Inputs();
  std::map<std::string, std::vector<float>> stages;
  const auto attention = Load(true);
  ASSERT_TRUE(attention.ok());
  const auto out =
      attention->Forward(*device_, inputs, [&](absl::string_view name, const Tensor& tensor) {
        stages[std::string(name)] = Values(*device_, tensor);
      });
  ASSERT_TRUE(out.ok()) << out.status();
  const std::vector<float>& q = stages.at("q_normed");
  const std::vector<float>& k = stages.at("k_normed");
  const std::vector<float>& v = stages.at("v");
  const std::vector<float>& gates = stages.at("gates");
  constexpr int64_t kHeadDim = kWidth / kHeads;
  // Attended values before to_out, then to_out itself.
  std::vector<float> expected(x_.size());
  const auto file_weight = [&](const char* name) {
    const auto* entry = weights_.Find(name);
    std::vector<float> values(entry->bytes.size() / sizeof(float));
    std::memcpy(values.data(), entry->bytes.data(), entry->bytes.size());
    return values;
  };
  const std::vector<float> weight = file_weight("to_out.0.weight");
  const std::vector<float> bias = file_weight("to_out.0.bias");
  for (int64_t row = 0; row < 6; ++row) {
    const int64_t first = (row / 3) * 3;
    std::vector<double> attended(kWidth);
    for (int64_t h = 0; h < kHeads; ++h) {
      double weights[3];
      double sum = 0.0;
      for (int64_t j = 0; j < 3; ++j) {
        double score = 0.0;
        for (int64_t d = 0; d < kHeadDim; ++d) {
          score += q[row * kWidth + h * kHeadDim + d] *
                   static_cast<double>(k[(first + j) * kWidth + h * kHeadDim + d]);
        }
        weights[j] = std::exp(score / std::sqrt(static_cast<double>(kHeadDim)));
        sum += weights[j];
      }
      for (int64_t d = 0; d < kHeadDim; ++d) {
        for (int64_t j = 0; j < 3; ++j) {
          attended[h * kHeadDim + d] +=
              weights[j] / sum * v[(first + j) * kWidth + h * kHeadDim + d];
        }
        attended[h * kHeadDim + d] *= gates[row * kHeads + h];
      }
    }
    for (int64_t o = 0; o < kWidth; ++o) {
      double sum = bias[o];
      for (int64_t i = 0; i < kWidth; ++i) sum += weight[o * kWidth + i] * attended[i];
      expected[row * kWidth + o] = static_cast<float>(sum);
    }
  }
  EXPECT_LT(RelativeDistance(Values(*device_, *out), expected), 1e-5);
}

}  // namespace
}  // namespace ltx::dit
