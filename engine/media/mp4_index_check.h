#ifndef LTX_ENGINE_MEDIA_MP4_INDEX_CHECK_H_
#define LTX_ENGINE_MEDIA_MP4_INDEX_CHECK_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace ltx::media {

/// A few bytes of an mp4 can announce billions of samples of one size, and a demuxer makes an index
/// of all of them before it reads one. Walks the boxes of the file and refuses what announces more
/// samples than any clip within the limits has: INVALID_ARGUMENT (MEDIA_LIMIT) with `name`. A
/// broken box structure ends the walk; the demuxer judges it.
absl::Status CheckMp4Index(absl::Span<const uint8_t> file, absl::string_view name);

}  // namespace ltx::media

#endif  // LTX_ENGINE_MEDIA_MP4_INDEX_CHECK_H_
