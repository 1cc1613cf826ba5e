#include "tests/golden/audio_components.h"

#include <array>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/audio_vae/anti_aliased_activation.h"
#include "engine/audio_vae/audio_decoder.h"
#include "engine/audio_vae/decode_audio.h"
#include "engine/audio_vae/hann_upsampler.h"
#include "engine/audio_vae/latent_grid.h"
#include "engine/audio_vae/resampling_filters.h"
#include "engine/audio_vae/vocoder.h"
#include "engine/checkpoint/audio_config.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/stage_observer.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::golden {
namespace {

using audio_vae::AntiAliasedActivation;
using audio_vae::AudioDecoder;
using audio_vae::Vocoder;

checkpoint::WeightLoader Loader(const GoldenCase& golden, Device& device, DType compute) {
  return {&device, &golden.weights(), compute, MemoryOwner::kWeightsAudioVae};
}

/// The dtype to compute a named input in: its own, if that is bf16.
absl::StatusOr<DType> CaseDType(const GoldenCase& golden, absl::string_view name) {
  LTX_ASSIGN_OR_RETURN(const DType stored, golden.InputDType(name));
  return stored == DType::kBF16 ? DType::kBF16 : DType::kF32;
}

/// Signals and maps of the engine are channels-last, the cases are channels-first.
absl::StatusOr<Tensor> ChannelsFirst(Device& device, const Tensor& x) {
  if (x.rank() == 3) return device.Permute(x, {0, 2, 1});
  return device.Permute(x, {0, 3, 1, 2});
}

absl::StatusOr<Tensor> ChannelsLast(Device& device, const Tensor& x) {
  if (x.rank() == 3) return device.Permute(x, {0, 2, 1});
  return device.Permute(x, {0, 2, 3, 1});
}

/// Records stages as outputs `stage.<name>`; `status` gets the first failure.
class StageRecorder {
 public:
  StageRecorder(Device& device, GoldenOutputs* outputs) : device_(device), outputs_(outputs) {}

  StageObserver observer() {
    return [this](absl::string_view name, const Tensor& value) {
      if (status_.ok()) status_ = Record(name, value);
    };
  }
  const absl::Status& status() const { return status_; }

 private:
  absl::Status Record(absl::string_view name, const Tensor& value) {
    Tensor shaped = value;
    if (name == "bwe_mel") {
      // [B, frames, side * bins] of the engine is [B, side, frames, bins] in the cases.
      LTX_ASSIGN_OR_RETURN(shaped, audio_vae::UnpatchifyAudio(device_, value, 2));
    } else {
      LTX_ASSIGN_OR_RETURN(shaped, ChannelsFirst(device_, value));
    }
    return outputs_->Set(device_, absl::StrCat("stage.", name), shaped);
  }

