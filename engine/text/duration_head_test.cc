#include "engine/text/duration_head.h"

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

using checkpoint::DurationHeadConfig;
using checkpoint::SafetensorsWriter;
using checkpoint::WeightLoader;
using checkpoint::WeightSet;
using ::testing::HasSubstr;

DurationHeadConfig TinyHead() {
  DurationHeadConfig config;
  config.pooler_hidden_dim = 4;
  config.num_queries = 2;
  config.num_pooler_heads = 2;
  config.mlp_hidden = 3;
  config.cross_attention_dim = 6;
  config.audio_cross_attention_dim = 5;
  return config;
}

SafetensorsWriter Writer() {
  const TensorShapes shapes = {{"video_input_proj.weight", {4, 6}},
                               {"video_input_proj.bias", {4}},
                               {"video_modality_emb", {4}},
                               {"audio_input_proj.weight", {4, 5}},
                               {"audio_input_proj.bias", {4}},
                               {"audio_modality_emb", {4}},
                               {"attention_pooler.query_tokens", {2, 4}},
                               {"attention_pooler.cross_attn.in_proj_weight", {12, 4}},
                               {"attention_pooler.cross_attn.in_proj_bias", {12}},
                               {"attention_pooler.cross_attn.out_proj.weight", {4, 4}},
                               {"attention_pooler.cross_attn.out_proj.bias", {4}},
                               {"mlp_hidden.weight", {3, 8}},
                               {"mlp_hidden.bias", {3}},
                               {"mlp_out.weight", {1, 3}},
                               {"mlp_out.bias", {1}}};
  SafetensorsWriter writer;
  AddRandom(shapes, &writer);
  return writer;
}

class DurationHeadTest : public ::testing::Test {
 protected:
  absl::StatusOr<DurationHead> Load(const SafetensorsWriter& writer) {
    weights_ = OpenWeights(writer, "head");
    return DurationHead::Load(
        TinyHead(), WeightLoader(device_.get(), &weights_, DType::kF32, MemoryOwner::kWeightsText));
  }
  Tensor Context(int64_t tokens, int64_t width, float value) {
    const auto tensor =
        TensorFromFloats(*device_, std::vector<float>(static_cast<size_t>(tokens * width), value),
                         {1, tokens, width});
    EXPECT_TRUE(tensor.ok());
    return *tensor;
  }

  std::unique_ptr<Device> device_ = MakeDevice();
  WeightSet weights_;
};

TEST_F(DurationHeadTest, GivesTheExponentialOfItsLastLayer) {
  const auto head = Load(Writer()
                             .Floats("mlp_out.weight", {1, 3}, {0, 0, 0})
                             .Floats("mlp_out.bias", {1}, {std::log(7.0f)}));
  ASSERT_TRUE(head.ok()) << head.status();
  const auto seconds = head->PredictSeconds(Context(3, 6, 0.5f), Context(2, 5, 0.5f));
  ASSERT_TRUE(seconds.ok()) << seconds.status();
  EXPECT_NEAR(*seconds, 7.0f, 1e-5f);
}

TEST_F(DurationHeadTest, BothStreamsCount) {
  const auto head = Load(Writer());
  ASSERT_TRUE(head.ok());
  const Tensor video = Context(3, 6, 0.5f), audio = Context(2, 5, -0.5f);
  const auto both = head->PredictSeconds(video, audio);
  const auto video_only = head->PredictSeconds(video, Tensor());
  const auto audio_only = head->PredictSeconds(Tensor(), audio);
  ASSERT_TRUE(both.ok() && video_only.ok() && audio_only.ok());
  EXPECT_NE(*both, *video_only);
  EXPECT_NE(*both, *audio_only);
}

TEST_F(DurationHeadTest, RefusesWhatItCannotRead) {
  const auto head = Load(Writer());
  ASSERT_TRUE(head.ok());
  EXPECT_EQ(head->PredictSeconds(Tensor(), Tensor()).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(head->PredictSeconds(Context(3, 5, 0), Tensor()).status().message(),
              HasSubstr("[1, 3, 5]"));
  EXPECT_EQ(Load(Writer().Remove("mlp_out.bias")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Load(Writer().Floats("extra", {1}, {0})).status().message(), HasSubstr("extra"));
}

}  // namespace
}  // namespace ltx::text
