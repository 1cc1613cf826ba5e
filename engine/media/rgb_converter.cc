#include "engine/media/rgb_converter.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

extern "C" {
#include <libavutil/pixdesc.h>
}

namespace ltx::media {
namespace {

int SwsMatrix(AVColorSpace space) {
  switch (space) {
    case AVCOL_SPC_BT709:
      return SWS_CS_ITU709;
    case AVCOL_SPC_BT2020_NCL:
    case AVCOL_SPC_BT2020_CL:
      return SWS_CS_BT2020;
    default:
      return SWS_CS_ITU601;
  }
}

}  // namespace

absl::Status RgbConverter::Prepare(const AVFrame& frame) {
  const auto format = static_cast<AVPixelFormat>(frame.format);
  scaler_.reset(sws_getContext(frame.width, frame.height, format, frame.width, frame.height,
                               AV_PIX_FMT_RGB24, flags_, nullptr, nullptr, nullptr));
  if (scaler_ == nullptr) {
    const char* const name = av_get_pix_fmt_name(format);
    return absl::InvalidArgumentError(absl::StrCat(
        "no conversion from ", name == nullptr ? "this pixel format" : name, " to RGB"));
  }
  sws_setColorspaceDetails(scaler_.get(), sws_getCoefficients(SwsMatrix(frame.colorspace)),
                           frame.color_range == AVCOL_RANGE_JPEG,
                           sws_getCoefficients(SWS_CS_ITU709), 1, 0, 1 << 16, 1 << 16);
  picture_.reset(av_frame_alloc());
  if (picture_ == nullptr) return AvStatus(AVERROR(ENOMEM), "a frame");
  picture_->format = AV_PIX_FMT_RGB24;
  picture_->width = frame.width;
  picture_->height = frame.height;
  const int error = av_frame_get_buffer(picture_.get(), 0);
  if (error < 0) return AvStatus(error, "a frame");
  source_format_ = frame.format;
  return absl::OkStatus();
}

absl::Status RgbConverter::Convert(const AVFrame& frame, absl::Span<uint8_t> rgb) {
  if (scaler_ == nullptr) LTX_RETURN_IF_ERROR(Prepare(frame));
  if (frame.width != picture_->width || frame.height != picture_->height ||
      frame.format != source_format_) {
    return absl::InvalidArgumentError("the size or format of the picture changes");
  }
  sws_scale(scaler_.get(), frame.data, frame.linesize, 0, frame.height, picture_->data,
            picture_->linesize);
  const size_t row = static_cast<size_t>(frame.width) * 3;
  for (int y = 0; y < frame.height; ++y) {
    const uint8_t* const line =
        picture_->data[0] + static_cast<ptrdiff_t>(y) * picture_->linesize[0];
    std::copy(line, line + row, rgb.begin() + y * row);
  }
  return absl::OkStatus();
}

}  // namespace ltx::media
