#include "engine/text/feature_extractor.h"

#include <cmath>
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
using checkpoint::SafetensorsWriter;
using checkpoint::WeightLoader;
using checkpoint::WeightSet;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

class FeatureExtractorTest : public ::testing::Test {
 protected:
  absl::StatusOr<FeatureExtractor> Load(const SafetensorsWriter& writer,
                                        const FeatureExtractorConfig& config) {
    weights_ = OpenWeights(writer, "extractor");
    return FeatureExtractor::Load(
        config, 2, 2,
        WeightLoader(device_.get(), &weights_, DType::kF32, MemoryOwner::kWeightsText));
  }
  Tensor State(const std::vector<float>& values) {
    const auto tensor =
        TensorFromFloats(*device_, values, {1, static_cast<int64_t>(values.size()) / 2, 2});
    EXPECT_TRUE(tensor.ok());
    return *tensor;
  }
  static absl::StatusOr<FeatureExtractor::Features> Project(const FeatureExtractor& extractor,
                                                            const std::vector<Tensor>& states) {
    FeatureRows rows = extractor.StartRows();
    for (const Tensor& state : states) EXPECT_TRUE(rows.Add(state).ok());
    const auto taken = rows.Take();
    EXPECT_TRUE(taken.ok()) << taken.status();
    return extractor.Project(*taken);
  }
  std::vector<float> Values(const Tensor& tensor) {
    const auto values = ToFloats(*device_, tensor);
    EXPECT_TRUE(values.ok());
    return *values;
  }

  std::unique_ptr<Device> device_ = MakeDevice();
  WeightSet weights_;
};

FeatureExtractorConfig FormV2() {
  FeatureExtractorConfig config;
  config.form = FeatureExtractorConfig::Form::kV2;
  config.video_width = 4;
  config.audio_width = 1;
  return config;
}

SafetensorsWriter WeightsV2() {
  SafetensorsWriter writer;
  const std::string prefix = "text_embedding_projection.";
  // The video map passes the normalised states through, the audio map adds them up.
  writer.Floats(prefix + "video_aggregate_embed.weight", {4, 4},
                {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1});
  writer.Floats(prefix + "video_aggregate_embed.bias", {4}, {0, 0, 0, 10});
  writer.Floats(prefix + "audio_aggregate_embed.weight", {1, 4}, {1, 1, 1, 1});
  writer.Floats(prefix + "audio_aggregate_embed.bias", {1}, {-1});
  return writer;
}

TEST_F(FeatureExtractorTest, WeightsHaveTheStateIndexLast) {
  const auto extractor = Load(WeightsV2(), FormV2());
  ASSERT_TRUE(extractor.ok()) << extractor.status();
  // Root mean squares: 5 / sqrt(2) and 1.
  const auto features = Project(*extractor, {State({3, 4}), State({1, -1})});
  ASSERT_TRUE(features.ok()) << features.status();
  const float a = 3.0f / 5.0f * std::sqrt(2.0f), b = 4.0f / 5.0f * std::sqrt(2.0f);
  // sqrt(width / hidden size): sqrt(2) for video, sqrt(1 / 2) for audio.
  const float up = std::sqrt(2.0f), down = std::sqrt(0.5f);
  EXPECT_THAT(Values(features->video),
              Pointwise(FloatNear(1e-5f), std::vector<float>{a * up, up, b * up, 10 - up}));
  EXPECT_THAT(Values(features->audio),
              Pointwise(FloatNear(1e-5f), std::vector<float>{(a + b) * down - 1}));
}

TEST_F(FeatureExtractorTest, FirstFormHasOneMapForBothStreams) {
  SafetensorsWriter writer;
  writer.Floats("text_embedding_projection.aggregate_embed.weight", {2, 4},
                {1, 0, 0, 0, 0, 1, 0, 0});
  const auto extractor = Load(writer, FeatureExtractorConfig());
  ASSERT_TRUE(extractor.ok()) << extractor.status();
  // Means 2 and 0, ranges 4 and 8; the first two columns are those of channel 0 in both states.
  const auto features = Project(*extractor, {State({0, 1, 3, 4}), State({-4, 4, 2, -2})});
  ASSERT_TRUE(features.ok()) << features.status();
  const std::vector<float> expected = {8.0f * -2 / 4, 8.0f * -4 / 8, 8.0f * 1 / 4, 8.0f * 2 / 8};
  EXPECT_THAT(Values(features->video), Pointwise(FloatNear(1e-4f), expected));
  EXPECT_THAT(Values(features->audio), Pointwise(FloatNear(1e-4f), expected));
}

TEST_F(FeatureExtractorTest, HoldsItsWeightsOnly) {
  const auto extractor = Load(WeightsV2(), FormV2());
  ASSERT_TRUE(extractor.ok()) << extractor.status();
  const MemoryLedger::Snapshot loaded = device_->ledger().Read();
  EXPECT_EQ(loaded.by_owner[static_cast<int>(MemoryOwner::kWeightsText)].live_bytes,
            loaded.total.live_bytes);
}

TEST_F(FeatureExtractorTest, NamesWhatDoesNotFit) {
  absl::Status status =
      Load(WeightsV2().Remove("text_embedding_projection.audio_aggregate_embed.bias"), FormV2())
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("audio_aggregate_embed.bias"));
  // Weights of form v2 under a config of form v1.
  status = Load(WeightsV2(), FeatureExtractorConfig()).status();
  EXPECT_THAT(status.message(), HasSubstr("aggregate_embed.weight"));
  const auto extractor = Load(WeightsV2(), FormV2());
  ASSERT_TRUE(extractor.ok());
  EXPECT_EQ(extractor->Project(State({1, 2})).status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace ltx::text
