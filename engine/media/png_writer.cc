#include "engine/media/png_writer.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/media/atomic_file.h"
#include "engine/media/av_handles.h"
#include "kernels/status_macros.h"

namespace ltx::media {

absl::StatusOr<std::string> EncodePng(absl::Span<const uint8_t> rgb, int width, int height) {
  if (width <= 0 || height <= 0 || rgb.size() != static_cast<size_t>(width) * height * 3) {
    return absl::InvalidArgumentError(absl::StrCat("a picture of ", width, " x ", height,
                                                   " does not have ", rgb.size(), " RGB values"));
  }
  QuietLibav();
  const AVCodec* codec = avcodec_find_encoder(AV_CODEC_ID_PNG);
  if (codec == nullptr) {
    return absl::FailedPreconditionError("the FFmpeg libraries here have no png encoder");
  }
  const CodecContextPtr encoder(avcodec_alloc_context3(codec));
  encoder->width = width;
  encoder->height = height;
  encoder->pix_fmt = AV_PIX_FMT_RGB24;
  encoder->time_base = {1, 1};
  int error = avcodec_open2(encoder.get(), codec, nullptr);
  if (error < 0) return AvStatus(error, "cannot open the png encoder");

  const FramePtr frame(av_frame_alloc());
  frame->format = AV_PIX_FMT_RGB24;
  frame->width = width;
  frame->height = height;
  error = av_frame_get_buffer(frame.get(), 0);
  if (error < 0) return AvStatus(error, "no memory for a frame");
  const size_t row = static_cast<size_t>(width) * 3;
  for (int y = 0; y < height; ++y) {
    std::copy_n(rgb.begin() + y * row, row,
                frame->data[0] + static_cast<ptrdiff_t>(y) * frame->linesize[0]);
  }
  error = avcodec_send_frame(encoder.get(), frame.get());
  if (error >= 0) error = avcodec_send_frame(encoder.get(), nullptr);
  if (error < 0) return AvStatus(error, "cannot encode the png");
  const PacketPtr packet(av_packet_alloc());
  error = avcodec_receive_packet(encoder.get(), packet.get());
  if (error < 0) return AvStatus(error, "cannot encode the png");
  return std::string(reinterpret_cast<const char*>(packet->data), packet->size);
}

absl::StatusOr<int64_t> WritePng(absl::string_view path, absl::Span<const uint8_t> rgb, int width,
                                 int height) {
  LTX_ASSIGN_OR_RETURN(const std::string png, EncodePng(rgb, width, height));
  LTX_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  LTX_RETURN_IF_ERROR(
      file.Write(absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(png.data()), png.size())));
  LTX_RETURN_IF_ERROR(file.Commit());
  return static_cast<int64_t>(png.size());
}

}  // namespace ltx::media
