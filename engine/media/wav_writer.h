#ifndef LTX_ENGINE_MEDIA_WAV_WRITER_H_
#define LTX_ENGINE_MEDIA_WAV_WRITER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace ltx::media {

/// Writes sound alone, waveform [2, N] in [-1, 1], as a stereo 16-bit WAV (clipped, times 32767,
/// truncated towards zero, as in mp4). `samples` per channel are written: the waveform is cut, or
/// extended by silence. The file appears whole or not at all. Returns its size in bytes.
/// INVALID_ARGUMENT for an empty or odd waveform or a length that WAV cannot hold, NOT_FOUND /
/// PERMISSION_DENIED for the path.
absl::StatusOr<int64_t> WriteWav(absl::string_view path, absl::Span<const float> waveform,
                                 int64_t samples, int sample_rate);

}  // namespace ltx::media

#endif  // LTX_ENGINE_MEDIA_WAV_WRITER_H_
