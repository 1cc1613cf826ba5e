#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "engine/media/audio_reader.h"
#include "engine/media/mp4_writer.h"
#include "engine/media/video_reader.h"
#include "engine/pipeline/error_details.h"

namespace ltx::media {
namespace {

using ::testing::HasSubstr;

absl::Span<const uint8_t> Bytes(const std::string& text) {
  return absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(text.data()), text.size());
}

/// Eight frames that become brighter, 64 x 48, and a third of a second of sound.
const std::string& Clip() {
  static const auto* const clip = [] {
    const std::string path = ::testing::TempDir() + "/clip.mp4";
    Mp4Options options;
    options.width = 64;
    options.height = 48;
    options.audio_sample_rate = 48000;
    auto writer = *Mp4Writer::Create(path, options);
    for (int i = 0; i < 8; ++i) {
      // Grey of a tenth, two tenths ..., in the range of video.
      std::vector<uint8_t> i420(64 * 48 * 3 / 2, 128);
      std::fill_n(i420.begin(), 64 * 48, static_cast<uint8_t>(16 + 21.9 * (i + 1)));
      EXPECT_TRUE(writer->AddFrames(i420).ok());
    }
    EXPECT_TRUE(writer->Finish(std::vector<float>(2 * 16000, 0.25f)).ok());
    std::ifstream file(path, std::ios::binary);
    return new std::string((std::istreambuf_iterator<char>(file)), {});
  }();
  return *clip;
}

std::string Little(uint32_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i);
  return text;
}

/// 16-bit PCM.
std::string Wav(int channels, int rate, const std::vector<int16_t>& samples) {
  std::string data;
  for (const int16_t sample : samples) data += Little(static_cast<uint16_t>(sample), 2);
  const std::string format = Little(1, 2) + Little(channels, 2) + Little(rate, 4) +
                             Little(rate * channels * 2, 4) + Little(channels * 2, 2) +
                             Little(16, 2);
  const std::string body = "WAVEfmt " + Little(16, 4) + format + "data" +
                           Little(static_cast<uint32_t>(data.size()), 4) + data;
  return "RIFF" + Little(static_cast<uint32_t>(body.size()), 4) + body;
}

std::string Reason(const absl::Status& status) {
  const auto detail = pipeline::GetErrorDetail(status);
  return detail.has_value() ? detail->reason : "";
}

TEST(ReadVideoTest, FactsAndFrames) {
  std::vector<int> brightness;
  const auto facts = ReadVideo(Bytes(Clip()), "clip", {}, {}, [&](absl::Span<const uint8_t> rgb) {
    EXPECT_EQ(rgb.size(), 64u * 48 * 3);
    brightness.push_back(rgb[0]);
    return absl::OkStatus();
  });
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->width, 64);
  EXPECT_EQ(facts->height, 48);
  EXPECT_EQ(facts->frames, 8);
  EXPECT_EQ(facts->frame_rate_numerator, 24);
  EXPECT_NEAR(facts->seconds, 8 / 24.0, 1e-9);
  EXPECT_EQ(facts->codec, "h264");
  EXPECT_TRUE(facts->has_audio);
  for (int i = 0; i < 8; ++i) EXPECT_NEAR(brightness[i], 25.5 * (i + 1), 4) << i;
}

TEST(ReadVideoTest, WindowsByFrameAndByTime) {
  const auto first = [](const VideoWindow& window) {
    std::vector<int> brightness;
    const auto facts =
        ReadVideo(Bytes(Clip()), "clip", {}, window, [&](absl::Span<const uint8_t> rgb) {
          brightness.push_back(rgb[0]);
          return absl::OkStatus();
        });
    EXPECT_TRUE(facts.ok()) << facts.status();
    EXPECT_EQ(facts->frames, static_cast<int64_t>(brightness.size()));
    return std::pair<int, int>(brightness.front(), static_cast<int>(brightness.size()));
  };
  VideoWindow frames;
  frames.first_frame = 2;
  frames.max_frames = 3;
  EXPECT_NEAR(first(frames).first, 76, 4);
  EXPECT_EQ(first(frames).second, 3);
  VideoWindow time;
  time.start_seconds = 4 / 24.0 - 0.001;
  time.duration_seconds = 2 / 24.0;
  EXPECT_NEAR(first(time).first, 127, 4);
  EXPECT_EQ(first(time).second, 2);
}

TEST(ReadVideoTest, LimitsAreNamed) {
  const auto refusal = [](const MediaLimits& limits) {
    const absl::Status status = ReadVideo(Bytes(Clip()), "clip", limits, {}, nullptr).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(Reason(status), "MEDIA_LIMIT");
    return std::string(status.message());
  };
  MediaLimits limits;
  limits.max_pixels = 64 * 48 - 1;
  EXPECT_THAT(refusal(limits), HasSubstr("3072 pixels in a frame; legal are at most 3071"));
  limits = MediaLimits();
  limits.max_frames = 7;
  EXPECT_THAT(refusal(limits), HasSubstr("8 frames; legal are at most 7 frames"));
  limits = MediaLimits();
  limits.max_decoded_bytes = 64 * 48 * 3 * 8 - 1;
  EXPECT_THAT(refusal(limits), HasSubstr("73728 decoded bytes"));
}

