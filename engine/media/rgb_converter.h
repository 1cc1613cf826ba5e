#ifndef LTX_ENGINE_MEDIA_RGB_CONVERTER_H_
#define LTX_ENGINE_MEDIA_RGB_CONVERTER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/media/av_handles.h"

namespace ltx::media {

/// Decoded frames of one size and format to packed RGB through swscale. The frame's matrix and
/// range are honoured (untagged: BT.601 limited, as in the reference), its transfer is not.
class RgbConverter {
 public:
  /// `flags`: SWS_BILINEAR for clips; pictures ask for more.
  explicit RgbConverter(int flags) : flags_(flags) {}

  /// `rgb` [H, W, 3]. INVALID_ARGUMENT if the size or the format differs from the first frame's, or
  /// there is no conversion from it.
  absl::Status Convert(const AVFrame& frame, absl::Span<uint8_t> rgb);

 private:
  absl::Status Prepare(const AVFrame& frame);

  const int flags_;
  SwsPtr scaler_;
  /// The picture as RGB in rows with padding: the scaler works in blocks of pixels, and without
  /// room behind a row it leaves out the last ones or writes beyond the buffer.
  FramePtr picture_;
  int source_format_ = -1;
};

}  // namespace ltx::media

#endif  // LTX_ENGINE_MEDIA_RGB_CONVERTER_H_
