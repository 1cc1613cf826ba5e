#ifndef LTX_ENGINE_MEDIA_PNG_WRITER_H_
#define LTX_ENGINE_MEDIA_PNG_WRITER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace ltx::media {

/// One frame, rgb u8 [H, W, 3], as the bytes of an 8-bit PNG file. INVALID_ARGUMENT for sizes that
/// do not match.
absl::StatusOr<std::string> EncodePng(absl::Span<const uint8_t> rgb, int width, int height);

/// Writes one frame, rgb [H, W, 3] in [0, 1], as an 8-bit PNG (values truncated, as everywhere in
/// 8-bit output). The file appears whole or not at all. Returns its size in bytes.
/// INVALID_ARGUMENT for sizes that do not match, NOT_FOUND / PERMISSION_DENIED for the path.
absl::StatusOr<int64_t> WritePng(absl::string_view path, absl::Span<const float> rgb, int width,
                                 int height);

}  // namespace ltx::media

#endif  // LTX_ENGINE_MEDIA_PNG_WRITER_H_
