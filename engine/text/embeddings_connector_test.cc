#include "engine/text/embeddings_connector.h"

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/text/test_models.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/host_copy.h"

namespace ltx::text {
namespace {

using checkpoint::ConnectorConfig;
using checkpoint::SafetensorsWriter;
using checkpoint::WeightLoader;
using checkpoint::WeightSet;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pointwise;

ConnectorConfig TinyConnector() {
  ConnectorConfig config;
  config.num_attention_heads = 2;
  config.attention_head_dim = 4;
  config.num_layers = 2;
  config.apply_gated_attention = true;
  config.max_pos = 4096;
  config.double_precision_rope = true;
  return config;
}

class EmbeddingsConnectorTest : public ::testing::Test {
 protected:
  absl::StatusOr<EmbeddingsConnector> Load(const SafetensorsWriter& writer,
                                           const ConnectorConfig& config) {
    weights_ = OpenWeights(writer, "connector");
    return EmbeddingsConnector::Load(
        config, WeightLoader(device_.get(), &weights_, DType::kF32, MemoryOwner::kWeightsText));
  }
  SafetensorsWriter Writer(const ConnectorConfig& config) {
    SafetensorsWriter writer;
    AddRandom(ConnectorShapes(config, ""), &writer);
    return writer;
  }
  Tensor Features(int64_t tokens, float step = 0.1f) {
    std::vector<float> values;
    for (int64_t i = 0; i < tokens * 8; ++i) {
      values.push_back(std::sin(step * static_cast<float>(i)));
    }
    const auto tensor = TensorFromFloats(*device_, values, {1, tokens, 8});
    EXPECT_TRUE(tensor.ok());
    return *tensor;
  }
  std::vector<float> Values(const absl::StatusOr<Tensor>& tensor) {
    EXPECT_TRUE(tensor.ok()) << tensor.status();
    const auto values = ToFloats(*device_, *tensor);
    EXPECT_TRUE(values.ok());
    return *values;
  }

  std::unique_ptr<Device> device_ = MakeDevice();
  WeightSet weights_;
};

TEST_F(EmbeddingsConnectorTest, RegistersStandAtTheirAbsolutePosition) {
  auto connector = Load(Writer(TinyConnector()), TinyConnector());
  ASSERT_TRUE(connector.ok()) << connector.status();
  std::map<std::string, std::vector<float>> stages;
  const auto context =
      connector->Forward(Features(3), 256, [&](absl::string_view name, const Tensor& tensor) {
        stages[std::string(name)] = Values(tensor);
      });
  ASSERT_TRUE(context.ok()) << context.status();
  EXPECT_EQ(context->shape(), Shape({1, 256, 8}));
  WeightLoader loader(device_.get(), &weights_, DType::kF32, MemoryOwner::kWeightsText);
  const auto registers = loader.GetHost("learnable_registers", {128, 8});
  ASSERT_TRUE(registers.ok());
  const std::vector<float>& rows = stages.at("with_registers");
  const std::vector<float> features = Values(Features(3));
  for (size_t p = 0; p < 256; ++p) {
    for (size_t i = 0; i < 8; ++i) {
      const float expected = p < 3 ? features[p * 8 + i] : (*registers)[(p % 128) * 8 + i];
      ASSERT_EQ(rows[p * 8 + i], expected) << p;
    }
  }
  EXPECT_EQ(stages.count("block1"), 1u);
  EXPECT_EQ(stages.at("rope_cos").size(), 256u * 4);
}

TEST_F(EmbeddingsConnectorTest, ResultRowsHaveUnitMeanSquare) {
  auto connector = Load(Writer(TinyConnector()), TinyConnector());
  ASSERT_TRUE(connector.ok());
  const std::vector<float> values = Values(connector->Forward(Features(128), 128));
  for (size_t row = 0; row < 128; ++row) {
    float sum = 0;
    for (size_t i = 0; i < 8; ++i) sum += values[row * 8 + i] * values[row * 8 + i];
    ASSERT_NEAR(sum / 8, 1.0f, 1e-3f);
  }
}

TEST_F(EmbeddingsConnectorTest, EveryFlagChangesTheResult) {
  const auto run = [&](const ConnectorConfig& config) {
    auto connector = Load(Writer(config), config);
    EXPECT_TRUE(connector.ok()) << connector.status();
    return Values(connector->Forward(Features(5), 128));
  };
  const std::vector<float> base = run(TinyConnector());
  ConnectorConfig config = TinyConnector();
  config.apply_gated_attention = false;
  EXPECT_THAT(run(config), Not(Pointwise(FloatNear(1e-4f), base)));
  config = TinyConnector();
  config.ff_bias = false;
  EXPECT_THAT(run(config), Not(Pointwise(FloatNear(1e-4f), base)));
  config = TinyConnector();
  config.rope_type = checkpoint::RopeType::kInterleaved;
  EXPECT_THAT(run(config), Not(Pointwise(FloatNear(1e-4f), base)));
  config = TinyConnector();
  config.max_pos = 1;
  EXPECT_THAT(run(config), Not(Pointwise(FloatNear(1e-4f), base)));
}

TEST_F(EmbeddingsConnectorTest, LengthMustHoldTheTokensAndWholeRegisterSets) {
  auto connector = Load(Writer(TinyConnector()), TinyConnector());
  ASSERT_TRUE(connector.ok());
  for (const int64_t length : {0, 127, 130}) {
    const absl::Status status = connector->Forward(Features(1), length).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << length;
  }
  EXPECT_EQ(connector->Forward(Features(129), 128).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(EmbeddingsConnectorTest, FlagsAndTensorsMustAgree) {
  ConnectorConfig without_bias = TinyConnector();
  without_bias.ff_bias = false;
  absl::Status status = Load(Writer(TinyConnector()), without_bias).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("ff.net.0.proj.bias"));
  status = Load(Writer(without_bias), TinyConnector()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("ff.net.0.proj.bias"));
  ConnectorConfig fewer = TinyConnector();
  fewer.num_layers = 1;
  EXPECT_THAT(Load(Writer(TinyConnector()), fewer).status().message(),
              HasSubstr("transformer_1d_blocks.1"));
}

}  // namespace
}  // namespace ltx::text
