#include "engine/text/prompt_encoder.h"

#include <memory>
#include <string>
#include <vector>

#include "engine/text/test_models.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/host_copy.h"

namespace ltx::text {
namespace {

using checkpoint::FeatureExtractorConfig;
using checkpoint::GemmaFamily;
using checkpoint::SafetensorsWriter;
using checkpoint::TextProjectionConfig;
using checkpoint::WeightSet;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pointwise;

constexpr absl::string_view kConnectors = "model.diffusion_model.";

TextProjectionConfig TinyProjection() {
  TextProjectionConfig config;
  config.feature_extractor.form = FeatureExtractorConfig::Form::kV2;
  config.feature_extractor.video_width = 8;
  config.feature_extractor.audio_width = 4;
  config.video_connector.num_attention_heads = 2;
  config.video_connector.attention_head_dim = 4;
  config.video_connector.num_layers = 1;
  config.audio_connector = config.video_connector;
  config.audio_connector.attention_head_dim = 2;
  return config;
}

TensorShapes ProjectionShapes() {
  return {{"text_embedding_projection.video_aggregate_embed.weight", {8, 24}},
          {"text_embedding_projection.video_aggregate_embed.bias", {8}},
          {"text_embedding_projection.audio_aggregate_embed.weight", {4, 24}},
          {"text_embedding_projection.audio_aggregate_embed.bias", {4}}};
}

class PromptEncoderTest : public ::testing::Test {
 protected:
  PromptEncoderTest() {
    AddRandom(TowerShapes(GemmaFamily::kGemma4, "model."), &tower_);
    const TextProjectionConfig config = TinyProjection();
    AddRandom(ConnectorShapes(config.video_connector,
                              std::string(kConnectors) + "video_embeddings_connector."),
              &transformer_);
    AddRandom(ConnectorShapes(config.audio_connector,
                              std::string(kConnectors) + "audio_embeddings_connector."),
              &transformer_);
    options_.compute = DType::kF32;
    options_.limits.max_tokens = 128;
  }

  absl::StatusOr<PromptEncoder> Load(const TextProjectionConfig& config) {
    GemmaAssets assets;
    assets.source = "test";
    assets.config = TinyGemmaConfig(GemmaFamily::kGemma4);
    assets.tokenizer_json = TinyTokenizerJson();
    assets.tokenizer_config_json = TinyTokenizerConfig();
    assets.weights = OpenWeights(tower_, "tower");
    return PromptEncoder::Load(device_.get(), assets, config,
                               OpenWeights(transformer_, "transformer"), options_);
  }
  std::vector<float> Values(const Tensor& tensor) {
    const auto values = ToFloats(*device_, tensor);
    EXPECT_TRUE(values.ok());
    return *values;
  }

