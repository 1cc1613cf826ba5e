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
  absl::string_view ending = ".mp4";
  absl::string_view mime_type = "video/mp4";
};

/// Sound for a recipe without picture, a picture for a single frame, else a clip, also where the
/// length is yet to be predicted.
inline MediaKind MediaKindOf(const pipeline::GenerationRequest& request) {
  if (!pipeline::TraitsOf(request.recipe).video) {
    return {MediaKind::Form::kSound, ".wav", "audio/wav"};
  }
  if (request.num_frames == 1 && !request.auto_duration.has_value()) {
    return {MediaKind::Form::kPicture, ".png", "image/png"};
  }
  return {};
}

}  // namespace ltx::server

#endif  // LTX_SERVER_MEDIA_KIND_H_
