#include "engine/media/clip_reader.h"

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "engine/media/mp4_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::media {
namespace {

using ::testing::HasSubstr;

std::string WriteClip(const std::string& name, int frames, int width = 64, int height = 48) {
  const std::string path = ::testing::TempDir() + "/" + name;
  Mp4Options options;
  options.width = width;
  options.height = height;
  options.audio_sample_rate = 48000;
  auto writer = Mp4Writer::Create(path, options);
  const std::vector<uint8_t> picture(width * height * 3 / 2, 126);
  for (int i = 0; i < frames; ++i) EXPECT_TRUE((*writer)->AddFrames(picture).ok());
  EXPECT_TRUE((*writer)->Finish(std::vector<float>(2 * 2000 * frames)).ok());
  return path;
}

std::string WriteBytes(const std::string& name, const std::string& content) {
  const std::string path = ::testing::TempDir() + "/" + name;
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

std::string ReadBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

TEST(ReadClipTest, RefusesWhatIsNoClip) {
  EXPECT_EQ(ReadClip("/no/such/file.mp4").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadClip(WriteBytes("empty.mp4", "")).status().code(),
            absl::StatusCode::kInvalidArgument);
  const auto garbage = ReadClip(WriteBytes("garbage.mp4", std::string(4096, 'x'))).status();
  EXPECT_EQ(garbage.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(garbage.message()), HasSubstr("garbage.mp4"));
}

TEST(ReadClipTest, ReadsEveryPixelOfNarrowAndOddlyWidePictures) {
  for (const auto& [width, height] : std::vector<std::pair<int, int>>{{2, 2}, {50, 34}, {66, 2}}) {
    const auto clip = ReadClip(WriteClip("narrow.mp4", 3, width, height));
    ASSERT_TRUE(clip.ok()) << clip.status();
    EXPECT_EQ(clip->width, width);
    ASSERT_EQ(clip->frames.size(), static_cast<size_t>(3 * width * height * 3));
    // A grey of a half, give or take what the codec loses.
    EXPECT_THAT(clip->frames,
                ::testing::Each(::testing::AllOf(::testing::Ge(120), ::testing::Le(135))))
        << width << " x " << height;
  }
}

TEST(ReadClipTest, DoesNotFollowPlaylists) {
  const std::string clip = WriteClip("target.mp4", 2);
  const std::string list = WriteBytes("list.mp4", "ffconcat version 1.0\nfile '" + clip + "'\n");
  EXPECT_EQ(ReadClip(list).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ReadClipTest, KeepsItsLimits) {
  const std::string path = WriteClip("limits.mp4", 5);
  ClipLimits limits;
  limits.max_frames = 4;
  EXPECT_EQ(ReadClip(path, limits).status().code(), absl::StatusCode::kResourceExhausted);
  limits = {};
  limits.max_frame_bytes = 64 * 48 * 3 * 4;
  EXPECT_EQ(ReadClip(path, limits).status().code(), absl::StatusCode::kResourceExhausted);
  limits = {};
  limits.max_audio_seconds = 0.01;
  EXPECT_EQ(ReadClip(path, limits).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(ReadClipTest, DamagedFilesNeverCrash) {
  const std::string whole = ReadBytes(WriteClip("whole.mp4", 9));
  for (size_t cut = 0; cut < whole.size(); cut += 97) {
    (void)ReadClip(WriteBytes("cut.mp4", whole.substr(0, cut)));
  }
  uint32_t state = 1;
  for (int round = 0; round < 200; ++round) {
    std::string damaged = whole;
    for (int i = 0; i < 8; ++i) {
      state = state * 1664525u + 1013904223u;
      damaged[state % damaged.size()] = static_cast<char>(state >> 24);
    }
    (void)ReadClip(WriteBytes("damaged.mp4", damaged));
  }
}

}  // namespace
}  // namespace ltx::media
