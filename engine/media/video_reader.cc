#include "engine/media/video_reader.h"

#include <cmath>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/media/rgb_converter.h"
#include "engine/media/stream_decoder.h"
#include "kernels/status_macros.h"

namespace ltx::media {
namespace {

/// Reads one window of one clip.
class Reader {
 public:
  Reader(absl::string_view name, const MediaLimits& limits, const VideoWindow& window,
         const VideoFrameSink& sink)
      : name_(name), limits_(limits), window_(window), sink_(sink) {}

  absl::StatusOr<VideoFacts> Read(absl::Span<const uint8_t> file) {
    LTX_ASSIGN_OR_RETURN(const auto decoder,
                         StreamDecoder::Open(file, AVMEDIA_TYPE_VIDEO, name_, limits_));
    Describe(*decoder);
    if (window_.start_seconds.value_or(0) > 0) decoder->SeekTo(*window_.start_seconds);
    missing_times_ = false;
    LTX_RETURN_IF_ERROR(decoder->Run([&](const AVFrame& frame, bool* stop) {
      return Take(frame, decoder->Seconds(frame), stop);
    }));
    if (missing_times_) return RestartByFrames(file);
    if (facts_.frames == 0) return FormatError(name_, "the file holds no decodable frame");
    if (facts_.frame_rate_numerator > 0) {
      facts_.seconds = static_cast<double>(facts_.frames) * facts_.frame_rate_denominator /
                       facts_.frame_rate_numerator;
    }
    return facts_;
  }

 private:
  void Describe(const StreamDecoder& decoder) {
    facts_ = VideoFacts();
    facts_.codec = avcodec_get_name(decoder.codec().codec_id);
    facts_.has_audio = decoder.HasStream(AVMEDIA_TYPE_AUDIO);
    const AVRational rate = decoder.stream().avg_frame_rate;
    if (rate.num > 0 && rate.den > 0) {
      facts_.frame_rate_numerator = rate.num;
      facts_.frame_rate_denominator = rate.den;
    }
  }

  /// Frames without time stamps have places only.
  absl::StatusOr<VideoFacts> RestartByFrames(absl::Span<const uint8_t> file) {
    const double rate = static_cast<double>(facts_.frame_rate_numerator) /
                        static_cast<double>(facts_.frame_rate_denominator);
    if (rate <= 0) {
      return FormatError(name_, "its frames have neither time stamps nor a rate: name frames");
    }
    VideoWindow by_frames;
    by_frames.first_frame = std::llrint(*window_.start_seconds * rate);
    if (std::isfinite(window_.duration_seconds)) {
      by_frames.max_frames = std::llrint(window_.duration_seconds * rate);
    }
    return Reader(name_, limits_, by_frames, sink_).Read(file);
  }

  absl::Status Take(const AVFrame& frame, double seconds, bool* stop) {
    const int64_t index = seen_++;
    LTX_RETURN_IF_ERROR(CheckLimits(frame, seen_));
    if (window_.start_seconds.has_value()) {
      if (std::isinf(seconds)) {
        missing_times_ = true;
        *stop = true;
        return absl::OkStatus();
      }
      *stop = seconds >= *window_.start_seconds + window_.duration_seconds;
      if (*stop || seconds < *window_.start_seconds) return absl::OkStatus();
    } else {
      *stop = index >= window_.first_frame && facts_.frames >= window_.max_frames;
      if (*stop || index < window_.first_frame) return absl::OkStatus();
    }
    facts_.width = frame.width;
    facts_.height = frame.height;
    ++facts_.frames;
    if (!sink_) return absl::OkStatus();
    rgb_.resize(static_cast<size_t>(frame.width) * frame.height * 3);
    const absl::Status converted = converter_.Convert(frame, absl::MakeSpan(rgb_));
    if (!converted.ok()) return FormatError(name_, converted.message());
    return sink_(rgb_);
  }

  absl::Status CheckLimits(const AVFrame& frame, int64_t frames) {
    if (facts_.frames > 0 && (frame.width != facts_.width || frame.height != facts_.height)) {
      return FormatError(name_, "the picture size changes");
    }
    const int64_t pixels = int64_t{frame.width} * frame.height;
    if (pixels > limits_.max_pixels) {
      return LimitError(name_, "pixels in a frame", static_cast<double>(pixels),
                        static_cast<double>(limits_.max_pixels));
    }
    if (frames > limits_.max_frames) {
      return LimitError(name_, "frames", static_cast<double>(frames),
                        static_cast<double>(limits_.max_frames));
    }
    decoded_bytes_ += 3 * pixels;
    if (decoded_bytes_ > limits_.max_decoded_bytes) {
      return LimitError(name_, "decoded bytes", static_cast<double>(decoded_bytes_),
                        static_cast<double>(limits_.max_decoded_bytes));
    }
    return absl::OkStatus();
  }

  const std::string name_;
  const MediaLimits limits_;
  const VideoWindow window_;
  const VideoFrameSink sink_;
  VideoFacts facts_;
  RgbConverter converter_{SWS_BILINEAR};
  std::vector<uint8_t> rgb_;
  int64_t seen_ = 0;
  int64_t decoded_bytes_ = 0;
  bool missing_times_ = false;
};

}  // namespace

absl::StatusOr<VideoFacts> ReadVideo(absl::Span<const uint8_t> file, absl::string_view name,
                                     const MediaLimits& limits, const VideoWindow& window,
                                     const VideoFrameSink& sink) {
  return Reader(name, limits, window, sink).Read(file);
}

}  // namespace ltx::media
