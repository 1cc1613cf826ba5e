#include "engine/media/audio_reader.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "engine/media/stream_decoder.h"
#include "kernels/status_macros.h"

namespace ltx::media {
namespace {

/// 7.1 is the widest layout in use.
constexpr int kMaxChannels = 8;

/// std::nearbyint rounds half to even in the default mode, as the reference's round() does.
int64_t RoundHalfEven(double value) { return static_cast<int64_t>(std::nearbyint(value)); }

template <typename T>
T Load(const uint8_t* data, int64_t index) {
  T value;
  std::memcpy(&value, data + index * sizeof(T), sizeof(T));
  return value;
}

/// Sample `index` of a plane or of interleaved samples; `packed` is the packed form of the format.
float Sample(const uint8_t* data, int64_t index, AVSampleFormat packed) {
  switch (packed) {
    case AV_SAMPLE_FMT_U8:
      return (static_cast<float>(data[index]) - 128.0f) / 128.0f;
    case AV_SAMPLE_FMT_S16:
      return static_cast<float>(Load<int16_t>(data, index)) / 32768.0f;
    case AV_SAMPLE_FMT_S32:
      return static_cast<float>(Load<int32_t>(data, index)) / 2147483648.0f;
    case AV_SAMPLE_FMT_FLT:
      return Load<float>(data, index);
    default:
      return static_cast<float>(Load<double>(data, index));
  }
}

bool IsKnown(AVSampleFormat packed) {
  return packed == AV_SAMPLE_FMT_U8 || packed == AV_SAMPLE_FMT_S16 || packed == AV_SAMPLE_FMT_S32 ||
         packed == AV_SAMPLE_FMT_FLT || packed == AV_SAMPLE_FMT_DBL;
}

/// Reads one sound.
class Reader {
 public:
  Reader(absl::string_view name, const MediaLimits& limits, const AudioWindow& window, bool keep)
      : name_(name), limits_(limits), window_(window), keep_(keep) {}

  absl::StatusOr<DecodedAudio> Read(absl::Span<const uint8_t> file) {
    LTX_ASSIGN_OR_RETURN(const auto decoder,
                         StreamDecoder::Open(file, AVMEDIA_TYPE_AUDIO, name_, limits_));
    result_.facts.codec = avcodec_get_name(decoder->codec().codec_id);
    if (window_.start > 0) decoder->SeekTo(window_.start);
    LTX_RETURN_IF_ERROR(decoder->Run([&](const AVFrame& frame, bool* stop) {
      return Take(frame, decoder->Seconds(frame), stop);
    }));
    return Finish();
  }

 private:
  bool whole() const { return window_.start <= 0 && std::isinf(window_.duration); }

  absl::Status Take(const AVFrame& frame, double start, bool* stop) {
    AudioFacts& facts = result_.facts;
    const int channels = frame.ch_layout.nb_channels;
    const auto format = static_cast<AVSampleFormat>(frame.format);
    const AVSampleFormat packed = av_get_packed_sample_fmt(format);
    if (facts.channels == 0) {
      facts.channels = channels;
      facts.sample_rate = frame.sample_rate;
      if (channels > kMaxChannels) return LimitError(name_, "channels", channels, kMaxChannels);
      if (channels < 1 || frame.sample_rate < 1 || !IsKnown(packed)) {
        return FormatError(name_, "its samples have no form that is read");
      }
      planes_.resize(channels);
    }
    if (channels != facts.channels || frame.sample_rate != facts.sample_rate || !IsKnown(packed)) {
      return FormatError(name_, "the sound's format changes");
    }
    const double end = start + static_cast<double>(frame.nb_samples) / frame.sample_rate;
    if (!whole()) {
      if (std::isinf(start) || end < window_.start) return absl::OkStatus();
      *stop = start > window_.start + window_.duration;
      if (*stop) return absl::OkStatus();
    }
    if (facts.samples == 0) first_start_ = start;
    facts.samples += frame.nb_samples;
    const double seconds = static_cast<double>(facts.samples) / facts.sample_rate;
    if (seconds > limits_.max_seconds) {
      return LimitError(name_, "seconds of sound", seconds, limits_.max_seconds);
    }
    if (keep_) Keep(frame, format, packed);
    return absl::OkStatus();
  }

  void Keep(const AVFrame& frame, AVSampleFormat format, AVSampleFormat packed) {
    const bool planar = av_sample_fmt_is_planar(format) == 1;
    const auto channels = static_cast<int64_t>(planes_.size());
    for (int64_t channel = 0; channel < channels; ++channel) {
      const uint8_t* const data = frame.extended_data[planar ? channel : 0];
      for (int64_t i = 0; i < frame.nb_samples; ++i) {
        planes_[channel].push_back(Sample(data, planar ? i : i * channels + channel, packed));
      }
    }
  }

  absl::StatusOr<DecodedAudio> Finish() {
    AudioFacts& facts = result_.facts;
    if (!whole() && facts.samples > 0) {
      const int64_t skip =
          std::max<int64_t>(0, RoundHalfEven((window_.start - first_start_) * facts.sample_rate));
      int64_t count = std::max<int64_t>(0, facts.samples - skip);
      if (std::isfinite(window_.duration)) {
        count = std::min(count, RoundHalfEven(window_.duration * facts.sample_rate));
      }
      for (std::vector<float>& plane : planes_) {
        plane.erase(plane.begin(), plane.begin() + std::min<int64_t>(skip, facts.samples));
        plane.resize(count);
      }
      facts.samples = count;
    }
    if (facts.samples == 0) return FormatError(name_, "the file holds no sound in that window");
    facts.seconds = static_cast<double>(facts.samples) / facts.sample_rate;
    for (const std::vector<float>& plane : planes_) {
      result_.samples.insert(result_.samples.end(), plane.begin(), plane.end());
    }
    return std::move(result_);
  }

  const std::string name_;
  const MediaLimits limits_;
  const AudioWindow window_;
  const bool keep_;
  DecodedAudio result_;
  std::vector<std::vector<float>> planes_;
  double first_start_ = 0;
};

}  // namespace

absl::StatusOr<DecodedAudio> DecodeAudio(absl::Span<const uint8_t> file, absl::string_view name,
                                         const MediaLimits& limits, const AudioWindow& window) {
  return Reader(name, limits, window, /*keep=*/true).Read(file);
}

absl::StatusOr<AudioFacts> InspectAudio(absl::Span<const uint8_t> file, absl::string_view name,
                                        const MediaLimits& limits) {
  LTX_ASSIGN_OR_RETURN(const DecodedAudio decoded,
                       Reader(name, limits, {}, /*keep=*/false).Read(file));
  return decoded.facts;
}

}  // namespace ltx::media
