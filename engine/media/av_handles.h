#ifndef LTX_ENGINE_MEDIA_AV_HANDLES_H_
#define LTX_ENGINE_MEDIA_AV_HANDLES_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libswresample/swresample.h>
#include <libswscale/swscale.h>
}

namespace ltx::media {

/// Owning pointers to libav* objects, and its error codes as statuses. Internal to this package.

struct AvDeleter {
  void operator()(AVCodecContext* context) const { avcodec_free_context(&context); }
  void operator()(AVFrame* frame) const { av_frame_free(&frame); }
  void operator()(AVPacket* packet) const { av_packet_free(&packet); }
  void operator()(SwrContext* context) const { swr_free(&context); }
  void operator()(SwsContext* context) const { sws_freeContext(context); }
};
using CodecContextPtr = std::unique_ptr<AVCodecContext, AvDeleter>;
using FramePtr = std::unique_ptr<AVFrame, AvDeleter>;
using PacketPtr = std::unique_ptr<AVPacket, AvDeleter>;
using SwrPtr = std::unique_ptr<SwrContext, AvDeleter>;
using SwsPtr = std::unique_ptr<SwsContext, AvDeleter>;

/// "WHAT: libav text". A full disk and lack of memory are RESOURCE_EXHAUSTED, broken input is
/// INVALID_ARGUMENT, all else INTERNAL.
absl::Status AvStatus(int error, absl::string_view what);

/// AVCodecContext::max_pixels for pictures of at most `pixels`: libav* counts rows rounded up to 64
/// pixels, and no row count that a real picture has goes beyond 16 bits.
constexpr int64_t DecoderMaxPixels(int64_t pixels) { return pixels + int64_t{64} * 65536; }

/// Keeps libav* from writing to stderr: what goes wrong comes back as a status. Call it before any
/// other use.
void QuietLibav();

}  // namespace ltx::media

#endif  // LTX_ENGINE_MEDIA_AV_HANDLES_H_
