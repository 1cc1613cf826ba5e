#include "engine/media/mp4_writer.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/media/atomic_file.h"
#include "engine/media/av_handles.h"
#include "engine/media/pixel_convert.h"
#include "kernels/status_macros.h"

extern "C" {
#include <libavutil/channel_layout.h>
#include <libavutil/opt.h>
}

namespace ltx::media {
namespace {

/// LC AAC at the encoder's usual rate for a stereo pair, which is what a bit rate of 0 means to the
/// reference.
constexpr int64_t kAudioBitRate = 128000;

/// x264's AVX-512 routines (core 164) give other bytes for the same pictures, depending on where
/// the heap puts its buffers. Those for AVX2 do not, and cost nothing measurable here.
constexpr char kX264Parameters[] = "asm=avx2";

}  // namespace

int64_t AudioSamplesForFrames(int64_t frames, const pipeline::FrameRate& frame_rate,
                              int sample_rate) {
  // Exact integers: half rounds up.
  const int64_t numerator = frames * frame_rate.denominator() * sample_rate;
  const int64_t denominator = frame_rate.numerator();
  return (2 * numerator + denominator) / (2 * denominator);
}

struct Mp4Writer::State {
  State(Mp4Options writer_options, AtomicFile writer_file)
      : options(std::move(writer_options)), file(std::move(writer_file)) {}
  ~State() {
    if (muxer != nullptr) {
      if (muxer->pb != nullptr) avio_closep(&muxer->pb);
      avformat_free_context(muxer);
    }
  }

  absl::Status OpenVideo();
  absl::Status OpenAudio();
  absl::Status OpenMuxer();
  /// Frame, or the end if it is null; what comes out goes to `take`.
  template <typename Take>
  static absl::Status Encode(AVCodecContext* encoder, const AVFrame* frame, const Take& take);
  absl::Status AddPicture(const AVFrame* frame);
  absl::Status EncodeAudio(absl::Span<const int16_t> pcm, std::vector<PacketPtr>* packets) const;
  absl::Status Write(const AVCodecContext& encoder, const AVStream& stream, AVPacket* packet);

