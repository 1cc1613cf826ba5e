#ifndef LTX_SERVER_MEDIA_KIND_H_
#define LTX_SERVER_MEDIA_KIND_H_

#include "absl/strings/string_view.h"
#include "engine/pipeline/generation_request.h"
#include "engine/pipeline/recipe.h"

namespace ltx::server {

/// What kind of file a request ends in.
struct MediaKind {
  enum class Form { kClip, kPicture, kSound };
  Form form = Form::kClip;
  absl::string_view ending;
  absl::string_view mime_type;
};

inline constexpr MediaKind kMediaKinds[] = {{MediaKind::Form::kClip, ".mp4", "video/mp4"},
                                            {MediaKind::Form::kPicture, ".png", "image/png"},
                                            {MediaKind::Form::kSound, ".wav", "audio/wav"}};

/// What a job leaves that is stopped before its end.
inline constexpr char kPartialMimeType[] = "application/x-safetensors";

/// Sound for a recipe without picture, a picture for a single frame, else a clip, also where the
/// length is yet to be predicted.
inline MediaKind MediaKindOf(const pipeline::GenerationRequest& request) {
  if (!pipeline::TraitsOf(request.recipe).video) return kMediaKinds[2];
  const bool picture = request.num_frames == 1 && !request.auto_duration.has_value();
  return kMediaKinds[picture ? 1 : 0];
}

/// The ending of a file with such content; empty for a type that no request ends in.
inline absl::string_view EndingOf(absl::string_view mime_type) {
  if (mime_type == kPartialMimeType) return ".safetensors";
  for (const MediaKind& kind : kMediaKinds) {
    if (kind.mime_type == mime_type) return kind.ending;
  }
  return "";
}

}  // namespace ltx::server

#endif  // LTX_SERVER_MEDIA_KIND_H_
