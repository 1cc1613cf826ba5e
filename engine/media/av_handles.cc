#include "engine/media/av_handles.h"

#include <cerrno>

#include "absl/strings/str_cat.h"

namespace ltx::media {

absl::Status AvStatus(int error, absl::string_view what) {
  char text[AV_ERROR_MAX_STRING_SIZE] = {};
  av_strerror(error, text, sizeof(text));
  const std::string message = absl::StrCat(what, ": ", text);
  if (error == AVERROR(ENOSPC) || error == AVERROR(ENOMEM) || error == AVERROR(EDQUOT)) {
    return absl::ResourceExhaustedError(message);
  }
  if (error == AVERROR_INVALIDDATA) return absl::InvalidArgumentError(message);
  if (error == AVERROR(ENOENT)) return absl::NotFoundError(message);
  return absl::InternalError(message);
}

void QuietLibav() { av_log_set_level(AV_LOG_QUIET); }

}  // namespace ltx::media
