#include "engine/checkpoint/inspect.h"

#include <string>

#include "engine/checkpoint/test_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

TEST(InspectTest, CountsTensorsOfTheSmallModel) {
  const std::string path = "models/ltx-tiny/vae/ltx-tiny-video-vae-conv-bf16.safetensors";
  const auto summary = InspectCheckpoint(path);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->path, path);
  EXPECT_EQ(summary->file_bytes, 3139658);
  EXPECT_THAT(summary->kinds, ElementsAre(FileKind::kVideoVae));
  EXPECT_EQ(summary->tensors, 44);
  ASSERT_EQ(summary->dtypes.size(), 1);
  const CheckpointSummary::DTypeUse& use = summary->dtypes.at(DType::kBF16);
  EXPECT_EQ(use.tensors, 44);
  EXPECT_EQ(use.elements, summary->parameters);
  EXPECT_EQ(use.bytes, 2 * summary->parameters);
  EXPECT_THAT(summary->metadata, ElementsAre(Pair("model_version", "2.5.1")));
  EXPECT_THAT(summary->config, HasSubstr("\n    \"_class_name\": \"CausalVideoAutoencoder\""));
  // Two convolutions and the blocks on either side, and the statistics.
  ASSERT_EQ(summary->groups.size(), 7);
  EXPECT_EQ(summary->groups.front().name, "decoder.conv_in");
  EXPECT_EQ(summary->groups.front().tensors, 2);
  EXPECT_EQ(summary->groups.back().name, "per_channel_statistics");
  const std::string text = RenderSummary(*summary);
  EXPECT_THAT(text, HasSubstr(path));
  EXPECT_THAT(text, HasSubstr("3139658 bytes (3.14 MB)"));
  EXPECT_THAT(text, HasSubstr("kind        video_vae"));
  EXPECT_THAT(text, HasSubstr("BF16     44 tensors"));
  EXPECT_THAT(text, HasSubstr("metadata    model_version: 2.5.1"));
  EXPECT_THAT(text, HasSubstr("CausalVideoAutoencoder"));
}

TEST(InspectTest, FilesThatNothingElseTakes) {
  const std::string path = MakeTestFolder("inspect") + "/case.safetensors";
  SafetensorsWriter()
      .Raw("a.b.weight", DType::kF8E4M3, {2}, "ab")
      .Floats("a.b.weight_scale", {}, {1.0f})
      .Raw("a.c.weight", DType::kU8, {2}, "ab")
      .Raw("a.d.weight", DType::kU8, {2}, "ab")
      .Raw("a.d.comfy_quant", DType::kU8, {14}, R"({"format":"x"})")
      .Metadata("config", "not json\x1b[31m")
      .Metadata("key\n", std::string(5000, 'x'))
      .WriteTo(path);
  const auto summary = InspectCheckpoint(path);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_TRUE(summary->kinds.empty());
  EXPECT_EQ(summary->parameters, 3);
  EXPECT_THAT(summary->stored_forms,
              ElementsAre(Pair("malformed", 1), Pair("scaled FP8", 1), Pair("unknown marker", 1)));
  const std::string text = RenderSummary(*summary);
  EXPECT_THAT(text, HasSubstr("kind        unknown"));
  EXPECT_THAT(text, HasSubstr("5000 bytes"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_LT(text.size(), 2000);
}

TEST(InspectTest, Errors) {
  EXPECT_EQ(InspectCheckpoint("/nonexistent").status().code(), absl::StatusCode::kNotFound);
  const std::string path = MakeTestFolder("inspect") + "/bad.safetensors";
  WriteTestFile(path, "nonsense");
  EXPECT_EQ(InspectCheckpoint(path).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(InspectTest, FileWithoutConfig) {
  const std::string path = MakeTestFolder("inspect") + "/plain.safetensors";
  SafetensorsWriter().Floats("x", {1}, {1.0f}).WriteTo(path);
  EXPECT_THAT(RenderSummary(*InspectCheckpoint(path)), HasSubstr("config      none"));
}

}  // namespace
}  // namespace ltx::checkpoint
