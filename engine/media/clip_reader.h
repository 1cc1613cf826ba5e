#ifndef LTX_ENGINE_MEDIA_CLIP_READER_H_
#define LTX_ENGINE_MEDIA_CLIP_READER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ltx::media {

/// A whole finished clip in memory.
struct DecodedClip {
  int width = 0;
  int height = 0;
  /// 0 for sound alone.
  int64_t num_frames = 0;
  /// u8 [F, H, W, 3].
  std::vector<uint8_t> frames;
  /// Average rate of the stream; 0/1 for a still picture.
  int64_t frame_rate_numerator = 0;
  int64_t frame_rate_denominator = 1;
  std::string video_codec;   ///< FFmpeg's name, e.g. "h264".
  std::string pixel_format;  ///< e.g. "yuv420p".
  std::string color_space;   ///< e.g. "bt709"; "unknown" if untagged.
  std::string color_range;   ///< "tv" (limited), "pc" (full) or "unknown".

  /// [channels, N] in file order; empty without sound. The edit list is honoured: encoder delay is
  /// gone and the end lies where the track says it does.
  std::vector<float> waveform;
  int audio_channels = 0;
  int audio_sample_rate = 0;
  std::string audio_codec;
};

/// Bounds that a file must keep; they hold before memory is taken.
struct ClipLimits {
  int64_t max_pixels = int64_t{4096} * 4096;
  int64_t max_frames = 4096;
  /// Of decoded pictures: 16 GiB would be a clip that no model of this family makes.
  int64_t max_frame_bytes = int64_t{16} << 30;
  double max_audio_seconds = 600;
};

/// Decodes an mp4, a PNG or a WAV (no frames) from a local path. Only these containers are opened
/// and no protocol but files: a file cannot make the reader fetch anything. NOT_FOUND,
/// INVALID_ARGUMENT for what is not such a file or is broken, RESOURCE_EXHAUSTED above a limit; all
/// name the path.
absl::StatusOr<DecodedClip> ReadClip(absl::string_view path, const ClipLimits& limits = {});

}  // namespace ltx::media

#endif  // LTX_ENGINE_MEDIA_CLIP_READER_H_
