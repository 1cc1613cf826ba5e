#include "engine/media/clip_reader.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/media/av_handles.h"
#include "engine/media/rgb_converter.h"
#include "kernels/status_macros.h"

extern "C" {
#include <libavutil/channel_layout.h>
#include <libavutil/pixdesc.h>
}

namespace ltx::media {
namespace {

struct DemuxerCloser {
  void operator()(AVFormatContext* context) const { avformat_close_input(&context); }
};
using DemuxerPtr = std::unique_ptr<AVFormatContext, DemuxerCloser>;

absl::StatusOr<DemuxerPtr> OpenDemuxer(const std::string& path) {
  AVDictionary* settings = nullptr;
  av_dict_set(&settings, "protocol_whitelist", "file", 0);
  av_dict_set(&settings, "format_whitelist", "mov,mp4,m4a,3gp,3g2,mj2,png_pipe,wav", 0);
  AVFormatContext* context = nullptr;
  int error = avformat_open_input(&context, path.c_str(), nullptr, &settings);
  av_dict_free(&settings);
  if (error == AVERROR(ENOENT)) return absl::NotFoundError(absl::StrCat("no file ", path));
  if (error < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot read ", path, " as mp4, png or wav: ", AvStatus(error, "libav").message()));
  }
  DemuxerPtr demuxer(context);
  error = avformat_find_stream_info(demuxer.get(), nullptr);
  if (error < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read ", path, ": ", AvStatus(error, "libav").message()));
  }
  return demuxer;
}

absl::StatusOr<CodecContextPtr> OpenDecoder(const AVStream& stream, const std::string& path,
                                            const ClipLimits& limits) {
  const AVCodec* codec = avcodec_find_decoder(stream.codecpar->codec_id);
  if (codec == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(path, " uses the codec ",
                                                   avcodec_get_name(stream.codecpar->codec_id),
                                                   ", which this build cannot decode"));
  }
  CodecContextPtr decoder(avcodec_alloc_context3(codec));
  avcodec_parameters_to_context(decoder.get(), stream.codecpar);
  decoder->pkt_timebase = stream.time_base;
  decoder->max_pixels = limits.max_pixels;
  const int error = avcodec_open2(decoder.get(), codec, nullptr);
  if (error < 0) return AvStatus(error, absl::StrCat("cannot decode ", path));
  return decoder;
}

/// Collects what the two decoders yield.
class Collector {
 public:
  Collector(std::string path, const ClipLimits& limits, DecodedClip* clip)
      : path_(std::move(path)), limits_(limits), clip_(clip) {}

  absl::Status AddPicture(const AVFrame& frame);
  absl::Status AddSound(const AVFrame& frame);
  /// Joins the channels; `expected` samples or fewer are kept.
  void FinishSound(int64_t expected);

 private:
  const std::string path_;
  const ClipLimits limits_;
  DecodedClip* const clip_;
  RgbConverter converter_{SWS_BILINEAR};
  std::vector<std::vector<float>> channels_;
};

absl::Status Collector::AddPicture(const AVFrame& frame) {
  if (clip_->num_frames == 0) {
    clip_->width = frame.width;
    clip_->height = frame.height;
    const auto format = static_cast<AVPixelFormat>(frame.format);
    clip_->pixel_format = av_get_pix_fmt_name(format);
    clip_->color_space = av_color_space_name(frame.colorspace);
    clip_->color_range = av_color_range_name(frame.color_range);
  } else if (frame.width != clip_->width || frame.height != clip_->height) {
    return absl::InvalidArgumentError(absl::StrCat(path_, ": the picture size changes"));
  }
  const size_t bytes = static_cast<size_t>(clip_->width) * clip_->height * 3;
  if (clip_->num_frames >= limits_.max_frames ||
      static_cast<int64_t>(clip_->frames.size() + bytes) > limits_.max_frame_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(path_, " has more than ", clip_->num_frames,
                                                     " frames of ", clip_->width, " x ",
                                                     clip_->height, ", above the limit"));
  }
  clip_->frames.resize(clip_->frames.size() + bytes);
  const absl::Status converted =
      converter_.Convert(frame, absl::MakeSpan(clip_->frames).last(bytes));
  if (!converted.ok()) {
    return absl::Status(converted.code(), absl::StrCat(path_, ": ", converted.message()));
  }
  ++clip_->num_frames;
  return absl::OkStatus();
}

