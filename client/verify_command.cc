#include <cstdio>
#include <memory>
#include <string>

#include "client/commands.h"
#include "client/failure.h"
#include "engine/media/clip_reader.h"
#include "engine/verify/clip_verifier.h"

namespace ltx::client {
namespace {

int RunVerify(const std::string& path) {
  const auto clip = media::ReadClip(path);
  if (!clip.ok()) return Fail(clip.status());
  verify::ClipView view;
  view.frames = verify::SplitFrames(clip->frames, size_t{3} * clip->width * clip->height);
  view.height = clip->height;
  view.width = clip->width;
  view.waveform = clip->waveform;
  view.audio_channels = clip->audio_channels;
  view.audio_sample_rate = clip->audio_sample_rate;
  const auto report = verify::VerifyClip(view);
  if (!report.ok()) return Fail(report.status());
  std::printf("file              %s\npicture           %s, %dx%d, %lld/%lld fps\n", path.c_str(),
              clip->video_codec.c_str(), clip->width, clip->height,
              static_cast<long long>(clip->frame_rate_numerator),
              static_cast<long long>(clip->frame_rate_denominator));
  if (clip->audio_channels > 0) {
    std::printf("sound             %s, %d channels, %d Hz, %lld samples\n",
                clip->audio_codec.c_str(), clip->audio_channels, clip->audio_sample_rate,
                static_cast<long long>(clip->waveform.size() / clip->audio_channels));
  }
  std::fputs(verify::FormatReport(*report).c_str(), stdout);
  if (report->passed) return 0;
  return Fail(absl::FailedPreconditionError(path + " does not pass: " + report->failures.front()));
}

}  // namespace

Command AddVerifyCommand(CLI::App* app) {
  const auto path = std::make_shared<std::string>();
  CLI::App* command = app->add_subcommand("verify", "Measure and judge a finished clip");
  command->add_option("file", *path, "An mp4 or a PNG")->required();
  return [path] { return RunVerify(*path); };
}

}  // namespace ltx::client
