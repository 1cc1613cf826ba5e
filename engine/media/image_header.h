#ifndef LTX_ENGINE_MEDIA_IMAGE_HEADER_H_
#define LTX_ENGINE_MEDIA_IMAGE_HEADER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/media/media_sniffer.h"

namespace ltx::media {

/// What a picture file says of itself before anything is decoded.
struct ImageHeader {
  int64_t width = 0;
  int64_t height = 0;
  /// EXIF orientation, 1 to 8; 1 if there is none. An XMP packet is asked where EXIF is silent.
  int orientation = 1;
  /// Embedded ICC profile; empty if there is none or it is larger than any real one.
  std::vector<uint8_t> icc_profile;
  /// The file without what only this reader uses: a PNG's ancillary chunks, which a decoder would
  /// inflate without a bound. Empty: the file as it is.
  std::vector<uint8_t> stripped;
};

/// Reads the header of a png, jpeg, webp or bmp file. INVALID_ARGUMENT (MEDIA_FORMAT) with `name`
/// for a broken or truncated file and for animated WebP.
absl::StatusOr<ImageHeader> ReadImageHeader(absl::Span<const uint8_t> file, MediaFormat format,
                                            absl::string_view name);

}  // namespace ltx::media

#endif  // LTX_ENGINE_MEDIA_IMAGE_HEADER_H_
