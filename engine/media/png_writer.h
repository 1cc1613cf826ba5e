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

/// Writes the same to a file, which appears whole or not at all. Returns its size in bytes.
/// NOT_FOUND / PERMISSION_DENIED for the path.
absl::StatusOr<int64_t> WritePng(absl::string_view path, absl::Span<const uint8_t> rgb, int width,
                                 int height);

}  // namespace ltx::media

#endif  // LTX_ENGINE_MEDIA_PNG_WRITER_H_
