#include "tests/golden/media_components.h"

#include <unistd.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/media/audio_reader.h"
#include "engine/media/clip_reader.h"
#include "engine/media/image_reader.h"
#include "engine/media/mp4_writer.h"
#include "engine/media/pixel_convert.h"
#include "engine/media/video_reader.h"
#include "engine/pipeline/frame_rate.h"
#include "kernels/dtype.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::golden {
namespace {

std::vector<int64_t> Widen(absl::Span<const uint8_t> bytes) {
  return std::vector<int64_t>(bytes.begin(), bytes.end());
}

/// What Device::ToByteFrames makes of frames [F, H, W, 3], under those names that are not empty.
absl::Status SetBytes(Device& device, absl::Span<const float> frames, const Shape& shape,
                      absl::string_view rgb_name, absl::string_view i420_name,
                      GoldenOutputs* outputs) {
  LTX_ASSIGN_OR_RETURN(const Tensor pixels, TensorFromFloats(device, frames, shape));
  LTX_ASSIGN_OR_RETURN(const ByteFrames bytes, device.ToByteFrames(pixels, MemoryOwner::kMedia));
  const auto set = [&](absl::string_view name, const Tensor& form) -> absl::Status {
    if (name.empty()) return absl::OkStatus();
    LTX_ASSIGN_OR_RETURN(const std::vector<uint8_t> values, ToBytes(device, form));
    outputs->SetInts(name, form.shape(), Widen(values));
    return absl::OkStatus();
  };
  LTX_RETURN_IF_ERROR(set(rgb_name, bytes.rgb));
  return set(i420_name, bytes.i420);
}

absl::Status RunNormalize(const GoldenCase& golden, const GoldenContext& context,
                          GoldenOutputs* outputs) {
  LTX_ASSIGN_OR_RETURN(const std::vector<uint8_t> bytes, golden.InputBytes("u8"));
  std::vector<float> normalized(bytes.size());
  media::NormalizeBytes(bytes, absl::MakeSpan(normalized));
  const Shape shape = {static_cast<int64_t>(bytes.size())};
  outputs->SetFloats("normalized", shape, normalized);
  for (float& value : normalized) value = RoundToBFloat16(value);
  outputs->SetFloats("normalized_bf16", shape, normalized);

  LTX_ASSIGN_OR_RETURN(std::vector<float> latent_range, golden.InputFloats("z"));
  LTX_ASSIGN_OR_RETURN(const Shape z_shape, golden.InputShape("z"));
  media::DenormalizeUnit(latent_range, absl::MakeSpan(latent_range));
  outputs->SetFloats("from_vae", z_shape, latent_range);

  LTX_ASSIGN_OR_RETURN(const std::vector<float> fchw, golden.InputFloats("rgb_fchw"));
  LTX_ASSIGN_OR_RETURN(const Shape in, golden.InputShape("rgb_fchw"));
  const int64_t pixels = in.dim(2) * in.dim(3);
  std::vector<float> interleaved(fchw.size());
  for (int64_t frame = 0; frame < in.dim(0); ++frame) {
    for (int64_t channel = 0; channel < 3; ++channel) {
      for (int64_t i = 0; i < pixels; ++i) {
        interleaved[(frame * pixels + i) * 3 + channel] = fchw[(frame * 3 + channel) * pixels + i];
      }
    }
  }
  return SetBytes(*context.device, interleaved, {in.dim(0), in.dim(2), in.dim(3), 3}, "rgb24", "",
                  outputs);
}

absl::Status RunPcm16(const GoldenCase& golden, const GoldenContext&, GoldenOutputs* outputs) {
  LTX_ASSIGN_OR_RETURN(const std::vector<float> waveform, golden.InputFloats("waveform"));
  const std::vector<int16_t> pcm = media::WaveformToPcm16(waveform);
  outputs->SetInts("pcm", {static_cast<int64_t>(pcm.size() / 2), 2},
                   std::vector<int64_t>(pcm.begin(), pcm.end()));
  return absl::OkStatus();
}

/// Planes of all frames of `rgb` [F, H, W, 3] as y [F, 1, H, W] and uv [F, 2, H/2, W/2].
absl::Status SetPlanes(absl::Span<const float> rgb, const Shape& shape, media::YuvMatrix matrix,
                       media::YuvRange range, absl::string_view y_name, absl::string_view uv_name,
                       GoldenOutputs* outputs) {
  const int64_t frames = shape.dim(0);
  const int64_t height = shape.dim(1);
  const int64_t width = shape.dim(2);
  const size_t values = height * width * 3;
  std::vector<float> y;
  std::vector<float> uv;
  for (int64_t frame = 0; frame < frames; ++frame) {
    media::Yuv420Planes planes;
    LTX_RETURN_IF_ERROR(media::RgbToYuv420(rgb.subspan(frame * values, values), width, height,
                                           matrix, range, &planes));
    y.insert(y.end(), planes.y.begin(), planes.y.end());
    uv.insert(uv.end(), planes.cb.begin(), planes.cb.end());
    uv.insert(uv.end(), planes.cr.begin(), planes.cr.end());
  }
  outputs->SetFloats(y_name, {frames, 1, height, width}, y);
  outputs->SetFloats(uv_name, {frames, 2, height / 2, width / 2}, uv);
  return absl::OkStatus();
}

absl::Status RunYuv420(const GoldenCase& golden, const GoldenContext& context,
                       GoldenOutputs* outputs) {
  LTX_ASSIGN_OR_RETURN(const std::vector<float> rgb, golden.InputFloats("rgb"));
  LTX_ASSIGN_OR_RETURN(const Shape shape, golden.InputShape("rgb"));
  using media::YuvMatrix;
  using media::YuvRange;
  LTX_RETURN_IF_ERROR(
      SetPlanes(rgb, shape, YuvMatrix::kBt709, YuvRange::kLimited, "stage.y", "stage.uv", outputs));
  LTX_RETURN_IF_ERROR(SetPlanes(rgb, shape, YuvMatrix::kBt709, YuvRange::kFull, "y_709_full",
                                "uv_709_full", outputs));
  LTX_RETURN_IF_ERROR(SetPlanes(rgb, shape, YuvMatrix::kBt2020, YuvRange::kLimited,
                                "y_2020_limited", "uv_2020_limited", outputs));
  LTX_RETURN_IF_ERROR(SetBytes(*context.device, rgb, shape, "", "i420", outputs));
  if (!golden.HasInput("rgb_bf16")) return absl::OkStatus();
  LTX_ASSIGN_OR_RETURN(const std::vector<float> rgb_bf16, golden.InputFloats("rgb_bf16"));
  return SetBytes(*context.device, rgb_bf16, shape, "", "i420_from_bf16", outputs);
}

absl::Status RunEncodeVideo(const GoldenCase& golden, const GoldenContext& context,
                            GoldenOutputs* outputs) {
  LTX_ASSIGN_OR_RETURN(const std::vector<float> rgb, golden.InputFloats("rgb"));
  LTX_ASSIGN_OR_RETURN(const Shape shape, golden.InputShape("rgb"));
  LTX_ASSIGN_OR_RETURN(const std::vector<float> waveform, golden.InputFloats("waveform"));
  media::Mp4Options options;
  options.height = static_cast<int>(shape.dim(1));
  options.width = static_cast<int>(shape.dim(2));
  LTX_ASSIGN_OR_RETURN(options.frame_rate,
                       pipeline::FrameRate::FromDouble(golden.params().value("fps", 24.0)));
  options.crf = golden.params().value("crf", options.crf);
  options.preset = golden.params().value("preset", options.preset);
  options.audio_sample_rate = golden.params().value("audio_sample_rate", 48000);

  const char* folder = std::getenv("TMPDIR");
  const std::string path =
      absl::StrCat(folder == nullptr ? "/tmp" : folder, "/golden_encode_", getpid(), ".mp4");
  LTX_ASSIGN_OR_RETURN(const auto writer, media::Mp4Writer::Create(path, options));
  Device& device = *context.device;
  LTX_ASSIGN_OR_RETURN(const Tensor pixels, TensorFromFloats(device, rgb, shape));
  LTX_ASSIGN_OR_RETURN(const ByteFrames bytes, device.ToByteFrames(pixels, MemoryOwner::kMedia));
  LTX_ASSIGN_OR_RETURN(const std::vector<uint8_t> i420, ToBytes(device, bytes.i420));
  LTX_RETURN_IF_ERROR(writer->AddFrames(i420));
  LTX_RETURN_IF_ERROR(writer->Finish(waveform).status());
  absl::StatusOr<media::DecodedClip> clip = media::ReadClip(path);
  unlink(path.c_str());
  LTX_RETURN_IF_ERROR(clip.status());

  // Codes of color space and range as in FFmpeg: 1 is BT.709, and 1 is limited.
  const std::map<std::string, int64_t> known = {
      {"codec_is_h264", clip->video_codec == "h264"},
      {"width", clip->width},
      {"height", clip->height},
      {"frames", clip->num_frames},
      {"colorspace", clip->color_space == "bt709" ? 1 : -1},
      {"color_range", clip->color_range == "tv" ? 1 : -1},
      {"audio_rate", clip->audio_sample_rate},
      {"audio_channels", clip->audio_channels},
      {"audio_is_aac", clip->audio_codec == "aac"}};
  std::vector<int64_t> meta;
  for (const auto& name : golden.params()["order"]) {
    const auto found = known.find(name.get<std::string>());
    if (found == known.end()) {
      return absl::UnimplementedError(absl::StrCat("unknown property ", name.get<std::string>()));
    }
    meta.push_back(found->second);
  }
  outputs->SetInts("meta", {static_cast<int64_t>(meta.size())}, meta);
  const absl::Span<const uint8_t> first =
      absl::MakeConstSpan(clip->frames).first(clip->frames.size() / clip->num_frames);
  outputs->SetInts("first_frame", {clip->height, clip->width, 3}, Widen(first));
  return absl::OkStatus();
}

absl::Status RunImageDecode(const GoldenCase& golden, const GoldenContext&,
                            GoldenOutputs* outputs) {
  for (const std::string& name : golden.InputNames()) {
    LTX_ASSIGN_OR_RETURN(const std::vector<uint8_t> file, golden.InputBytes(name));
    LTX_ASSIGN_OR_RETURN(const media::DecodedImage image, media::DecodeImage(file, name));
    outputs->SetInts(name, {image.height, image.width, 3}, Widen(image.rgb));
    // Information only: what the reference makes of the same file.
    if (name == "grey16_png") {
      outputs->SetInts("stage.grey16_png_reference", {image.height, image.width, 3},
                       Widen(image.rgb));
    }
  }
  return absl::OkStatus();
}

/// Frames of a window, every `stride`-th of them, as [F, H, W, 3].
absl::Status SetFrames(absl::Span<const uint8_t> file, absl::string_view name,
                       const media::VideoWindow& window, int64_t stride, GoldenOutputs* outputs) {
  std::vector<int64_t> kept;
  int64_t index = 0;
  LTX_ASSIGN_OR_RETURN(const media::VideoFacts facts,
                       media::ReadVideo(file, name, {}, window, [&](absl::Span<const uint8_t> rgb) {
                         if (index++ % stride == 0) kept.insert(kept.end(), rgb.begin(), rgb.end());
                         return absl::OkStatus();
                       }));
  outputs->SetInts(name, {(index + stride - 1) / stride, facts.height, facts.width, 3}, kept);
  return absl::OkStatus();
}

absl::Status RunVideoDecode(const GoldenCase& golden, const GoldenContext&,
                            GoldenOutputs* outputs) {
  // Every fourth frame of the whole clips is stored.
  constexpr int64_t kStride = 4;
  for (const std::string& name : golden.InputNames()) {
    LTX_ASSIGN_OR_RETURN(const std::vector<uint8_t> file, golden.InputBytes(name));
    LTX_RETURN_IF_ERROR(SetFrames(file, absl::StrCat(name, "_all"), {}, kStride, outputs));
    if (name != "untagged") continue;
    const nlohmann::json& windows = golden.params()["windows"];
    media::VideoWindow by_time;
    by_time.start_seconds = windows["time"][0].get<double>();
    by_time.duration_seconds = windows["time"][1].get<double>();
    LTX_RETURN_IF_ERROR(SetFrames(file, "untagged_time", by_time, 1, outputs));
    media::VideoWindow by_frames;
    by_frames.first_frame = windows["frames"][0].get<int64_t>();
    by_frames.max_frames = windows["frames"][1].get<int64_t>();
    LTX_RETURN_IF_ERROR(SetFrames(file, "untagged_frames", by_frames, 1, outputs));
    LTX_ASSIGN_OR_RETURN(const media::VideoFacts facts,
                         media::ReadVideo(file, name, {}, {}, nullptr));
    outputs->SetInts("untagged_meta", {3}, {facts.frames, facts.height, facts.width});
    outputs->SetDoubles("untagged_fps", {1},
                        {static_cast<double>(facts.frame_rate_numerator) /
                         static_cast<double>(facts.frame_rate_denominator)});
  }
  return absl::OkStatus();
}

absl::Status RunAudioDecode(const GoldenCase& golden, const GoldenContext&,
                            GoldenOutputs* outputs) {
  const auto set = [&](const std::string& input, const std::string& output,
                       const media::AudioWindow& window) -> absl::Status {
    LTX_ASSIGN_OR_RETURN(const std::vector<uint8_t> file, golden.InputBytes(input));
    LTX_ASSIGN_OR_RETURN(const media::DecodedAudio audio,
                         media::DecodeAudio(file, input, {}, window));
    outputs->SetFloats(output, {1, audio.facts.channels, audio.facts.samples}, audio.samples);
    return absl::OkStatus();
  };
  for (const std::string& input : golden.InputNames()) {
    absl::string_view name = input;
    if (absl::ConsumeSuffix(&name, "_wav")) LTX_RETURN_IF_ERROR(set(input, std::string(name), {}));
  }
  for (const auto& [output, window] : golden.params()["windows"].items()) {
    absl::string_view name = output;
    absl::ConsumeSuffix(&name, "_window");
    LTX_RETURN_IF_ERROR(set(absl::StrCat(name, "_wav"), output,
                            {window[0].get<double>(), window[1].get<double>()}));
  }
  LTX_ASSIGN_OR_RETURN(const std::vector<float> waveform, golden.InputFloats("written_waveform"));
  const std::vector<int16_t> pcm = media::WaveformToPcm16(waveform);
  outputs->SetInts("written_pcm", {static_cast<int64_t>(pcm.size() / 2), 2},
                   std::vector<int64_t>(pcm.begin(), pcm.end()));
  return absl::OkStatus();
}

}  // namespace

void RegisterMediaComponents(ComponentRegistry* registry) {
  registry->emplace("media.normalize", RunNormalize);
  registry->emplace("media.pcm16", RunPcm16);
  registry->emplace("media.yuv420p_bt709", RunYuv420);
  registry->emplace("media.encode_video", RunEncodeVideo);
  registry->emplace("media.image_decode", RunImageDecode);
  registry->emplace("media.video_decode", RunVideoDecode);
  registry->emplace("media.audio_decode", RunAudioDecode);
}

}  // namespace ltx::golden
