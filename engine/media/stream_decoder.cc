#include "engine/media/stream_decoder.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/media/media_sniffer.h"
#include "engine/media/mp4_index_check.h"
#include "kernels/status_macros.h"

namespace ltx::media {
namespace {

/// What libavformat reads at once.
constexpr int kIoBufferBytes = 64 * 1024;
/// A clip has a picture, a sound, perhaps subtitles and a time code.
constexpr char kMaxStreams[] = "16";

const char* DemuxerOf(MediaFormat format) {
  switch (format) {
    case MediaFormat::kMp4:
      return "mov,mp4,m4a,3gp,3g2,mj2";
    case MediaFormat::kMatroska:
      return "matroska,webm";
    case MediaFormat::kWav:
      return "wav";
    case MediaFormat::kFlac:
      return "flac";
    case MediaFormat::kOgg:
      return "ogg";
    default:
      return "mp3";
  }
}

const char* TypeName(AVMediaType type) { return type == AVMEDIA_TYPE_VIDEO ? "video" : "audio"; }

}  // namespace

/// The file as libavformat sees it.
struct StreamDecoder::Memory {
  absl::Span<const uint8_t> file;
  int64_t position = 0;
  AVIOContext* io = nullptr;

  ~Memory() {
    if (io == nullptr) return;
    av_freep(&io->buffer);
    avio_context_free(&io);
  }
  static int Read(void* opaque, uint8_t* buffer, int size) {
    auto* const self = static_cast<Memory*>(opaque);
    const int64_t left = static_cast<int64_t>(self->file.size()) - self->position;
    if (left <= 0) return AVERROR_EOF;
    const int count = static_cast<int>(std::min<int64_t>(left, size));
    std::memcpy(buffer, self->file.data() + self->position, count);
    self->position += count;
    return count;
  }
  static int64_t Seek(void* opaque, int64_t offset, int whence) {
    auto* const self = static_cast<Memory*>(opaque);
    const auto size = static_cast<int64_t>(self->file.size());
    if (whence == AVSEEK_SIZE) return size;
    if (whence == SEEK_CUR) offset += self->position;
    if (whence == SEEK_END) offset += size;
    if (offset < 0 || offset > size) return AVERROR(EINVAL);
    return self->position = offset;
  }
};

StreamDecoder::StreamDecoder(absl::string_view name)
    : name_(name), memory_(std::make_unique<Memory>()) {}

StreamDecoder::~StreamDecoder() { avformat_close_input(&demuxer_); }

absl::StatusOr<std::unique_ptr<StreamDecoder>> StreamDecoder::Open(absl::Span<const uint8_t> file,
                                                                   AVMediaType type,
                                                                   absl::string_view name,
                                                                   const MediaLimits& limits) {
  QuietLibav();
  std::unique_ptr<StreamDecoder> decoder(new StreamDecoder(name));
  decoder->keep_going_ = limits.keep_going;
  LTX_RETURN_IF_ERROR(decoder->OpenDemuxer(file, limits));
  LTX_RETURN_IF_ERROR(decoder->OpenCodec(type, limits));
  return decoder;
}

absl::Status StreamDecoder::CheckPicture(const AVStream& stream, const MediaLimits& limits) const {
  const AVCodecParameters& codec = *stream.codecpar;
  if (codec.codec_type != AVMEDIA_TYPE_VIDEO) return absl::OkStatus();
  const double pixels = static_cast<double>(codec.width) * codec.height;
  if (pixels <= static_cast<double>(limits.max_pixels)) return absl::OkStatus();
  return LimitError(name_, "pixels in a frame", pixels, static_cast<double>(limits.max_pixels));
}

absl::Status StreamDecoder::OpenDemuxer(absl::Span<const uint8_t> file, const MediaLimits& limits) {
  const std::optional<MediaFormat> format = SniffMedia(file);
  if (!format.has_value() || IsImage(*format)) {
    return FormatError(name_,
                       "not a clip or a sound: mp4, matroska, wav, flac, ogg and mp3 are read");
  }
  if (*format == MediaFormat::kMp4) LTX_RETURN_IF_ERROR(CheckMp4Index(file, name_));
  const std::string kind(MediaFormatName(*format));
  const AVInputFormat* const input = av_find_input_format(DemuxerOf(*format));
  if (input == nullptr) return FormatError(name_, absl::StrCat("this build cannot read ", kind));

  memory_->file = file;
  auto* const buffer = static_cast<uint8_t*>(av_malloc(kIoBufferBytes));
  if (buffer == nullptr) return AvStatus(AVERROR(ENOMEM), name_);
  memory_->io = avio_alloc_context(buffer, kIoBufferBytes, 0, memory_.get(), &Memory::Read, nullptr,
                                   &Memory::Seek);
  demuxer_ = avformat_alloc_context();
  if (memory_->io == nullptr || demuxer_ == nullptr) return AvStatus(AVERROR(ENOMEM), name_);
  demuxer_->pb = memory_->io;
  AVDictionary* settings = nullptr;
  // No protocol at all: references to files and addresses inside the file lead nowhere.
  av_dict_set(&settings, "protocol_whitelist", "", 0);
  av_dict_set(&settings, "format_whitelist", DemuxerOf(*format), 0);
  av_dict_set(&settings, "max_streams", kMaxStreams, 0);
  int error = avformat_open_input(&demuxer_, nullptr, input, &settings);
  av_dict_free(&settings);
  if (error == AVERROR(ENOMEM)) return AvStatus(error, name_);
  if (error < 0) return FormatError(name_, absl::StrCat("cannot be read as ", kind));

  // Probing decodes frames, so the sizes that the container tells are held against the limit first,
  // and what the stream itself may tell by the decoder's own bound.
  std::vector<AVDictionary*> probe(demuxer_->nb_streams, nullptr);
  for (unsigned i = 0; i < demuxer_->nb_streams; ++i) {
    av_dict_set_int(&probe[i], "max_pixels", DecoderMaxPixels(limits.max_pixels), 0);
    av_dict_set(&probe[i], "threads", "1", 0);
  }
  absl::Status status;
  for (unsigned i = 0; i < demuxer_->nb_streams; ++i) {
    status.Update(CheckPicture(*demuxer_->streams[i], limits));
  }
  error = 0;
  if (status.ok()) {
    error = avformat_find_stream_info(demuxer_, probe.empty() ? nullptr : probe.data());
  }
  for (AVDictionary*& dictionary : probe) av_dict_free(&dictionary);
  LTX_RETURN_IF_ERROR(status);
  if (error < 0) return FormatError(name_, absl::StrCat("cannot be read as ", kind));
  return absl::OkStatus();
}

absl::Status StreamDecoder::OpenCodec(AVMediaType type, const MediaLimits& limits) {
  for (unsigned i = 0; i < demuxer_->nb_streams && stream_ == nullptr; ++i) {
    const AVStream* const stream = demuxer_->streams[i];
    if (stream->codecpar->codec_type != type) continue;
    if ((stream->disposition & AV_DISPOSITION_ATTACHED_PIC) != 0) continue;
    stream_ = stream;
  }
  if (stream_ == nullptr) {
    return FormatError(name_, absl::StrCat("the file has no ", TypeName(type), " stream"));
  }
  LTX_RETURN_IF_ERROR(CheckPicture(*stream_, limits));
  const AVCodecID id = stream_->codecpar->codec_id;
  const AVCodec* const codec = avcodec_find_decoder(id);
  if (codec == nullptr) {
    return FormatError(name_, absl::StrCat("this build cannot decode its ", TypeName(type),
                                           " codec, ", avcodec_get_name(id)));
  }
  decoder_.reset(avcodec_alloc_context3(codec));
  if (decoder_ == nullptr) return AvStatus(AVERROR(ENOMEM), name_);
  int error = avcodec_parameters_to_context(decoder_.get(), stream_->codecpar);
  decoder_->pkt_timebase = stream_->time_base;
  decoder_->max_pixels = DecoderMaxPixels(limits.max_pixels);
  decoder_->thread_count = 1;
  if (error >= 0) error = avcodec_open2(decoder_.get(), codec, nullptr);
  if (error == AVERROR(ENOMEM)) return AvStatus(error, name_);
  if (error < 0) {
    return FormatError(name_, absl::StrCat("its ", TypeName(type), " stream cannot be decoded"));
  }
  return absl::OkStatus();
}

bool StreamDecoder::HasStream(AVMediaType type) const {
  for (unsigned i = 0; i < demuxer_->nb_streams; ++i) {
    const AVStream& stream = *demuxer_->streams[i];
    if (stream.codecpar->codec_type == type &&
        (stream.disposition & AV_DISPOSITION_ATTACHED_PIC) == 0) {
      return true;
    }
  }
  return false;
}

void StreamDecoder::SeekTo(double seconds) {
  const auto target = static_cast<int64_t>(seconds / av_q2d(stream_->time_base));
  if (av_seek_frame(demuxer_, stream_->index, target, AVSEEK_FLAG_BACKWARD) >= 0) {
    avcodec_flush_buffers(decoder_.get());
  }
}

double StreamDecoder::Seconds(const AVFrame& frame) const {
  if (frame.pts == AV_NOPTS_VALUE) return -std::numeric_limits<double>::infinity();
  return static_cast<double>(frame.pts) * av_q2d(stream_->time_base);
}

absl::Status StreamDecoder::Run(
    const std::function<absl::Status(const AVFrame& frame, bool* stop)>& sink) {
  const PacketPtr packet(av_packet_alloc());
  const FramePtr frame(av_frame_alloc());
  if (packet == nullptr || frame == nullptr) return AvStatus(AVERROR(ENOMEM), name_);
  bool stop = false;
  for (bool flushing = false; !flushing && !stop;) {
    int error = av_read_frame(demuxer_, packet.get());
    if (error == AVERROR(ENOMEM)) return AvStatus(error, name_);
    // Anything but the end, and what was cut short, is no whole file.
    if ((error < 0 && error != AVERROR_EOF) ||
        (error >= 0 && (packet->flags & AV_PKT_FLAG_CORRUPT) != 0)) {
      return FormatError(name_, "its data are damaged or truncated");
    }
    flushing = error < 0;
    if (!flushing && packet->stream_index != stream_->index) {
      av_packet_unref(packet.get());
      continue;
    }
    error = avcodec_send_packet(decoder_.get(), flushing ? nullptr : packet.get());
    av_packet_unref(packet.get());
    while (error >= 0 && !stop) {
      if (keep_going_) LTX_RETURN_IF_ERROR(keep_going_());
      error = avcodec_receive_frame(decoder_.get(), frame.get());
      if (error < 0) break;
      LTX_RETURN_IF_ERROR(sink(*frame, &stop));
      av_frame_unref(frame.get());
    }
    if (error == AVERROR(ENOMEM)) return AvStatus(error, name_);
    if (error < 0 && error != AVERROR(EAGAIN) && error != AVERROR_EOF) {
      return FormatError(name_, "its data are damaged");
    }
  }
  return absl::OkStatus();
}

}  // namespace ltx::media
