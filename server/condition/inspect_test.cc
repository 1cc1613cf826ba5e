#include "server/condition/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "engine/media/mp4_writer.h"
#include "engine/media/png_writer.h"
#include "engine/media/sha256.h"
#include "engine/pipeline/error_details.h"

namespace ltx::server {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

std::string Png() {
  const std::string path = ::testing::TempDir() + "/p.png";
  EXPECT_TRUE(media::WritePng(path, std::vector<uint8_t>(4 * 2 * 3, 127), 4, 2).ok());
  return ReadFile(path);
}

std::string Mp4(int audio_rate) {
  const std::string path = ::testing::TempDir() + "/c.mp4";
  media::Mp4Options options;
  options.width = 32;
  options.height = 32;
  options.audio_sample_rate = audio_rate;
  auto writer = *media::Mp4Writer::Create(path, options);
  EXPECT_TRUE(writer->AddFrames(std::vector<uint8_t>(6 * 32 * 32 * 3 / 2, 126)).ok());
  EXPECT_TRUE(writer->Finish(std::vector<float>(audio_rate > 0 ? 2 * 12000 : 0, 0.1f)).ok());
  return ReadFile(path);
}

absl::StatusOr<v1::ConditionResponse> Inspect(const std::string& content,
                                              const v1::ConditionHeader& header = {},
                                              const media::MediaLimits& limits = {}) {
  InspectOptions options;
  options.limits = limits;
  options.check_prompt = [](absl::string_view text) {
    return text.size() < 20 ? absl::OkStatus() : absl::InvalidArgumentError("prompt too long");
  };
  return InspectContent(
      absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(content.data()), content.size()), header,
      options);
}

v1::ConditionHeader Header(v1::ConditionKind kind) {
  v1::ConditionHeader header;
  header.set_kind(kind);
  header.set_name("it");
  return header;
}

std::string Field(const absl::Status& status) {
  const auto detail = pipeline::GetErrorDetail(status);
  return detail.has_value() ? detail->field : "";
}

TEST(InspectContentTest, TheContentTellsTheKind) {
  const auto image = Inspect(Png());
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_EQ(image->kind(), v1::CONDITION_KIND_IMAGE);
  EXPECT_EQ(image->format(), "png");
  EXPECT_EQ(image->width(), 4);
  EXPECT_EQ(image->height(), 2);
  EXPECT_EQ(image->bytes(), Png().size());
  EXPECT_THAT(image->handle(), StartsWith("image:"));
  EXPECT_EQ(image->handle().size(), 6 + 64);
  EXPECT_EQ(image->handle(), Inspect(Png())->handle());

  const auto video = Inspect(Mp4(48000));
  ASSERT_TRUE(video.ok()) << video.status();
  EXPECT_EQ(video->kind(), v1::CONDITION_KIND_VIDEO);
  EXPECT_EQ(video->num_frames(), 6);
  EXPECT_EQ(video->frame_rate_numerator(), 24);
  EXPECT_EQ(video->seconds(), 0.25);
  EXPECT_EQ(video->audio_sample_rate(), 48000);
  EXPECT_EQ(Inspect(Mp4(0))->audio_channels(), 0);

  const auto sound = Inspect(Mp4(48000), Header(v1::CONDITION_KIND_AUDIO));
  ASSERT_TRUE(sound.ok()) << sound.status();
  EXPECT_EQ(sound->kind(), v1::CONDITION_KIND_AUDIO);
  EXPECT_EQ(sound->format(), "aac");
  EXPECT_EQ(sound->audio_channels(), 2);
  EXPECT_THAT(sound->handle(), StartsWith("audio:"));
}

TEST(InspectContentTest, AnotherKindThanAnnounced) {
  const absl::Status status = Inspect(Png(), Header(v1::CONDITION_KIND_VIDEO)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Field(status), "header.kind");
  EXPECT_THAT(std::string(status.message()), HasSubstr("upload \"it\" is image by its content"));
}

TEST(InspectContentTest, PromptsNeedTheirKind) {
  const auto prompt = Inspect("a red circle", Header(v1::CONDITION_KIND_PROMPT));
  ASSERT_TRUE(prompt.ok()) << prompt.status();
  EXPECT_EQ(prompt->kind(), v1::CONDITION_KIND_PROMPT);
  EXPECT_THAT(prompt->handle(), StartsWith("prompt:"));
  EXPECT_THAT(std::string(Inspect("a red circle").status().message()), HasSubstr("PROMPT"));
  EXPECT_THAT(
      std::string(
          Inspect(std::string(30, 'x'), Header(v1::CONDITION_KIND_PROMPT)).status().message()),
      HasSubstr("prompt too long"));
}

TEST(InspectContentTest, WhatWasAnnouncedMustCome) {
  v1::ConditionHeader header;
  header.set_total_bytes(7);
  EXPECT_EQ(Field(Inspect(Png(), header).status()), "header.total_bytes");
  header.set_total_bytes(static_cast<int64_t>(Png().size()));
  header.set_sha256(media::Sha256Of("else"));
  EXPECT_EQ(Field(Inspect(Png(), header).status()), "header.sha256");
  header.set_sha256(media::Sha256Of(Png()));
  EXPECT_TRUE(Inspect(Png(), header).ok());
}

TEST(InspectContentTest, HostileContent) {
  for (const std::string& content :
       {std::string(), std::string("x"), std::string(1000, '\0'), Png().substr(0, Png().size() / 2),
        Mp4(48000).substr(0, 900), std::string("#EXTM3U\nfile:///etc"),
        std::string("ffconcat version 1.0\nfile /etc/passwd\n")}) {
    const absl::Status status = Inspect(content).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_EQ(Field(status), "data");
  }
  media::MediaLimits limits;
  limits.max_pixels = 7;
  EXPECT_THAT(std::string(Inspect(Png(), {}, limits).status().message()), HasSubstr("at most 7"));
  limits = media::MediaLimits();
  limits.max_seconds = 0.1;
  EXPECT_THAT(std::string(Inspect(Mp4(48000), {}, limits).status().message()),
              HasSubstr("at most 0.1 seconds"));
}

}  // namespace
}  // namespace ltx::server
