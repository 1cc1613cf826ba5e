#include "engine/media/mp4_writer.h"

#include <dirent.h>

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/media/clip_reader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::media {
namespace {

using ::testing::HasSubstr;

/// One frame, I420: a ramp in each plane, brighter from frame to frame.
std::vector<uint8_t> Picture(int width, int height, int frame) {
  std::vector<uint8_t> i420;
  for (int plane = 0; plane < 3; ++plane) {
    const int rows = plane == 0 ? height : height / 2;
    const int columns = plane == 0 ? width : width / 2;
    for (int y = 0; y < rows; ++y) {
      for (int x = 0; x < columns; ++x) {
        i420.push_back(static_cast<uint8_t>(plane == 0   ? 16 + 2 * x + 5 * frame
                                            : plane == 1 ? 64 + 3 * y
                                                         : 192 - 3 * x));
      }
    }
  }
  return i420;
}

std::vector<float> Tone(int64_t samples, int rate) {
  std::vector<float> waveform(2 * samples);
  for (int64_t i = 0; i < samples; ++i) {
    waveform[i] = 0.5f * std::sin(2 * M_PI * 440 * i / rate);
    waveform[samples + i] = 0.25f * std::sin(2 * M_PI * 880 * i / rate);
  }
  return waveform;
}

int FilesIn(const std::string& folder) {
  DIR* dir = opendir(folder.c_str());
  int count = 0;
  while (const dirent* entry = readdir(dir)) count += entry->d_name[0] != '.';
  closedir(dir);
  return count;
}

std::string FreshFolder(const std::string& name) {
  const std::string folder = ::testing::TempDir() + "/" + name;
  EXPECT_EQ(std::system(("rm -rf " + folder + " && mkdir -p " + folder).c_str()), 0);
  return folder;
}

TEST(AudioSamplesForFramesTest, RoundsToTheNearestSample) {
  const auto rate = [](int64_t n, int64_t d) { return *pipeline::FrameRate::FromRational(n, d); };
  EXPECT_EQ(AudioSamplesForFrames(25, rate(24, 1), 48000), 50000);
  EXPECT_EQ(AudioSamplesForFrames(17, rate(24, 1), 48000), 34000);
  EXPECT_EQ(AudioSamplesForFrames(121, rate(24000, 1001), 48000), 242242);
  EXPECT_EQ(AudioSamplesForFrames(1, rate(7, 1), 24000), 3429);
  EXPECT_EQ(AudioSamplesForFrames(0, rate(24, 1), 48000), 0);
}

struct ClipCase {
  int frames;
  int64_t numerator, denominator;
  int64_t given_samples;
};

class Mp4WriterClipTest : public ::testing::TestWithParam<ClipCase> {};

TEST_P(Mp4WriterClipTest, CountsAreExactAfterDemux) {
  const ClipCase& param = GetParam();
  const std::string path = FreshFolder("counts") + "/clip.mp4";
  Mp4Options options;
  options.width = 64;
  options.height = 48;
  options.frame_rate = *pipeline::FrameRate::FromRational(param.numerator, param.denominator);
  options.audio_sample_rate = 48000;
  auto writer = Mp4Writer::Create(path, options);
  ASSERT_TRUE(writer.ok()) << writer.status();
  for (int i = 0; i < param.frames; ++i) ASSERT_TRUE((*writer)->AddFrames(Picture(64, 48, i)).ok());
  const auto bytes = (*writer)->Finish(Tone(param.given_samples, 48000));
  ASSERT_TRUE(bytes.ok()) << bytes.status();

  const auto clip = ReadClip(path);
  ASSERT_TRUE(clip.ok()) << clip.status();
  EXPECT_EQ(clip->num_frames, param.frames);
  EXPECT_EQ(clip->frame_rate_numerator * param.denominator,
            clip->frame_rate_denominator * param.numerator);
  EXPECT_EQ(static_cast<int64_t>(clip->waveform.size()) / 2,
            AudioSamplesForFrames(param.frames, options.frame_rate, 48000));
  EXPECT_EQ(clip->video_codec, "h264");
  EXPECT_EQ(clip->audio_codec, "aac");
  EXPECT_EQ(clip->pixel_format, "yuv420p");
  EXPECT_EQ(clip->color_space, "bt709");
  EXPECT_EQ(clip->color_range, "tv");
  EXPECT_EQ(clip->audio_channels, 2);
}

std::string CaseName(const ::testing::TestParamInfo<ClipCase>& info) {
  return absl::StrCat(info.param.frames, "At", info.param.numerator, "Over",
                      info.param.denominator);
}

INSTANTIATE_TEST_SUITE_P(Clips, Mp4WriterClipTest,
                         ::testing::Values(ClipCase{25, 24, 1, 48480}, ClipCase{17, 24, 1, 40000},
                                           ClipCase{9, 24000, 1001, 17000},
                                           ClipCase{2, 50, 1, 1919}, ClipCase{33, 30, 1, 0},
                                           ClipCase{1, 25, 1, 100}),
                         CaseName);

TEST(Mp4WriterTest, MoovStandsInFront) {
  const std::string path = FreshFolder("faststart") + "/clip.mp4";
  Mp4Options options;
  options.width = 32;
  options.height = 32;
  auto writer = Mp4Writer::Create(path, options);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->AddFrames(Picture(32, 32, 0)).ok());
  ASSERT_TRUE((*writer)->Finish({}).ok());
  std::ifstream file(path, std::ios::binary);
  const std::string content((std::istreambuf_iterator<char>(file)), {});
  EXPECT_LT(content.find("moov"), content.find("mdat"));
}

TEST(Mp4WriterTest, AnAbandonedClipLeavesNoFile) {
  const std::string folder = FreshFolder("abandoned");
  {
    Mp4Options options;
    options.width = 32;
    options.height = 32;
    auto writer = Mp4Writer::Create(folder + "/clip.mp4", options);
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->AddFrames(Picture(32, 32, 0)).ok());
    EXPECT_EQ(FilesIn(folder), 1);
  }
  EXPECT_EQ(FilesIn(folder), 0);
}

TEST(Mp4WriterTest, RefusesByName) {
  Mp4Options options;
  options.width = 33;
  options.height = 32;
  EXPECT_THAT(Mp4Writer::Create("/tmp/x.mp4", options).status().message(), HasSubstr("33 x 32"));
  options.width = 32;
  const auto missing = Mp4Writer::Create("/no/such/folder/x.mp4", options);
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(missing.status().message(), HasSubstr("/no/such/folder/x.mp4"));
}

TEST(Mp4WriterTest, TheSameInputGivesTheSameBytes) {
  const std::string folder = FreshFolder("twice");
  std::string contents[2];
  for (int run = 0; run < 2; ++run) {
    Mp4Options options;
    options.width = 64;
    options.height = 48;
    options.audio_sample_rate = 48000;
    const std::string path = folder + "/" + std::to_string(run) + ".mp4";
    auto writer = Mp4Writer::Create(path, options);
    for (int i = 0; i < 9; ++i) ASSERT_TRUE((*writer)->AddFrames(Picture(64, 48, i)).ok());
    ASSERT_TRUE((*writer)->Finish(Tone(18000, 48000)).ok());
    std::ifstream file(path, std::ios::binary);
    contents[run].assign((std::istreambuf_iterator<char>(file)), {});
  }
  EXPECT_TRUE(contents[0] == contents[1]);
}

}  // namespace
}  // namespace ltx::media
