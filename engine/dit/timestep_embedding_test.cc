#include "engine/dit/timestep_embedding.h"

#include <cmath>
#include <limits>

#include "engine/dit/test_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::dit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(TimestepSinusoidTest, CosinesFirst) {
  const std::vector<float> e = TimestepSinusoid({0.0f, 500.0f});
  ASSERT_EQ(e.size(), 512u);
  for (int i = 0; i < 128; ++i) {
    EXPECT_EQ(e[i], 1.0f);
    EXPECT_EQ(e[128 + i], 0.0f);
  }
  EXPECT_FLOAT_EQ(e[256], std::cos(500.0f));
  EXPECT_FLOAT_EQ(e[256 + 128], std::sin(500.0f));
}

TEST(TimestepSinusoidTest, DivisorIsHalfTheWidth) {
  // f_64 = 10000^(-64/128) = 0.01.
  const std::vector<float> e = TimestepSinusoid({100.0f});
  EXPECT_NEAR(e[64], std::cos(1.0f), 1e-5);
  EXPECT_NEAR(e[128 + 64], std::sin(1.0f), 1e-5);
}

TEST(GroupTimestepsTest, DistinctValuesInOrderOfAppearance) {
  const auto unique = GroupTimesteps({0.9f, 0.0f, 0.9f, 0.0f, 0.45f, 0.9f}, 2, 3, "t");
  ASSERT_TRUE(unique.ok());
  EXPECT_THAT(unique->values, ElementsAre(0.9f, 0.0f, 0.45f));
  EXPECT_THAT(unique->index, ElementsAre(0, 1, 0, 1, 2, 0));
}

TEST(GroupTimestepsTest, PerSampleValuesSpreadOverTheTokens) {
  const auto unique = GroupTimesteps({0.9f, 0.5f}, 2, 3, "t");
  ASSERT_TRUE(unique.ok());
  EXPECT_THAT(unique->values, ElementsAre(0.9f, 0.5f));
  EXPECT_THAT(unique->index, ElementsAre(0, 0, 0, 1, 1, 1));
}

TEST(GroupTimestepsTest, OneValueNeedsNoIndex) {
  const auto unique = GroupTimesteps({0.5f, 0.5f}, 2, 3, "t");
  ASSERT_TRUE(unique.ok());
  EXPECT_THAT(unique->values, ElementsAre(0.5f));
  EXPECT_THAT(unique->index, IsEmpty());
}

TEST(GroupTimestepsTest, BadInputIsNamed) {
  EXPECT_THAT(GroupTimesteps({0.5f, 0.5f, 0.5f}, 2, 3, "video.timesteps").status().message(),
              HasSubstr("video.timesteps holds 3 values; 2 (one per batch row) or 6 (one per "
                        "token) would be legal"));
  EXPECT_THAT(GroupTimesteps({std::numeric_limits<float>::infinity()}, 1, 1, "video.timesteps")
                  .status()
                  .message(),
              HasSubstr("video.timesteps[0] is inf"));
}

TEST(AdaLayerNormSingleTest, EveryLayerAndEachActivationCounts) {
  TensorShapes shapes;
  AddAdaln(&shapes, "a", 8, 3);
  const auto file = RandomFile(shapes);
  const auto device = TestDevice();
  checkpoint::WeightSet weights;
  ASSERT_TRUE(weights.Add(file, "a.").ok());
  const auto adaln = AdaLayerNormSingle::Load(
      checkpoint::WeightLoader(device.get(), &weights, DType::kF32, MemoryOwner::kWeightsDit), 8,
      3);
  ASSERT_TRUE(adaln.ok()) << adaln.status();
  const auto sinusoid = SinusoidTensor(*device, {700.0f, 0.0f}, DType::kF32);
  ASSERT_TRUE(sinusoid.ok()) << sinusoid.status();
  const auto result = adaln->Forward(*device, *sinusoid);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->modulation.shape(), (Shape{2, 24}));

  // The same in plain loops.
  const auto linear = [&](const std::vector<float>& x, const std::string& name, int64_t out) {
    const auto read = [&](const std::string& tensor) {
      const auto& bytes = file->entries().at(tensor).bytes;
      std::vector<float> values(bytes.size() / sizeof(float));
      std::memcpy(values.data(), bytes.data(), bytes.size());
      return values;
    };
    const std::vector<float> weight = read(name + ".weight");
    std::vector<float> y = read(name + ".bias");
    for (int64_t o = 0; o < out; ++o) {
      for (size_t i = 0; i < x.size(); ++i) y[o] += weight[o * x.size() + i] * x[i];
    }
    return y;
  };
  const auto silu = [](std::vector<float> x) {
    for (float& value : x) value /= 1.0f + std::exp(-value);
    return x;
  };
  const std::vector<float> hidden =
      silu(linear(TimestepSinusoid({700.0f}), "a.emb.timestep_embedder.linear_1", 8));
  const std::vector<float> embedded = linear(hidden, "a.emb.timestep_embedder.linear_2", 8);
  const std::vector<float> modulation = linear(silu(embedded), "a.linear", 24);
  const std::vector<float> got_embedded = Values(*device, result->embedded);
  const std::vector<float> got_modulation = Values(*device, result->modulation);
  for (int i = 0; i < 8; ++i) EXPECT_NEAR(got_embedded[i], embedded[i], 1e-5);
  for (int i = 0; i < 24; ++i) EXPECT_NEAR(got_modulation[i], modulation[i], 1e-5);
}

}  // namespace
}  // namespace ltx::dit
