#ifndef LTX_ENGINE_MEDIA_STREAM_DECODER_H_
#define LTX_ENGINE_MEDIA_STREAM_DECODER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/media/av_handles.h"
#include "engine/media/media_errors.h"

namespace ltx::media {

/// One stream of a clip or a sound in memory, decoded frame by frame. The file is hostile: the
/// demuxer is the one of its magic bytes, nothing but these bytes can be opened, and the limits
/// hold before frames are allocated. One thread decodes, so that results do not depend on the
/// machine.
class StreamDecoder {
 public:
  /// Opens the first stream of `type` in `file`, which must outlive the decoder.
  /// INVALID_ARGUMENT naming `name`: MEDIA_FORMAT for what is no such file or has no such stream,
  /// MEDIA_LIMIT for a picture above limits.max_pixels.
  static absl::StatusOr<std::unique_ptr<StreamDecoder>> Open(absl::Span<const uint8_t> file,
                                                             AVMediaType type,
                                                             absl::string_view name,
                                                             const MediaLimits& limits);
  ~StreamDecoder();
  StreamDecoder(const StreamDecoder&) = delete;
  StreamDecoder& operator=(const StreamDecoder&) = delete;

  const AVStream& stream() const { return *stream_; }
  const AVCodecContext& codec() const { return *decoder_; }
  /// Whether the file has a stream of this type too; a cover picture does not count.
  bool HasStream(AVMediaType type) const;

  /// Moves to the key frame at or before `seconds`; where the file cannot, stays.
  void SeekTo(double seconds);

  /// Calls `sink` for each frame until the end, or until it sets `*stop`. INVALID_ARGUMENT
  /// (MEDIA_FORMAT) for damaged data, else what `sink` returns.
  absl::Status Run(const std::function<absl::Status(const AVFrame& frame, bool* stop)>& sink);

  /// Seconds of a frame's time stamp; negative infinity if it has none.
  double Seconds(const AVFrame& frame) const;

 private:
  struct Memory;
  explicit StreamDecoder(absl::string_view name);
  absl::Status OpenDemuxer(absl::Span<const uint8_t> file, const MediaLimits& limits);
  absl::Status OpenCodec(AVMediaType type, const MediaLimits& limits);
  absl::Status CheckPicture(const AVStream& stream, const MediaLimits& limits) const;

  const std::string name_;
  std::unique_ptr<Memory> memory_;
  AVFormatContext* demuxer_ = nullptr;
  const AVStream* stream_ = nullptr;
  CodecContextPtr decoder_;
  std::function<absl::Status()> keep_going_;
};

}  // namespace ltx::media

#endif  // LTX_ENGINE_MEDIA_STREAM_DECODER_H_
