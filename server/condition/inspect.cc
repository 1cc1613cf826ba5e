#include "server/condition/inspect.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/media/audio_reader.h"
#include "engine/media/image_reader.h"
#include "engine/media/media_sniffer.h"
#include "engine/media/sha256.h"
#include "engine/media/video_reader.h"
#include "engine/pipeline/error_details.h"
#include "kernels/status_macros.h"
#include "server/reasons.h"

namespace ltx::server {
namespace {

using Bytes = absl::Span<const uint8_t>;

/// "image", "video", ...
std::string KindName(v1::ConditionKind kind) {
  absl::string_view name = v1::ConditionKind_Name(kind);
  absl::ConsumePrefix(&name, "CONDITION_KIND_");
  return absl::AsciiStrToLower(name);
}

absl::Status Mismatch(const v1::ConditionHeader& header, absl::string_view what,
                      const std::string& announced, const std::string& came) {
  return pipeline::WithDetail(
      absl::InvalidArgumentError(absl::StrCat(UploadName(header), ": the header announces ", what,
                                              " ", announced, ", but what came has ", came)),
      {std::string(kReasonConditionUpload), absl::StrCat("header.", what), announced, came});
}

absl::Status CheckAnnounced(Bytes content, const std::string& digest,
                            const v1::ConditionHeader& header) {
  const auto size = static_cast<int64_t>(content.size());
  if (header.total_bytes() != 0 && header.total_bytes() != size) {
    return Mismatch(header, "total_bytes", absl::StrCat(header.total_bytes()), absl::StrCat(size));
  }
  if (!header.sha256().empty() && header.sha256() != digest) {
    return Mismatch(header, "sha256", absl::BytesToHexString(header.sha256()),
                    absl::BytesToHexString(digest));
  }
  return absl::OkStatus();
}

/// OK if the header leaves the kind open or says the same.
absl::Status CheckKind(v1::ConditionKind kind, const v1::ConditionHeader& header) {
  if (header.kind() == v1::CONDITION_KIND_UNSPECIFIED || header.kind() == kind) {
    return absl::OkStatus();
  }
  return pipeline::WithDetail(
      absl::InvalidArgumentError(absl::StrCat(UploadName(header), " is ", KindName(kind),
                                              " by its content, not ", KindName(header.kind()))),
      {std::string(pipeline::kReasonUnknownValue), "header.kind", KindName(header.kind()),
       KindName(kind)});
}

void SetAudio(const media::AudioFacts& audio, v1::ConditionResponse* facts) {
  facts->set_audio_sample_rate(audio.sample_rate);
  facts->set_audio_channels(audio.channels);
}

absl::Status InspectImage(Bytes content, const std::string& name, const media::MediaLimits& limits,
                          v1::ConditionResponse* facts) {
  LTX_ASSIGN_OR_RETURN(media::DecodedImage image, media::DecodeImage(content, name, limits));
  facts->set_kind(v1::CONDITION_KIND_IMAGE);
  facts->set_format(image.format);
  facts->set_width(image.width);
  facts->set_height(image.height);
  facts->set_num_frames(1);
  for (std::string& warning : image.warnings) facts->add_warnings(std::move(warning));
  return absl::OkStatus();
}

absl::Status InspectVideo(Bytes content, const std::string& name, const media::MediaLimits& limits,
                          v1::ConditionResponse* facts) {
  LTX_ASSIGN_OR_RETURN(const media::VideoFacts video,
                       media::ReadVideo(content, name, limits, {}, nullptr));
  facts->set_kind(v1::CONDITION_KIND_VIDEO);
  facts->set_format(video.codec);
  facts->set_width(video.width);
  facts->set_height(video.height);
  facts->set_num_frames(video.frames);
  facts->set_frame_rate_numerator(video.frame_rate_numerator);
  facts->set_frame_rate_denominator(video.frame_rate_denominator);
  facts->set_seconds(video.seconds);
  if (!video.has_audio) return absl::OkStatus();
  const absl::StatusOr<media::AudioFacts> audio = media::InspectAudio(content, name, limits);
  if (audio.ok()) {
    SetAudio(*audio, facts);
    return absl::OkStatus();
  }
  // The picture is good: a sound that is not is only missing.
  const auto detail = pipeline::GetErrorDetail(audio.status());
  if (!detail.has_value() || detail->reason != media::kReasonMediaFormat) return audio.status();
  facts->add_warnings(absl::StrCat("its sound cannot be used: ", audio.status().message()));
  return absl::OkStatus();
}

absl::Status InspectSound(Bytes content, const std::string& name, const media::MediaLimits& limits,
                          v1::ConditionResponse* facts) {
  LTX_ASSIGN_OR_RETURN(const media::AudioFacts audio, media::InspectAudio(content, name, limits));
  facts->set_kind(v1::CONDITION_KIND_AUDIO);
  facts->set_format(audio.codec);
  facts->set_seconds(audio.seconds);
  SetAudio(audio, facts);
  return absl::OkStatus();
}

absl::Status InspectMedia(Bytes content, const v1::ConditionHeader& header,
                          const media::MediaLimits& limits, v1::ConditionResponse* facts) {
  const std::string name = UploadName(header);
  const std::optional<media::MediaFormat> format = media::SniffMedia(content);
  if (!format.has_value()) {
    return media::FormatError(
        name, absl::StrCat("its content is none of ", media::MediaFormatNames(),
                           "; a prompt has no signature and needs the kind PROMPT in the header"));
  }
  if (media::IsImage(*format)) return InspectImage(content, name, limits, facts);
  if (!media::IsContainer(*format) || header.kind() == v1::CONDITION_KIND_AUDIO) {
    return InspectSound(content, name, limits, facts);
  }
  const absl::Status as_video = InspectVideo(content, name, limits, facts);
  if (as_video.ok() || header.kind() == v1::CONDITION_KIND_VIDEO) return as_video;
  const auto detail = pipeline::GetErrorDetail(as_video);
  if (!detail.has_value() || detail->reason != media::kReasonMediaFormat) return as_video;
  // A container without a picture may be a sound.
  return InspectSound(content, name, limits, facts).ok() ? absl::OkStatus() : as_video;
}

}  // namespace

std::string UploadName(const v1::ConditionHeader& header) {
  if (header.name().empty()) return "the upload";
  return absl::StrCat("upload \"", header.name(), "\"");
}

absl::StatusOr<v1::ConditionResponse> InspectContent(Bytes content,
                                                     const v1::ConditionHeader& header,
                                                     const InspectOptions& options) {
  const absl::string_view text(reinterpret_cast<const char*>(content.data()), content.size());
  const std::string digest = media::Sha256Of(text);
  LTX_RETURN_IF_ERROR(CheckAnnounced(content, digest, header));
  if (content.empty()) return media::FormatError(UploadName(header), "it is empty");
  v1::ConditionResponse facts;
  if (header.kind() == v1::CONDITION_KIND_PROMPT) {
    LTX_RETURN_IF_ERROR(options.check_prompt(text));
    facts.set_kind(v1::CONDITION_KIND_PROMPT);
    facts.set_format("text");
  } else {
    LTX_RETURN_IF_ERROR(InspectMedia(content, header, options.limits, &facts));
    LTX_RETURN_IF_ERROR(CheckKind(facts.kind(), header));
  }
  facts.set_bytes(static_cast<int64_t>(content.size()));
  facts.set_handle(absl::StrCat(KindName(facts.kind()), ":", absl::BytesToHexString(digest)));
  return facts;
}

}  // namespace ltx::server
