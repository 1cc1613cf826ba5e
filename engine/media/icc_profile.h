#ifndef LTX_ENGINE_MEDIA_ICC_PROFILE_H_
#define LTX_ENGINE_MEDIA_ICC_PROFILE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace ltx::media {

/// Pixels of the profile's colours to sRGB with perceptual intent and no black-point compensation,
/// 8 bit on both sides: u8 [pixels, channels] to u8 [pixels, 3]. `channels` is 1 (grey) or 3 (RGB).
/// INVALID_ARGUMENT for a broken profile or one of another number of channels.
absl::StatusOr<std::vector<uint8_t>> ConvertToSrgb(absl::Span<const uint8_t> pixels, int channels,
                                                   absl::Span<const uint8_t> profile);

}  // namespace ltx::media

#endif  // LTX_ENGINE_MEDIA_ICC_PROFILE_H_