  const Mp4Options options;
  AtomicFile file;
  AVFormatContext* muxer = nullptr;
  CodecContextPtr video;
  CodecContextPtr audio;
  AVStream* video_stream = nullptr;
  AVStream* audio_stream = nullptr;
  int64_t frames_added = 0;
};

absl::Status Mp4Writer::State::OpenVideo() {
  const AVCodec* codec = avcodec_find_encoder_by_name("libx264");
  if (codec == nullptr) {
    return absl::FailedPreconditionError("the FFmpeg libraries here have no libx264 encoder");
  }
  video.reset(avcodec_alloc_context3(codec));
  const AVRational rate = {static_cast<int>(options.frame_rate.numerator()),
                           static_cast<int>(options.frame_rate.denominator())};
  video->width = options.width;
  video->height = options.height;
  video->pix_fmt = AV_PIX_FMT_YUV420P;
  video->time_base = av_inv_q(rate);
  video->framerate = rate;
  video->colorspace = AVCOL_SPC_BT709;
  video->color_range = AVCOL_RANGE_MPEG;
  video->thread_type = FF_THREAD_FRAME;
  video->thread_count = options.threads;
  video->bit_rate = 0;
  video->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
  av_opt_set(video->priv_data, "crf", absl::StrCat(options.crf).c_str(), 0);
  av_opt_set(video->priv_data, "preset", options.preset.c_str(), 0);
  av_opt_set(video->priv_data, "x264-params", kX264Parameters, 0);
  const int error = avcodec_open2(video.get(), codec, nullptr);
  if (error < 0) return AvStatus(error, "cannot open the H.264 encoder");
  return absl::OkStatus();
}

absl::Status Mp4Writer::State::OpenAudio() {
  const AVCodec* codec = avcodec_find_encoder_by_name("aac");
  if (codec == nullptr) {
    return absl::FailedPreconditionError("the FFmpeg libraries here have no aac encoder");
  }
  audio.reset(avcodec_alloc_context3(codec));
  audio->sample_fmt = AV_SAMPLE_FMT_FLTP;
  audio->sample_rate = options.audio_sample_rate;
  audio->ch_layout = AV_CHANNEL_LAYOUT_STEREO;
  audio->bit_rate = kAudioBitRate;
  audio->time_base = {1, options.audio_sample_rate};
  audio->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
  const int error = avcodec_open2(audio.get(), codec, nullptr);
  if (error < 0) return AvStatus(error, "cannot open the AAC encoder");
  return absl::OkStatus();
}

absl::Status Mp4Writer::State::OpenMuxer() {
  int error = avformat_alloc_output_context2(&muxer, nullptr, "mp4", file.temporary_path().c_str());
  if (error < 0) return AvStatus(error, "cannot open the mp4 muxer");
  const auto add_stream = [this](const AVCodecContext& encoder) {
    AVStream* stream = avformat_new_stream(muxer, nullptr);
    avcodec_parameters_from_context(stream->codecpar, &encoder);
    stream->time_base = encoder.time_base;
    return stream;
  };
  video_stream = add_stream(*video);
  video_stream->avg_frame_rate = video->framerate;
  if (audio != nullptr) audio_stream = add_stream(*audio);

  error = avio_open(&muxer->pb, file.temporary_path().c_str(), AVIO_FLAG_WRITE);
  if (error < 0) return AvStatus(error, absl::StrCat("cannot write ", file.temporary_path()));
  AVDictionary* settings = nullptr;
  av_dict_set(&settings, "movflags", "+faststart", 0);
  // Edit lists count in the movie's time scale: at the default of 1000 the end of the sound would
  // be rounded to a millisecond.
  if (audio != nullptr) av_dict_set_int(&settings, "movie_timescale", options.audio_sample_rate, 0);
  error = avformat_write_header(muxer, &settings);
  av_dict_free(&settings);
  if (error < 0) return AvStatus(error, "cannot write the mp4 header");
  return absl::OkStatus();
}

template <typename Take>
absl::Status Mp4Writer::State::Encode(AVCodecContext* encoder, const AVFrame* frame,
                                      const Take& take) {
  int error = avcodec_send_frame(encoder, frame);
  if (error < 0) return AvStatus(error, "cannot encode");
  while (true) {
    PacketPtr packet(av_packet_alloc());
    error = avcodec_receive_packet(encoder, packet.get());
    if (error == AVERROR(EAGAIN) || error == AVERROR_EOF) return absl::OkStatus();
    if (error < 0) return AvStatus(error, "cannot encode");
    LTX_RETURN_IF_ERROR(take(std::move(packet)));
  }
}

absl::Status Mp4Writer::State::AddPicture(const AVFrame* frame) {
  return Encode(video.get(), frame, [this](PacketPtr packet) {
    // libx264 leaves the duration open; every frame lasts one tick of the encoder's time base.
    packet->duration = 1;
    return Write(*video, *video_stream, packet.get());
  });
}

absl::Status Mp4Writer::State::Write(const AVCodecContext& encoder, const AVStream& stream,
                                     AVPacket* packet) {
  packet->stream_index = stream.index;
  av_packet_rescale_ts(packet, encoder.time_base, stream.time_base);
  const int error = av_interleaved_write_frame(muxer, packet);
  if (error < 0) return AvStatus(error, "cannot write the mp4");
  return absl::OkStatus();
}

absl::Status Mp4Writer::State::EncodeAudio(absl::Span<const int16_t> pcm,
                                           std::vector<PacketPtr>* packets) const {
  const auto keep = [packets](PacketPtr packet) {
    packets->push_back(std::move(packet));
    return absl::OkStatus();
  };
  const int64_t samples = static_cast<int64_t>(pcm.size() / 2);
  for (int64_t begin = 0; begin < samples; begin += audio->frame_size) {
    const int64_t count = std::min<int64_t>(audio->frame_size, samples - begin);
    const FramePtr frame(av_frame_alloc());
    frame->format = audio->sample_fmt;
    frame->sample_rate = audio->sample_rate;
    frame->nb_samples = static_cast<int>(count);
    frame->pts = begin;
    av_channel_layout_copy(&frame->ch_layout, &audio->ch_layout);
    const int error = av_frame_get_buffer(frame.get(), 0);
    if (error < 0) return AvStatus(error, "no memory for sound");
    for (int channel = 0; channel < 2; ++channel) {
      auto* plane = reinterpret_cast<float*>(frame->data[channel]);
      for (int64_t i = 0; i < count; ++i) {
        // The 16-bit detour is the reference's; 2^15 is how a decoder reads such samples.
        plane[i] = static_cast<float>(pcm[2 * (begin + i) + channel]) / 32768.0f;
      }
    }
    LTX_RETURN_IF_ERROR(Encode(audio.get(), frame.get(), keep));
  }
  return Encode(audio.get(), nullptr, keep);
}

Mp4Writer::Mp4Writer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Mp4Writer::~Mp4Writer() = default;

absl::StatusOr<std::unique_ptr<Mp4Writer>> Mp4Writer::Create(absl::string_view path,
                                                             const Mp4Options& options) {
  if (options.width <= 0 || options.height <= 0 || options.width % 2 != 0 ||
      options.height % 2 != 0) {
    return absl::InvalidArgumentError(absl::StrCat("an mp4 needs positive even sizes, not ",
                                                   options.width, " x ", options.height));
  }
  QuietLibav();
  LTX_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  auto state = std::make_unique<State>(options, std::move(file));
  LTX_RETURN_IF_ERROR(state->OpenVideo());
  if (options.audio_sample_rate > 0) LTX_RETURN_IF_ERROR(state->OpenAudio());
  LTX_RETURN_IF_ERROR(state->OpenMuxer());
  return std::unique_ptr<Mp4Writer>(new Mp4Writer(std::move(state)));
}

absl::Status Mp4Writer::AddFrames(absl::Span<const uint8_t> i420) {
  const int width = state_->options.width;
  const int height = state_->options.height;
  const size_t frame_bytes = static_cast<size_t>(width) * height * 3 / 2;
  if (i420.size() % frame_bytes != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(i420.size(), " bytes are no whole number of frames of ", frame_bytes));
  }
  for (size_t begin = 0; begin < i420.size(); begin += frame_bytes) {
    const FramePtr frame(av_frame_alloc());
    frame->format = AV_PIX_FMT_YUV420P;
    frame->width = width;
    frame->height = height;
    frame->pts = state_->frames_added;
    const int error = av_frame_get_buffer(frame.get(), 0);
    if (error < 0) return AvStatus(error, "no memory for a frame");
    const uint8_t* source = i420.data() + begin;
    for (int plane = 0; plane < 3; ++plane) {
      const int plane_width = plane == 0 ? width : width / 2;
      const int plane_height = plane == 0 ? height : height / 2;
      for (int y = 0; y < plane_height; ++y, source += plane_width) {
        std::memcpy(frame->data[plane] + static_cast<ptrdiff_t>(y) * frame->linesize[plane], source,
                    plane_width);
      }
    }
    LTX_RETURN_IF_ERROR(state_->AddPicture(frame.get()));
    ++state_->frames_added;
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Mp4Writer::Finish(absl::Span<const float> waveform) {
  State& state = *state_;
  if (state.frames_added == 0) return absl::FailedPreconditionError("no frame was added");
  if (waveform.size() % 2 != 0) {
    return absl::InvalidArgumentError("the waveform must have two channels");
  }
  // Beside the last pictures, which x264 has in its lookahead: a tenth of a second for five seconds
  // of sound. It is written behind them, so that the file is what it would be one after the other.
  std::vector<PacketPtr> sound;
  absl::Status sound_status;
  std::thread sound_encoder;
  if (state.audio != nullptr) {
    sound_encoder = std::thread([&] {
      std::vector<int16_t> pcm = WaveformToPcm16(waveform);
      pcm.resize(2 * AudioSamplesForFrames(state.frames_added, state.options.frame_rate,
                                           state.options.audio_sample_rate));
      sound_status = state.EncodeAudio(pcm, &sound);
    });
  }
  const absl::Status pictures = state.AddPicture(nullptr);
  if (sound_encoder.joinable()) sound_encoder.join();
  LTX_RETURN_IF_ERROR(pictures);
  LTX_RETURN_IF_ERROR(sound_status);
  for (const PacketPtr& packet : sound) {
    LTX_RETURN_IF_ERROR(state.Write(*state.audio, *state.audio_stream, packet.get()));
  }
  int error = av_write_trailer(state.muxer);
  if (error < 0) return AvStatus(error, "cannot finish the mp4");
  error = avio_closep(&state.muxer->pb);
  if (error < 0) return AvStatus(error, "cannot finish the mp4");
  struct stat info;
  const bool sized = fstat(state.file.descriptor(), &info) == 0;
  LTX_RETURN_IF_ERROR(state.file.Commit());
  return sized ? static_cast<int64_t>(info.st_size) : 0;
}

}  // namespace ltx::media