  std::unique_ptr<Device> device_ = MakeDevice();
  SafetensorsWriter tower_, transformer_;
  PromptEncoderOptions options_;
};

TEST_F(PromptEncoderTest, HoldsWeightsAndCachesOnly) {
  AddRandom(ProjectionShapes(), &tower_);
  auto encoder = Load(TinyProjection());
  ASSERT_TRUE(encoder.ok()) << encoder.status();
  const MemoryLedger::Snapshot loaded = device_->ledger().Read();
  EXPECT_EQ(loaded.by_owner[static_cast<int>(MemoryOwner::kActivations)].live_bytes, 0);
  EXPECT_EQ(loaded.by_owner[static_cast<int>(MemoryOwner::kWorkspace)].live_bytes, 0);
  EXPECT_GT(loaded.by_owner[static_cast<int>(MemoryOwner::kCache)].live_bytes, 0);
  ASSERT_TRUE(encoder->Encode("").ok());
  EXPECT_EQ(device_->ledger().Read().total.live_bytes, loaded.total.live_bytes);
}

TEST_F(PromptEncoderTest, EncodesPromptsOfEveryLength) {
  AddRandom(ProjectionShapes(), &tower_);
  auto encoder = Load(TinyProjection());
  ASSERT_TRUE(encoder.ok()) << encoder.status();
  const auto empty = encoder->Encode("");
  ASSERT_TRUE(empty.ok()) << empty.status();
  EXPECT_EQ(empty->video.shape(), Shape({1, 128, 8}));
  EXPECT_EQ(empty->audio.shape(), Shape({1, 128, 4}));
  EXPECT_EQ(empty->num_tokens, 1);
  EXPECT_EQ(empty->dropped_tokens, 0);
  const auto blank = encoder->Encode(" \n ");
  ASSERT_TRUE(blank.ok());
  EXPECT_EQ(Values(blank->video), Values(empty->video));
  const auto words = encoder->Encode("ab cd");
  ASSERT_TRUE(words.ok());
  EXPECT_EQ(words->num_tokens, 4);
  EXPECT_THAT(Values(words->video), Not(Pointwise(FloatNear(1e-3f), Values(empty->video))));
  const auto full = encoder->Encode(std::string(200, 'b'));
  ASSERT_TRUE(full.ok());
  EXPECT_EQ(full->num_tokens, 128);
  EXPECT_EQ(full->dropped_tokens, 73);
  EXPECT_EQ(encoder->Encode("\xff").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(PromptEncoderTest, ProjectionMayBeInEitherFile) {
  SafetensorsWriter without = tower_;
  AddRandom(ProjectionShapes(), &tower_);
  auto beside_tower = Load(TinyProjection());
  ASSERT_TRUE(beside_tower.ok()) << beside_tower.status();
  tower_ = without;
  AddRandom(ProjectionShapes(), &transformer_);
  auto beside_connectors = Load(TinyProjection());
  ASSERT_TRUE(beside_connectors.ok()) << beside_connectors.status();
  EXPECT_EQ(Values(beside_tower->Encode("abc")->audio),
            Values(beside_connectors->Encode("abc")->audio));
}

TEST_F(PromptEncoderTest, VideoOnlyModelHasOneConnector) {
  transformer_ = SafetensorsWriter();
  TextProjectionConfig config = TinyProjection();
  config.feature_extractor = FeatureExtractorConfig();
  AddRandom(
      ConnectorShapes(config.video_connector, std::string(kConnectors) + "embeddings_connector."),
      &transformer_);
  AddRandom({{"text_embedding_projection.aggregate_embed.weight", {8, 24}}}, &transformer_);
  auto encoder = Load(config);
  ASSERT_TRUE(encoder.ok()) << encoder.status();
  const auto contexts = encoder->Encode("abc");
  ASSERT_TRUE(contexts.ok()) << contexts.status();
  EXPECT_TRUE(contexts->video.defined());
  EXPECT_FALSE(contexts->audio.defined());
}

TEST_F(PromptEncoderTest, RefusesPartsThatDoNotFitTogether) {
  EXPECT_THAT(Load(TinyProjection()).status().message(),
              HasSubstr("text_embedding_projection.video_aggregate_embed.weight"));
  AddRandom(ProjectionShapes(), &tower_);
  TextProjectionConfig config = TinyProjection();
  config.feature_extractor.audio_width = 8;
  absl::Status status = Load(config).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("audio features are 8 wide"));
  options_.limits.max_tokens = 100;
  EXPECT_THAT(Load(TinyProjection()).status().message(), HasSubstr("multiple of 128"));
}

TEST_F(PromptEncoderTest, VocabularyAndTableMustAgree) {
  AddRandom(ProjectionShapes(), &tower_);
  GemmaAssets assets;
  assets.config = TinyGemmaConfig(GemmaFamily::kGemma4);
  assets.config["text_config"]["vocab_size"] = 23;
  assets.tokenizer_json = TinyTokenizerJson();
  assets.tokenizer_config_json = TinyTokenizerConfig();
  const absl::Status status =
      PromptEncoder::Load(device_.get(), assets, TinyProjection(), WeightSet(), options_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("token id 23"));
}

}  // namespace
}  // namespace ltx::text
