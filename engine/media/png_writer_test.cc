#include "engine/media/png_writer.h"

#include <string>
#include <vector>

#include "engine/media/clip_reader.h"
#include "gtest/gtest.h"

namespace ltx::media {
namespace {

TEST(WritePngTest, ComesBackExactly) {
  const int width = 5;
  const int height = 3;
  std::vector<uint8_t> rgb(width * height * 3);
  for (size_t i = 0; i < rgb.size(); ++i) rgb[i] = static_cast<uint8_t>(5 * i);
  const std::string path = ::testing::TempDir() + "/frame.png";
  const auto bytes = WritePng(path, rgb, width, height);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_GT(*bytes, 0);
  const auto clip = ReadClip(path);
  ASSERT_TRUE(clip.ok()) << clip.status();
  EXPECT_EQ(clip->num_frames, 1);
  EXPECT_EQ(clip->frames, rgb);
}

TEST(WritePngTest, RefusesSizesThatDoNotMatch) {
  EXPECT_EQ(WritePng("/tmp/x.png", std::vector<uint8_t>(12), 2, 3).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(WritePng("/tmp/x.png", {}, 0, 0).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace ltx::media
