#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/commands.h"
#include "client/connection.h"
#include "client/failure.h"
#include "client/json_output.h"
#include "client/video_client.h"

namespace ltx::client {
namespace {

struct Flags {
  Connection connection;
  std::vector<std::string> files;
  std::string prompt;
  std::string kind;
  std::string remove;
  double deadline_seconds = 0;
  bool json = false;
};

v1::ConditionKind KindOf(const std::string& name) {
  if (name == "image") return v1::CONDITION_KIND_IMAGE;
  if (name == "video") return v1::CONDITION_KIND_VIDEO;
  if (name == "audio") return v1::CONDITION_KIND_AUDIO;
  return v1::CONDITION_KIND_UNSPECIFIED;
}

/// "png 640x480", "h264 640x480, 25 frames, 1.04 s, sound 48000 Hz", ...
std::string Describe(const v1::ConditionResponse& facts) {
  std::string text = facts.format();
  if (facts.width() > 0) absl::StrAppend(&text, " ", facts.width(), "x", facts.height());
  if (facts.num_frames() > 1) absl::StrAppend(&text, ", ", facts.num_frames(), " frames");
  if (facts.seconds() > 0) absl::StrAppend(&text, ", ", facts.seconds(), " s");
  if (facts.audio_sample_rate() > 0) {
    absl::StrAppend(&text, ", sound ", facts.audio_sample_rate(), " Hz, ", facts.audio_channels(),
                    " channels");
  }
  return absl::StrCat(text, ", ", facts.bytes(), " bytes");
}

int Report(const absl::StatusOr<v1::ConditionResponse>& facts, bool json) {
  if (!facts.ok()) return Fail(facts.status());
  for (const std::string& warning : facts->warnings()) {
    std::fprintf(stderr, "ltx: warning: %s\n", warning.c_str());
  }
  if (json) {
    PrintJson(*facts);
  } else {
    std::printf("%s  %s\n", facts->handle().c_str(), Describe(*facts).c_str());
  }
  return 0;
}

int RunCondition(const Flags& flags) {
  const auto client = Connect(flags.connection);
  if (!client.ok()) return Fail(client.status());
  const absl::Duration limit =
      flags.deadline_seconds > 0 ? absl::Seconds(flags.deadline_seconds) : absl::InfiniteDuration();
  if (!flags.remove.empty()) {
    const absl::Status status = (*client)->DeleteCondition(flags.remove, limit);
    return status.ok() ? 0 : Fail(status);
  }
  if (!flags.prompt.empty())
    return Report((*client)->UploadPrompt(flags.prompt, limit), flags.json);
  for (const std::string& file : flags.files) {
    const int result = Report((*client)->UploadFile(file, KindOf(flags.kind), limit), flags.json);
    if (result != 0) return result;
  }
  return 0;
}

}  // namespace

Command AddConditionCommand(CLI::App* app) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = app->add_subcommand(
      "condition", "Upload pictures, clips, sounds or a prompt, and print their handles");
  AddConnectionFlags(command, &flags->connection);
  command->add_option("files", flags->files, "Files to upload; the content tells what they are");
  command->add_option("--prompt", flags->prompt, "Upload this text as a prompt");
  command
      ->add_option("--kind", flags->kind,
                   "image, video or audio: refuse another; audio takes the sound of a clip")
      ->check(CLI::IsMember({"image", "video", "audio"}));
  command->add_option("--delete", flags->remove, "Forget this handle");
  command->add_option("--deadline", flags->deadline_seconds,
                      "Give up after this many seconds; 0: never");
  command->add_flag("--json", flags->json, "Print the answers as JSON");
  return [flags] {
    const int given = (flags->files.empty() ? 0 : 1) + (flags->prompt.empty() ? 0 : 1) +
                      (flags->remove.empty() ? 0 : 1);
    if (given != 1) {
      return Fail(absl::InvalidArgumentError("give files, --prompt or --delete: one of them"));
    }
    return RunCondition(*flags);
  };
}

}  // namespace ltx::client
