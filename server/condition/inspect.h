#ifndef LTX_SERVER_CONDITION_INSPECT_H_
#define LTX_SERVER_CONDITION_INSPECT_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/media/media_errors.h"
#include "proto/ltx/v1/video_service.pb.h"

namespace ltx::server {

/// Tells what uploaded bytes are by decoding all of them, keeping nothing.
struct InspectOptions {
  media::MediaLimits limits;
  /// Whether a text will do as a prompt.
  std::function<absl::Status(absl::string_view)> check_prompt;
};

/// Kind, handle and facts of `content`; `header` tells what the client expects. INVALID_ARGUMENT:
/// CONDITION_UPLOAD if size or digest differ from the header's, UNKNOWN_VALUE for another kind than
/// the header's, MEDIA_FORMAT and MEDIA_LIMIT from the decoders, and what check_prompt says.
absl::StatusOr<v1::ConditionResponse> InspectContent(absl::Span<const uint8_t> content,
                                                     const v1::ConditionHeader& header,
                                                     const InspectOptions& options);

/// The name by which messages speak of an upload.
std::string UploadName(const v1::ConditionHeader& header);

}  // namespace ltx::server

#endif  // LTX_SERVER_CONDITION_INSPECT_H_
