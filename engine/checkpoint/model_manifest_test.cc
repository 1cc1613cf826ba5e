#include "engine/checkpoint/model_manifest.h"

#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::checkpoint {
namespace {

using ::testing::HasSubstr;

TEST(ModelManifestTest, ReadsAllKeys) {
  const auto manifest = ParseModelManifest(
      R"({"name":"m","kind":"dev",
          "defaults":{"width":256,"height":192,"num_frames":25,"frame_rate":24.5},
          "limits":{"min_frames":17,"max_frames":49,"min_size":96,"max_size":256},
          "files":{"transformer":"a/b.safetensors","text_encoder":"gemma"}})",
      "model.json");
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->name, "m");
  EXPECT_EQ(manifest->kind, ModelKind::kDev);
  EXPECT_EQ(manifest->width, 256);
  EXPECT_EQ(manifest->height, 192);
  EXPECT_EQ(manifest->num_frames, 25);
  EXPECT_EQ(manifest->frame_rate, 24.5);
  EXPECT_EQ(manifest->min_frames, 17);
  EXPECT_EQ(manifest->max_frames, 49);
  EXPECT_EQ(manifest->min_size, 96);
  EXPECT_EQ(manifest->max_size, 256);
  EXPECT_EQ(manifest->files.at(FileKind::kTransformer), "a/b.safetensors");
  EXPECT_EQ(manifest->files.at(FileKind::kTextEncoder), "gemma");
}

TEST(ModelManifestTest, EverythingIsOptional) {
  const auto manifest = ParseModelManifest("{}", "model.json");
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_FALSE(manifest->kind.has_value());
  EXPECT_FALSE(manifest->width.has_value());
}

TEST(ModelManifestTest, RefusesWithKeyAndLegalValues) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "not JSON"},
      {"[]", "object"},
      {R"({"nam":"x"})", "nam"},
      {R"({"name":""})", "name"},
      {R"({"name":3})", "name"},
      {R"({"kind":"turbo"})", "\"distilled\", \"dev\""},
      {R"({"defaults":{"heigth":64}})", "heigth"},
      {R"({"defaults":{"width":250}})", "multiple of 32"},
      {R"({"defaults":{"width":-32}})", "width"},
      {R"({"defaults":{"width":1000000}})", "width"},
      {R"({"defaults":{"num_frames":24}})", "multiple of 8"},
      {R"({"defaults":{"frame_rate":0}})", "frame_rate"},
      {R"({"defaults":{"frame_rate":"24"}})", "frame_rate"},
      {R"({"defaults":[]})", "defaults"},
      {R"({"limits":{"min_frames":50,"max_frames":49}})", "max_frames"},
      {R"({"limits":{"max_size":128},"defaults":{"width":256}})", "width"},
      {R"({"limits":{"min_frames":33},"defaults":{"num_frames":25}})", "num_frames"},
      {R"({"limits":{"max":1}})", "max"},
      {R"({"files":{"vae":"x"}})", "vae"},
      {R"({"files":{"video_vae":"../x"}})", "below the model folder"},
      {R"({"files":{"video_vae":"/x"}})", "below the model folder"},
      {R"({"files":{"video_vae":""}})", "below the model folder"},
      {R"({"files":{"video_vae":1}})", "video_vae"},
  };
  for (const auto& [text, names] : cases) {
    const auto manifest = ParseModelManifest(text, "some/model.json");
    EXPECT_EQ(manifest.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(manifest.status().message()), HasSubstr(names)) << text;
    EXPECT_THAT(std::string(manifest.status().message()), HasSubstr("some/model.json"));
  }
}

}  // namespace
}  // namespace ltx::checkpoint