TEST(ReadVideoTest, ASinkMayEndTheReading) {
  const auto facts = ReadVideo(Bytes(Clip()), "clip", {}, {}, [](absl::Span<const uint8_t>) {
    return absl::CancelledError("enough");
  });
  EXPECT_EQ(facts.status().code(), absl::StatusCode::kCancelled);
}

TEST(ReadVideoTest, StopsWhenToldTo) {
  MediaLimits limits;
  int frames = 0;
  limits.keep_going = [&frames] {
    return ++frames < 4 ? absl::OkStatus() : absl::DeadlineExceededError("too slow");
  };
  EXPECT_EQ(ReadVideo(Bytes(Clip()), "clip", limits, {}, nullptr).status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

TEST(ReadVideoTest, RefusesWhatIsNoClip) {
  for (const std::string& file :
       {std::string(), std::string("x"), std::string(4096, '\xAA'),
        std::string("\0\0\0\x18"
                    "ftypisom\0\0\0\0isommp41",
                    24),
        std::string("\x1A\x45\xDF\xA3\x01\x02"), std::string("OggS"), Wav(1, 8000, {1, 2, 3})}) {
    const absl::Status status = ReadVideo(Bytes(file), "upload", {}, {}, nullptr).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << file;
    EXPECT_EQ(Reason(status), "MEDIA_FORMAT") << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("upload"));
  }
}

TEST(ReadVideoTest, CutsAreRefused) {
  // What is behind the last picture belongs to the sound, and a cut between two packets of it takes
  // nothing from the pictures.
  for (size_t size = 1; size < Clip().size() * 9 / 10; size += 97) {
    EXPECT_EQ(Reason(ReadVideo(Bytes(Clip().substr(0, size)), "cut", {}, {}, nullptr).status()),
              "MEDIA_FORMAT")
        << size << " of " << Clip().size();
  }
}

TEST(ReadVideoTest, NoChangedByteCrashes) {
  for (size_t at = 0; at < Clip().size(); at += 13) {
    std::string changed = Clip();
    changed[at] = static_cast<char>(changed[at] ^ 0xFF);
    ReadVideo(Bytes(changed), "changed", {}, {}, nullptr).IgnoreError();
    InspectAudio(Bytes(changed), "changed").IgnoreError();
  }
}

TEST(ReadVideoTest, AnIndexOfBillionsIsRefusedBeforeItIsMade) {
  // The sample table of the picture: version, one size for all, count.
  std::string clip = Clip();
  const size_t at = clip.find("stsz");
  ASSERT_NE(at, std::string::npos);
  clip.replace(at + 8, 8, std::string("\0\0\0\x01\x7F\xFF\xFF\xFF", 8));
  const absl::Status status = ReadVideo(Bytes(clip), "bomb.mp4", {}, {}, nullptr).status();
  EXPECT_EQ(Reason(status), "MEDIA_LIMIT") << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("samples in its index"));
}

TEST(AudioReaderTest, SamplesAndWindow) {
  std::vector<int16_t> samples;
  for (int i = 0; i < 800; ++i) {
    samples.push_back(static_cast<int16_t>(i));
    samples.push_back(static_cast<int16_t>(-i));
  }
  const std::string wav = Wav(2, 8000, samples);
  const auto whole = DecodeAudio(Bytes(wav), "wav");
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(whole->facts.channels, 2);
  EXPECT_EQ(whole->facts.sample_rate, 8000);
  EXPECT_EQ(whole->facts.samples, 800);
  EXPECT_NEAR(whole->facts.seconds, 0.1, 1e-12);
  EXPECT_EQ(whole->samples[799], 799 / 32768.0f);
  EXPECT_EQ(whole->samples[800 + 799], -799 / 32768.0f);
  const auto part = DecodeAudio(Bytes(wav), "wav", {}, {0.05, 0.025});
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_EQ(part->facts.samples, 200);
  EXPECT_EQ(part->samples[0], 400 / 32768.0f);
  EXPECT_EQ(DecodeAudio(Bytes(wav), "wav", {}, {5.0, 1.0}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(AudioReaderTest, TheSoundOfAClip) {
  const auto facts = InspectAudio(Bytes(Clip()), "clip");
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->codec, "aac");
  EXPECT_EQ(facts->channels, 2);
  EXPECT_EQ(facts->sample_rate, 48000);
}

TEST(AudioReaderTest, LengthIsLimited) {
  MediaLimits limits;
  limits.max_seconds = 0.05;
  const absl::Status status =
      InspectAudio(Bytes(Wav(1, 8000, std::vector<int16_t>(801))), "long", limits).status();
  EXPECT_EQ(Reason(status), "MEDIA_LIMIT");
  EXPECT_THAT(std::string(status.message()), HasSubstr("at most 0.05 seconds of sound"));
  EXPECT_EQ(Reason(InspectAudio(Bytes(Wav(9, 8000, std::vector<int16_t>(90))), "wide").status()),
            "MEDIA_LIMIT");
}

TEST(AudioReaderTest, AClipWithoutSoundHasNone) {
  EXPECT_EQ(Reason(InspectAudio(Bytes(Wav(1, 8000, {})), "empty").status()), "MEDIA_FORMAT");
}

}  // namespace
}  // namespace ltx::media