absl::Status Collector::AddSound(const AVFrame& frame) {
  const bool planar_float = frame.format == AV_SAMPLE_FMT_FLTP;
  if (!planar_float && frame.format != AV_SAMPLE_FMT_S16) {
    return absl::InvalidArgumentError(absl::StrCat(path_, ": unexpected sample format"));
  }
  const int channels = frame.ch_layout.nb_channels;
  if (channels_.empty()) {
    channels_.resize(channels);
    clip_->audio_channels = channels;
    clip_->audio_sample_rate = frame.sample_rate;
  } else if (channels != clip_->audio_channels || frame.sample_rate != clip_->audio_sample_rate) {
    return absl::InvalidArgumentError(absl::StrCat(path_, ": the sound format changes"));
  }
  if (channels_[0].size() + frame.nb_samples > limits_.max_audio_seconds * frame.sample_rate) {
    return absl::ResourceExhaustedError(absl::StrCat(
        path_, " has more than ", limits_.max_audio_seconds, " s of sound, above the limit"));
  }
  for (int channel = 0; channel < channels; ++channel) {
    if (planar_float) {
      const auto* samples = reinterpret_cast<const float*>(frame.extended_data[channel]);
      channels_[channel].insert(channels_[channel].end(), samples, samples + frame.nb_samples);
      continue;
    }
    const auto* samples = reinterpret_cast<const int16_t*>(frame.extended_data[0]);
    for (int i = 0; i < frame.nb_samples; ++i) {
      channels_[channel].push_back(static_cast<float>(samples[i * channels + channel]) / 32768.0f);
    }
  }
  return absl::OkStatus();
}

void Collector::FinishSound(int64_t expected) {
  for (std::vector<float>& channel : channels_) {
    if (static_cast<int64_t>(channel.size()) > expected) channel.resize(expected);
    clip_->waveform.insert(clip_->waveform.end(), channel.begin(), channel.end());
  }
}

}  // namespace

absl::StatusOr<DecodedClip> ReadClip(absl::string_view path_view, const ClipLimits& limits) {
  QuietLibav();
  const std::string path(path_view);
  LTX_ASSIGN_OR_RETURN(const DemuxerPtr demuxer, OpenDemuxer(path));
  const int video_index =
      av_find_best_stream(demuxer.get(), AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
  const int audio_index =
      av_find_best_stream(demuxer.get(), AVMEDIA_TYPE_AUDIO, -1, -1, nullptr, 0);
  if (video_index < 0 && audio_index < 0) {
    return absl::InvalidArgumentError(absl::StrCat(path, " has neither picture nor sound"));
  }
  CodecContextPtr video, audio;
  if (video_index >= 0) {
    LTX_ASSIGN_OR_RETURN(video, OpenDecoder(*demuxer->streams[video_index], path, limits));
  }
  if (audio_index >= 0) {
    LTX_ASSIGN_OR_RETURN(audio, OpenDecoder(*demuxer->streams[audio_index], path, limits));
  }

  DecodedClip clip;
  if (video != nullptr) {
    const AVRational rate = demuxer->streams[video_index]->avg_frame_rate;
    clip.video_codec = avcodec_get_name(video->codec_id);
    clip.frame_rate_numerator = rate.num;
    clip.frame_rate_denominator = std::max(rate.den, 1);
  }
  if (audio != nullptr) clip.audio_codec = avcodec_get_name(audio->codec_id);

  Collector collector(path, limits, &clip);
  const FramePtr frame(av_frame_alloc());
  const auto decode = [&](AVCodecContext* decoder, const AVPacket* packet) -> absl::Status {
    int error = avcodec_send_packet(decoder, packet);
    if (error < 0 && error != AVERROR_EOF) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, " is damaged: ", AvStatus(error, "libav").message()));
    }
    while ((error = avcodec_receive_frame(decoder, frame.get())) >= 0) {
      LTX_RETURN_IF_ERROR(decoder == video.get() ? collector.AddPicture(*frame)
                                                 : collector.AddSound(*frame));
      av_frame_unref(frame.get());
    }
    if (error == AVERROR(EAGAIN) || error == AVERROR_EOF) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is damaged: ", AvStatus(error, "libav").message()));
  };

  const PacketPtr packet(av_packet_alloc());
  while (av_read_frame(demuxer.get(), packet.get()) >= 0) {
    absl::Status status;
    if (packet->stream_index == video_index) status = decode(video.get(), packet.get());
    if (packet->stream_index == audio_index) status = decode(audio.get(), packet.get());
    av_packet_unref(packet.get());
    LTX_RETURN_IF_ERROR(status);
  }
  if (video != nullptr) {
    LTX_RETURN_IF_ERROR(decode(video.get(), nullptr));
    if (clip.num_frames == 0) {
      return absl::InvalidArgumentError(absl::StrCat(path, " holds no decodable frame"));
    }
  }
  if (audio != nullptr) {
    LTX_RETURN_IF_ERROR(decode(audio.get(), nullptr));
    const AVStream& stream = *demuxer->streams[audio_index];
    // A decoder yields whole packets; the track's duration says where the sound ends inside the
    // last one.
    const int64_t expected = stream.duration > 0 ? av_rescale_q(stream.duration, stream.time_base,
                                                                {1, stream.codecpar->sample_rate})
                                                 : INT64_MAX;
    collector.FinishSound(expected);
  }
  return clip;
}

}  // namespace ltx::media
