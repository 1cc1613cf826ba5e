#ifndef LTX_ENGINE_MEDIA_AUDIO_READER_H_
#define LTX_ENGINE_MEDIA_AUDIO_READER_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/media/media_errors.h"

namespace ltx::media {

struct AudioFacts {
  int channels = 0;
  int sample_rate = 0;
  int64_t samples = 0;  ///< Per channel.
  double seconds = 0;
  std::string codec;  ///< FFmpeg's name, e.g. "aac".
};

/// Which part of a sound, in seconds.
struct AudioWindow {
  double start = 0;
  double duration = std::numeric_limits<double>::infinity();
};

struct DecodedAudio {
  AudioFacts facts;
  /// f32 [channels, samples] in -1..1, at the file's own rate and channel count.
  std::vector<float> samples;
};

/// Decodes the first audio stream of a wav, flac, ogg, mp3, mp4 or matroska file in memory: integer
/// samples over 2^(bits - 1) (unsigned bytes around their centre), floats as they are; a window is
/// cut to the sample, half to even.
///
/// INVALID_ARGUMENT naming `name`: MEDIA_FORMAT for what is no such sound, is damaged or empty,
/// MEDIA_LIMIT above limits.max_seconds or eight channels.
absl::StatusOr<DecodedAudio> DecodeAudio(absl::Span<const uint8_t> file, absl::string_view name,
                                         const MediaLimits& limits = {},
                                         const AudioWindow& window = {});

/// The same facts with nothing kept: decodes all, and so proves that it can be decoded.
absl::StatusOr<AudioFacts> InspectAudio(absl::Span<const uint8_t> file, absl::string_view name,
                                        const MediaLimits& limits = {});

}  // namespace ltx::media

#endif  // LTX_ENGINE_MEDIA_AUDIO_READER_H_