  Device& device_;
  GoldenOutputs* const outputs_;
  absl::Status status_;
};

/// The up-sampled signal inside the fused activation: its two phases are what comes out of it with
/// a down filter that passes one sample, and with no periodic term unless `inverse_beta` says so.
absl::StatusOr<Tensor> InsideActivation(Device& device, const AntiAliasedActivation& activation,
                                        const Tensor& x, const Tensor& inverse_beta) {
  std::vector<Tensor> phases;
  // The down filter reads u[2 i + k - 5] with its tap k.
  for (const int tap : {5, 6}) {
    std::vector<float> pick(audio_vae::kActivationFilterTaps, 0.0f);
    pick[tap] = 1.0f;
    LTX_ASSIGN_OR_RETURN(const Tensor filter,
                         TensorFromFloats(device, pick, Shape({audio_vae::kActivationFilterTaps})));
    LTX_ASSIGN_OR_RETURN(Tensor phase, device.AntiAliasedSnake(x, activation.up_filter(), filter,
                                                               activation.alpha(), inverse_beta));
    LTX_ASSIGN_OR_RETURN(phase, phase.Reshape(Shape({x.dim(0), x.dim(1), 1, x.dim(2)})));
    phases.push_back(std::move(phase));
  }
  LTX_ASSIGN_OR_RETURN(const Tensor both, device.Concat(phases, 2));
  return both.Reshape(Shape({x.dim(0), 2 * x.dim(1), x.dim(2)}));
}

absl::Status RunActivationInput(const GoldenCase& golden, Device& device, const std::string& name,
                                GoldenOutputs* outputs) {
  const bool beta = absl::StartsWith(name, "snakebeta");
  LTX_ASSIGN_OR_RETURN(Tensor x, golden.Input(device, name));
  LTX_ASSIGN_OR_RETURN(x, ChannelsLast(device, x));
  LTX_ASSIGN_OR_RETURN(
      const AntiAliasedActivation activation,
      AntiAliasedActivation::Load(
          Loader(golden, device, DType::kF32).Sub(beta ? "snakebeta." : "snake."), x.dim(2),
          beta ? AntiAliasedActivation::Kind::kSnakeBeta : AntiAliasedActivation::Kind::kSnake));
  LTX_ASSIGN_OR_RETURN(const Tensor none, ZeroTensor(device, Shape({x.dim(2)}), DType::kF32));
  LTX_ASSIGN_OR_RETURN(Tensor up, InsideActivation(device, activation, x, none));
  LTX_ASSIGN_OR_RETURN(up, ChannelsFirst(device, up));
  LTX_RETURN_IF_ERROR(outputs->Set(device, absl::StrCat("stage.", name, ".up"), up));
  LTX_ASSIGN_OR_RETURN(Tensor act,
                       InsideActivation(device, activation, x, activation.inverse_beta()));
  LTX_ASSIGN_OR_RETURN(act, ChannelsFirst(device, act));
  LTX_RETURN_IF_ERROR(outputs->Set(device, absl::StrCat("stage.", name, ".act"), act));
  LTX_ASSIGN_OR_RETURN(Tensor y, activation.Forward(device, x));
  LTX_ASSIGN_OR_RETURN(y, ChannelsFirst(device, y));
  return outputs->Set(device, name, y);
}

absl::Status RunActivation1d(const GoldenCase& golden, const GoldenContext& context,
                             GoldenOutputs* outputs) {
  for (const std::string& name : golden.InputNames()) {
    LTX_RETURN_IF_ERROR(RunActivationInput(golden, *context.device, name, outputs));
  }
  // x2 in both directions: half the band, transition half-width 0.6 / 2.
  const std::vector<float> filter =
      audio_vae::KaiserSincFilter(0.25, 0.3, audio_vae::kActivationFilterTaps);
  const Shape shape({1, 1, audio_vae::kActivationFilterTaps});
  outputs->SetFloats("stage.computed_filter_up", shape, filter);
  outputs->SetFloats("stage.computed_filter_down", shape, filter);
  return absl::OkStatus();
}

absl::Status RunUpsampleHann(const GoldenCase& golden, const GoldenContext& context,
                             GoldenOutputs* outputs) {
  Device& device = *context.device;
  for (const std::string& name : golden.InputNames()) {
    absl::string_view digits = name;
    int64_t ratio = 0;
    if (!absl::ConsumePrefix(&digits, "x_") || !absl::SimpleAtoi(digits, &ratio)) {
      return absl::InvalidArgumentError(absl::StrCat("in/", name, "; must be x_<ratio>"));
    }
    LTX_ASSIGN_OR_RETURN(Tensor x, golden.Input(device, name));
    LTX_ASSIGN_OR_RETURN(x, ChannelsLast(device, x));
    LTX_ASSIGN_OR_RETURN(
        const audio_vae::HannUpsampler upsampler,
        audio_vae::HannUpsampler::Create(device, ratio, x.dim(2), MemoryOwner::kWeightsAudioVae));
    LTX_ASSIGN_OR_RETURN(Tensor y, upsampler.Forward(device, x));
    LTX_ASSIGN_OR_RETURN(y, ChannelsFirst(device, y));
    LTX_RETURN_IF_ERROR(outputs->Set(device, absl::StrCat("y_", ratio), y));
    const std::vector<float> filter = audio_vae::HannSincFilter(ratio);
    outputs->SetFloats(absl::StrCat("stage.filter_", ratio),
                       Shape({1, 1, static_cast<int64_t>(filter.size())}), filter);
  }
  return absl::OkStatus();
}

/// `bounds_causal`, `bounds_plain`, each with an optional `_shift<n>`.
absl::Status SetBounds(const GoldenCase& golden, const std::string& name,
                       audio_vae::LatentGrid grid, GoldenOutputs* outputs) {
  absl::string_view rest = name;
  if (absl::ConsumePrefix(&rest, "bounds_causal")) {
    grid.causal = true;
  } else if (absl::ConsumePrefix(&rest, "bounds_plain")) {
    grid.causal = false;
  } else {
    return absl::OkStatus();
  }
  int64_t shift = 0;
  if (absl::ConsumePrefix(&rest, "_shift") && !absl::SimpleAtoi(rest, &shift)) {
    return absl::InvalidArgumentError(absl::StrCat("out/", name, "; must end with a number"));
  }
  // Only the expected output tells how many tokens are asked for.
  const Shape shape = golden.file().entries().find(absl::StrCat("out/", name))->second.shape;
  if (shape.rank() != 4) {
    return absl::InvalidArgumentError(absl::StrCat("out/", name, "; must be [B, 1, L, 2]"));
  }
  std::vector<float> values;
  for (int64_t batch = 0; batch < shape.dim(0); ++batch) {
    for (const auto& [start, end] : grid.TokenBounds(shape.dim(2), shift)) {
      values.push_back(start);
      values.push_back(end);
    }
  }
  outputs->SetFloats(name, Shape({shape.dim(0), 1, shape.dim(2), 2}), values);
  return absl::OkStatus();
}

absl::Status RunLatentGrid(const GoldenCase& golden, const GoldenContext& context,
                           GoldenOutputs* outputs) {
  Device& device = *context.device;
  audio_vae::LatentGrid grid;
  grid.sample_rate = golden.params().value("sample_rate", grid.sample_rate);
  grid.hop_length = golden.params().value("hop_length", grid.hop_length);
  grid.time_factor = golden.params().value("downsample", grid.time_factor);

  LTX_ASSIGN_OR_RETURN(const std::vector<int64_t> frames, golden.InputInts("video_frames"));
  LTX_ASSIGN_OR_RETURN(const std::vector<double> fps, golden.InputDoubles("fps"));
  if (frames.size() != fps.size()) {
    return absl::InvalidArgumentError("in/video_frames and in/fps differ in length");
  }
  std::vector<int64_t> latent_frames;
  for (size_t i = 0; i < frames.size(); ++i) {
    LTX_ASSIGN_OR_RETURN(const int64_t count, grid.LatentFrames(frames[i], fps[i]));
    latent_frames.push_back(count);
  }
  outputs->SetInts("latent_frames", Shape({static_cast<int64_t>(frames.size())}), latent_frames);

  LTX_ASSIGN_OR_RETURN(const Tensor latent, golden.Input(device, "latent"));
  LTX_ASSIGN_OR_RETURN(const Tensor tokens, audio_vae::PatchifyAudio(device, latent));
  LTX_RETURN_IF_ERROR(outputs->Set(device, "tokens", tokens));
  for (const std::string& name : golden.OutputNames()) {
    LTX_RETURN_IF_ERROR(SetBounds(golden, name, grid, outputs));
  }
  return absl::OkStatus();
}

absl::Status DecodeLatent(const GoldenCase& golden, Device& device, const std::string& input,
                          DType compute, const std::string& output, const StageObserver& observer,
                          GoldenOutputs* outputs) {
  LTX_ASSIGN_OR_RETURN(const checkpoint::AudioVaeConfig config,
                       checkpoint::ParseAudioVaeConfig(golden.config()));
  LTX_ASSIGN_OR_RETURN(const AudioDecoder decoder,
                       AudioDecoder::Load(Loader(golden, device, compute), config));
  LTX_ASSIGN_OR_RETURN(const Tensor latent, golden.Input(device, input, compute));
  LTX_ASSIGN_OR_RETURN(const Tensor tokens, audio_vae::PatchifyAudio(device, latent));
  LTX_ASSIGN_OR_RETURN(Tensor mel, decoder.Forward(device, tokens, observer));
  LTX_ASSIGN_OR_RETURN(mel, ChannelsFirst(device, mel));
  return outputs->Set(device, output, mel);
}

/// Every input `latent<suffix>` gives `mel<suffix>` in its own dtype, and the stages come from
/// plain `latent`; `mel<suffix>_float32` is the same in f32.
absl::Status RunVaeDecode(const GoldenCase& golden, const GoldenContext& context,
                          GoldenOutputs* outputs) {
  Device& device = *context.device;
  StageRecorder stages(device, outputs);
  for (const std::string& input : golden.InputNames()) {
    absl::string_view suffix = input;
    if (!absl::ConsumePrefix(&suffix, "latent")) continue;
    const std::string output = absl::StrCat("mel", suffix);
    LTX_ASSIGN_OR_RETURN(DType compute, CaseDType(golden, input));
    compute = ComputeDType(context, compute, outputs);
    LTX_RETURN_IF_ERROR(DecodeLatent(golden, device, input, compute, output,
                                     suffix.empty() ? stages.observer() : StageObserver(),
                                     outputs));
    const std::string widened = absl::StrCat(output, "_float32");
    if (!golden.HasOutput(widened)) continue;
    LTX_RETURN_IF_ERROR(DecodeLatent(golden, device, input, DType::kF32, widened, {}, outputs));
  }
  return stages.status();
}

/// Every input `mel<suffix>` gives `waveform<suffix>`; the stages come from plain `mel`.
absl::Status RunVocoder(const GoldenCase& golden, const GoldenContext& context,
                        GoldenOutputs* outputs) {
  Device& device = *context.device;
  LTX_ASSIGN_OR_RETURN(const checkpoint::VocoderConfig config,
                       checkpoint::ParseVocoderConfig(golden.config()));
  StageRecorder stages(device, outputs);
  for (const std::string& input : golden.InputNames()) {
    absl::string_view suffix = input;
    if (!absl::ConsumePrefix(&suffix, "mel")) continue;
    LTX_ASSIGN_OR_RETURN(const DType compute, CaseDType(golden, input));
    LTX_ASSIGN_OR_RETURN(const Vocoder vocoder,
                         Vocoder::Load(Loader(golden, device, compute), config));
    LTX_ASSIGN_OR_RETURN(Tensor mel, golden.Input(device, input, compute));
    LTX_ASSIGN_OR_RETURN(mel, ChannelsLast(device, mel));
    LTX_ASSIGN_OR_RETURN(
        Tensor waveform,
        vocoder.Forward(device, mel, suffix.empty() ? stages.observer() : StageObserver()));
    LTX_ASSIGN_OR_RETURN(waveform, ChannelsFirst(device, waveform));
    LTX_RETURN_IF_ERROR(outputs->Set(device, absl::StrCat("waveform", suffix), waveform));
  }
  return stages.status();
}

absl::Status RunDecodeFull(const GoldenCase& golden, const GoldenContext& context,
                           GoldenOutputs* outputs) {
  Device& device = *context.device;
  LTX_ASSIGN_OR_RETURN(const checkpoint::AudioVaeConfig vae_config,
                       checkpoint::ParseAudioVaeConfig(golden.config()));
  LTX_ASSIGN_OR_RETURN(const checkpoint::VocoderConfig vocoder_config,
                       checkpoint::ParseVocoderConfig(golden.config()));
  LTX_ASSIGN_OR_RETURN(const DType stored, CaseDType(golden, "latent"));
  const DType compute = ComputeDType(context, stored, outputs);
  LTX_ASSIGN_OR_RETURN(const AudioDecoder decoder,
                       AudioDecoder::Load(Loader(golden, device, compute), vae_config));
  // The vocoder keeps its dtype: it is f32 in runs in bf16, too.
  LTX_ASSIGN_OR_RETURN(const Vocoder vocoder,
                       Vocoder::Load(Loader(golden, device, stored), vocoder_config));
  LTX_ASSIGN_OR_RETURN(const Tensor latent, golden.Input(device, "latent", compute));
  LTX_ASSIGN_OR_RETURN(const Tensor tokens, audio_vae::PatchifyAudio(device, latent));
  StageRecorder stages(device, outputs);
  LTX_ASSIGN_OR_RETURN(const audio_vae::Waveform waveform,
                       audio_vae::DecodeAudio(device, decoder, vocoder, tokens, stages.observer()));
  const int64_t expected_rate = golden.params().value("sampling_rate", waveform.sample_rate);
  if (waveform.sample_rate != expected_rate) {
    return absl::InternalError(
        absl::StrCat("sample rate ", waveform.sample_rate, "; must be ", expected_rate));
  }
  LTX_RETURN_IF_ERROR(stages.status());
  return outputs->Set(device, "waveform", waveform.samples);
}

}  // namespace

void RegisterAudioComponents(ComponentRegistry* registry) {
  (*registry)["audio.activation1d"] = RunActivation1d;
  (*registry)["audio.upsample_hann"] = RunUpsampleHann;
  (*registry)["audio.latent_grid"] = RunLatentGrid;
  (*registry)["audio.vae.decode"] = RunVaeDecode;
  (*registry)["audio.vocoder"] = RunVocoder;
  (*registry)["audio.decode_full"] = RunDecodeFull;
}

}  // namespace ltx::golden
