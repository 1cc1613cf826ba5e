#include "engine/media/wav_writer.h"

#include <filesystem>
#include <string>
#include <vector>

#include "engine/media/clip_reader.h"
#include "gtest/gtest.h"

namespace ltx::media {
namespace {

TEST(WriteWavTest, ComesBackExactly) {
  // Two planes of 300 samples; the file holds 310: the end is silence.
  std::vector<float> waveform(600);
  for (size_t i = 0; i < waveform.size(); ++i) {
    waveform[i] = static_cast<float>(i) / 300.0f - 1.0f;
  }
  waveform[7] = 3.0f;
  const std::string path = ::testing::TempDir() + "/sound.wav";
  const auto bytes = WriteWav(path, waveform, 310, 48000);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, 44 + 310 * 4);
  EXPECT_EQ(*bytes, static_cast<int64_t>(std::filesystem::file_size(path)));
  const auto clip = ReadClip(path);
  ASSERT_TRUE(clip.ok()) << clip.status();
  EXPECT_EQ(clip->num_frames, 0);
  EXPECT_EQ(clip->audio_channels, 2);
  EXPECT_EQ(clip->audio_sample_rate, 48000);
  ASSERT_EQ(clip->waveform.size(), 620u);
  for (int channel = 0; channel < 2; ++channel) {
    for (int i = 0; i < 310; ++i) {
      const float given = i < 300 ? waveform[channel * 300 + i] : 0.0f;
      const float kept = given > 1.0f ? 1.0f : given;
      EXPECT_EQ(clip->waveform[channel * 310 + i], static_cast<int>(kept * 32767.0f) / 32768.0f)
          << channel << " " << i;
    }
  }
  // A shorter file cuts.
  ASSERT_TRUE(WriteWav(path, waveform, 20, 48000).ok());
  EXPECT_EQ(ReadClip(path)->waveform.size(), 40u);
}

TEST(WriteWavTest, RefusesWhatIsNoSound) {
  const std::vector<float> waveform(8);
  const std::string path = ::testing::TempDir() + "/none.wav";
  EXPECT_EQ(WriteWav(path, {}, 4, 48000).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(WriteWav(path, std::vector<float>(3), 4, 48000).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(WriteWav(path, waveform, int64_t{1} << 31, 48000).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(WriteWav("/nonexistent/folder/x.wav", waveform, 4, 48000).status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace ltx::media
