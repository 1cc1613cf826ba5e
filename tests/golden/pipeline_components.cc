#include "tests/golden/pipeline_components.h"

#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "engine/audio_vae/latent_grid.h"
#include "engine/sampling/denoising_loop.h"
#include "engine/sampling/latent_geometry.h"
#include "engine/sampling/latent_state.h"
#include "engine/sampling/schedules.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"
#include "tests/golden/pipeline_runs.h"

namespace ltx::golden {
namespace {

using nlohmann::json;
using sampling::Modality;
using sampling::ModalityName;
using sampling::PerModality;

/// A number among the parameters. INVALID_ARGUMENT if it is absent or of another type.
template <typename T>
absl::StatusOr<T> Param(const GoldenCase& golden, const char* name) {
  const auto it = golden.params().find(name);
  if (it == golden.params().end() || !it->is_number()) {
    return absl::InvalidArgumentError(absl::StrCat("params.", name, " is not a number"));
  }
  return it->template get<T>();
}

absl::StatusOr<std::vector<std::string>> StringListParam(const GoldenCase& golden,
                                                         const char* name) {
  const auto it = golden.params().find(name);
  std::vector<std::string> list;
  if (it != golden.params().end() && it->is_array()) {
    for (const json& value : *it) {
      if (value.is_string()) list.push_back(value.get<std::string>());
    }
    if (list.size() == it->size()) return list;
  }
  return absl::InvalidArgumentError(absl::StrCat("params.", name, " is not a list of strings"));
}

/// A parameter that is a list of rows of numbers.
absl::StatusOr<std::vector<std::vector<double>>> Rows(const GoldenCase& golden, const char* name) {
  const auto it = golden.params().find(name);
  std::vector<std::vector<double>> rows;
  if (it == golden.params().end() || !it->is_array()) {
    return absl::InvalidArgumentError(absl::StrCat("params.", name, " is not a list"));
  }
  for (const json& row : *it) {
    std::vector<double> values;
    for (const json& value : row.is_array() ? row : json::array({row})) {
      if (!value.is_number()) {
        return absl::InvalidArgumentError(absl::StrCat("params.", name, " holds no numbers"));
      }
      values.push_back(value.get<double>());
    }
    rows.push_back(std::move(values));
  }
  return rows;
}

absl::Status CheckWidth(const std::vector<double>& row, size_t width, const char* name) {
  if (row.size() == width) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("params.", name, " has a row of ", row.size(), " numbers, not ", width));
}

absl::Status ScheduleConstants(const GoldenCase&, const GoldenContext&, GoldenOutputs* outputs) {
  const auto set = [outputs](absl::string_view name, absl::Span<const float> sigmas) {
    outputs->SetFloats(name, Shape{static_cast<int64_t>(sigmas.size())}, sigmas);
  };
  set("distilled", sampling::kDistilledSigmas);
  set("stage_2_distilled", sampling::kDistilledStage2Sigmas);
  set("tdp_distilled", sampling::kTiledStage2Sigmas);
  set("dfr_temporal", sampling::kTemporalRoundSigmas);
  set("hdr_stage_2", sampling::kHdrStage2Sigmas);
  return absl::OkStatus();
}

absl::Status PixelToLatent(const GoldenCase& golden, GoldenOutputs* outputs) {
  LTX_ASSIGN_OR_RETURN(const auto shapes, Rows(golden, "pixel_shapes_fhw_fps"));
  LTX_ASSIGN_OR_RETURN(const auto columns, StringListParam(golden, "pixel_to_latent_columns"));
  std::vector<int64_t> table;
  for (const std::vector<double>& shape : shapes) {
    LTX_RETURN_IF_ERROR(CheckWidth(shape, 4, "pixel_shapes_fhw_fps"));
    const auto latent =
        sampling::LatentExtentsOf(static_cast<int64_t>(shape[0]), static_cast<int64_t>(shape[1]),
                                  static_cast<int64_t>(shape[2]));
    const int64_t audio = sampling::AudioLatentFrames(shape[0] / shape[3]);
    const sampling::ScaleFactors factors;
    const std::map<std::string, int64_t> values = {
        {"latent_frames", latent.frames},
        {"latent_h", latent.height},
        {"latent_w", latent.width},
        {"video_tokens", latent.tokens()},
        {"audio_latent_frames", audio},
        {"audio_tokens", audio},
        {"pixel_frames_back", sampling::PixelFramesOf(latent.frames)},
        {"pixel_h_back", latent.height * factors.height},
        {"pixel_w_back", latent.width * factors.width},
    };
    for (const std::string& column : columns) {
      const auto it = values.find(column);
      if (it == values.end()) {
        return absl::UnimplementedError(absl::StrCat("pixel_to_latent column ", column));
      }
      table.push_back(it->second);
    }
  }
  outputs->SetInts("pixel_to_latent",
                   {static_cast<int64_t>(shapes.size()), static_cast<int64_t>(columns.size())},
                   table);
  return absl::OkStatus();
}

void SetList(absl::string_view name, const std::vector<int64_t>& values, GoldenOutputs* outputs) {
  outputs->SetInts(name, Shape{static_cast<int64_t>(values.size())}, values);
}

absl::Status ShapeCounts(const GoldenCase& golden, const GoldenContext&, GoldenOutputs* outputs) {
  LTX_RETURN_IF_ERROR(PixelToLatent(golden, outputs));
  std::vector<int64_t> list;
  LTX_ASSIGN_OR_RETURN(const auto durations, Rows(golden, "durations"));
  for (const auto& row : durations) list.push_back(sampling::AudioLatentFrames(row[0]));
  SetList("audio_frames_from_duration", list, outputs);

  list.clear();
  LTX_ASSIGN_OR_RETURN(const auto snap_in, Rows(golden, "snap_in"));
  for (const auto& row : snap_in) {
    LTX_ASSIGN_OR_RETURN(const int64_t frames,
                         sampling::SnapFramesDown(static_cast<int64_t>(row[0])));
    list.push_back(frames);
  }
  SetList("snapped", list, outputs);

  list.clear();
  LTX_ASSIGN_OR_RETURN(const auto clamp_in, Rows(golden, "clamp_in_seconds_fps_min_max"));
  for (const auto& row : clamp_in) {
    LTX_RETURN_IF_ERROR(CheckWidth(row, 4, "clamp_in_seconds_fps_min_max"));
    LTX_ASSIGN_OR_RETURN(const int64_t frames,
                         sampling::FramesForDuration(row[0], row[1], static_cast<int64_t>(row[2]),
                                                     static_cast<int64_t>(row[3])));
    list.push_back(frames);
  }
  SetList("clamped", list, outputs);

  LTX_ASSIGN_OR_RETURN(const auto keyframes, Rows(golden, "keyframes_n_frames"));
  for (const auto& row : keyframes) {
    LTX_RETURN_IF_ERROR(CheckWidth(row, 2, "keyframes_n_frames"));
    const auto count = static_cast<int64_t>(row[0]);
    const auto frames = static_cast<int64_t>(row[1]);
    LTX_ASSIGN_OR_RETURN(const auto positions, sampling::EvenKeyframePositions(count, frames));
    SetList(absl::StrCat("keyframes.", count, "_", frames), positions, outputs);
  }
  return absl::OkStatus();
}

absl::Status PatchifyVideo(const GoldenCase& golden, const GoldenContext& context,
                           GoldenOutputs* outputs) {
  Device& device = *context.device;
  LTX_ASSIGN_OR_RETURN(const auto shapes, Rows(golden, "shapes_b_c_f_h_w_fps"));
  LTX_ASSIGN_OR_RETURN(const auto scale, Rows(golden, "scale_factors"));
  if (scale.size() != 3) return absl::InvalidArgumentError("params.scale_factors needs 3 numbers");
  const sampling::ScaleFactors factors = {static_cast<int64_t>(scale[0][0]),
                                          static_cast<int64_t>(scale[1][0]),
                                          static_cast<int64_t>(scale[2][0])};
  for (size_t i = 0; i < shapes.size(); ++i) {
    LTX_RETURN_IF_ERROR(CheckWidth(shapes[i], 6, "shapes_b_c_f_h_w_fps"));
    LTX_ASSIGN_OR_RETURN(const Tensor latent, golden.Input(device, absl::StrCat("latent.", i)));
    const int64_t batch = latent.dim(0);
    const sampling::VideoLatentExtents extents = {latent.dim(2), latent.dim(3), latent.dim(4)};
    LTX_ASSIGN_OR_RETURN(const Tensor tokens, sampling::PatchifyVideo(device, latent));
    LTX_RETURN_IF_ERROR(outputs->Set(device, absl::StrCat("tokens.", i), tokens));
    outputs->SetFloats(absl::StrCat("positions.", i), {batch, 3, extents.tokens(), 2},
                       sampling::VideoPositions(extents, shapes[i][5], batch, factors));
    outputs->SetFloats(absl::StrCat("keyframes_mask.", i), {batch, extents.tokens(), 1},
                       sampling::FirstFrameMask(extents, batch));
    LTX_ASSIGN_OR_RETURN(
        const Tensor back,
        sampling::UnpatchifyVideo(device, tokens, extents.frames, extents.height, extents.width));
    LTX_RETURN_IF_ERROR(outputs->Set(device, absl::StrCat("unpatchified.", i), back));
  }
  return absl::OkStatus();
}

absl::Status PatchifyAudio(const GoldenCase& golden, const GoldenContext& context,
                           GoldenOutputs* outputs) {
  Device& device = *context.device;
  audio_vae::LatentGrid grid;
  LTX_ASSIGN_OR_RETURN(grid.sample_rate, Param<int64_t>(golden, "sample_rate"));
  LTX_ASSIGN_OR_RETURN(grid.hop_length, Param<int64_t>(golden, "hop_length"));
  LTX_ASSIGN_OR_RETURN(grid.time_factor, Param<int64_t>(golden, "downsample"));
  const auto causal = golden.params().find("causal");
  if (causal == golden.params().end() || !causal->is_boolean()) {
    return absl::InvalidArgumentError("params.causal is not a boolean");
  }
  grid.causal = causal->get<bool>();
  LTX_ASSIGN_OR_RETURN(const auto shapes, Rows(golden, "shapes_b_c_t_m"));
  for (size_t i = 0; i < shapes.size(); ++i) {
    LTX_ASSIGN_OR_RETURN(const Tensor latent, golden.Input(device, absl::StrCat("latent.", i)));
    const int64_t batch = latent.dim(0);
    LTX_ASSIGN_OR_RETURN(const Tensor tokens, audio_vae::PatchifyAudio(device, latent));
    LTX_RETURN_IF_ERROR(outputs->Set(device, absl::StrCat("tokens.", i), tokens));
    std::vector<float> positions;
    for (int64_t b = 0; b < batch; ++b) {
      for (const std::array<float, 2>& bounds : grid.TokenBounds(latent.dim(2))) {
        positions.insert(positions.end(), bounds.begin(), bounds.end());
      }
    }
    outputs->SetFloats(absl::StrCat("positions.", i), {batch, 1, latent.dim(2), 2}, positions);
    LTX_ASSIGN_OR_RETURN(const Tensor back,
                         audio_vae::UnpatchifyAudio(device, tokens, latent.dim(1)));
    LTX_RETURN_IF_ERROR(outputs->Set(device, absl::StrCat("unpatchified.", i), back));
  }
  return absl::OkStatus();
}

/// The state `prefix`latent, `prefix`clean, `prefix`denoise_mask of a case.
absl::StatusOr<sampling::LatentState> InputState(const GoldenCase& golden, Device& device,
                                                 const std::string& prefix, DType dtype) {
  sampling::LatentState state;
  LTX_ASSIGN_OR_RETURN(state.latent, golden.Input(device, prefix + "latent", dtype));
  LTX_ASSIGN_OR_RETURN(state.clean, golden.Input(device, prefix + "clean", dtype));
  LTX_ASSIGN_OR_RETURN(state.mask, golden.InputFloats(prefix + "denoise_mask"));
  LTX_ASSIGN_OR_RETURN(
      state.device_mask,
      TensorFromFloats(device, state.mask, {state.latent.dim(0), state.latent.dim(1)}));
  return state;
}

absl::Status NoiserGaussian(const GoldenCase& golden, const GoldenContext& context,
                            GoldenOutputs* outputs) {
  Device& device = *context.device;
  for (const auto& [prefix, dtype] : {std::pair<absl::string_view, DType>{"latent.", DType::kF32},
                                      {"latent_bf16.", DType::kBF16}}) {
    LTX_ASSIGN_OR_RETURN(const sampling::LatentState state, InputState(golden, device, "", dtype));
    LTX_ASSIGN_OR_RETURN(const Tensor noise, golden.Input(device, "noise", dtype));
    for (const std::string& name : golden.OutputNames()) {
      absl::string_view scale = name;
      if (!absl::ConsumePrefix(&scale, prefix)) continue;
      float noise_scale = 0;
      if (!absl::SimpleAtof(scale, &noise_scale)) {
        return absl::InvalidArgumentError(absl::StrCat("no noise scale in ", name));
      }
      LTX_ASSIGN_OR_RETURN(const Tensor latent,
                           sampling::AddNoise(device, state, noise, noise_scale));
      LTX_RETURN_IF_ERROR(outputs->Set(device, name, latent));
    }
  }
  return absl::OkStatus();
}

absl::Status PostProcess(const GoldenCase& golden, const GoldenContext& context,
                         GoldenOutputs* outputs) {
  Device& device = *context.device;
  LTX_ASSIGN_OR_RETURN(const Tensor denoised, golden.Input(device, "denoised"));
  LTX_ASSIGN_OR_RETURN(const Tensor clean, golden.Input(device, "clean"));
  LTX_ASSIGN_OR_RETURN(const std::vector<float> mask, golden.InputFloats("denoise_mask"));
  LTX_ASSIGN_OR_RETURN(const std::vector<float> sigma, golden.InputFloats("sigma"));
  const int64_t batch = denoised.dim(0), tokens = denoised.dim(1);
  LTX_ASSIGN_OR_RETURN(const Tensor device_mask, TensorFromFloats(device, mask, {batch, tokens}));
  LTX_ASSIGN_OR_RETURN(const Tensor blended, device.BlendClean(denoised, clean, device_mask));
  LTX_RETURN_IF_ERROR(outputs->Set(device, "blended", blended));
  // One sigma for all rows, or one per row.
  std::vector<float> timesteps;
  for (int64_t b = 0; b < batch; ++b) {
    const float row_sigma = sigma.size() == 1 ? sigma[0] : sigma.at(b);
    const std::vector<float> row(mask.begin() + b * tokens, mask.begin() + (b + 1) * tokens);
    const std::vector<float> values = sampling::TokenTimesteps(row, row_sigma);
    timesteps.insert(timesteps.end(), values.begin(), values.end());
  }
  outputs->SetFloats("timesteps", {batch, tokens, 1}, timesteps);
  return absl::OkStatus();
}

/// The analytic model of the loop cases:
/// x0 = target + 0.35 sin(2 x) (1 - 0.5 sigma) + 0.1 mean(the other modality's x).
class AnalyticDenoiser {
 public:
  static absl::StatusOr<AnalyticDenoiser> Load(const GoldenCase& golden, Device* device) {
    AnalyticDenoiser denoiser;
    denoiser.device_ = device;
    for (const Modality m : sampling::kModalities) {
      const std::string name = absl::StrCat(ModalityName(m), ".target");
      if (!golden.HasInput(name)) continue;
      LTX_ASSIGN_OR_RETURN(denoiser.targets_[m], golden.InputFloats(name));
    }
    return denoiser;
  }

  absl::StatusOr<PerModality<Tensor>> operator()(const PerModality<Tensor>& latents, int step,
                                                 float sigma) const {
    PerModality<std::vector<float>> x;
    PerModality<double> mean;
    for (const Modality m : sampling::kModalities) {
      if (!latents[m].defined()) continue;
      LTX_ASSIGN_OR_RETURN(x[m], ToFloats(*device_, latents[m]));
      for (const float value : x[m]) mean[m] += value;
      mean[m] /= static_cast<double>(x[m].size());
    }
    PerModality<Tensor> denoised;
    for (const Modality m : sampling::kModalities) {
      if (!latents[m].defined()) continue;
      const double other = m == Modality::kVideo ? mean.audio : mean.video;
      std::vector<float> values(x[m].size());
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<float>(
            targets_[m].at(i) + 0.35 * std::sin(2.0 * x[m][i]) * (1.0 - 0.5 * sigma) + 0.1 * other);
      }
      LTX_ASSIGN_OR_RETURN(denoised[m], TensorFromFloats(*device_, values, latents[m].shape()));
    }
    return denoised;
  }

 private:
  Device* device_ = nullptr;
  PerModality<std::vector<float>> targets_;
};

absl::Status RunLoop(const GoldenCase& golden, const GoldenContext& context,
                     const sampling::Sampler& sampler, GoldenOutputs* outputs) {
  Device& device = *context.device;
  sampling::DenoisingLoop::Options options;
  options.sampler = sampler;
  LTX_ASSIGN_OR_RETURN(options.sigmas, golden.InputFloats("sigmas"));
  LTX_ASSIGN_OR_RETURN(options.denoiser, AnalyticDenoiser::Load(golden, &device));
  options.noise = [&](Modality, int draw, const Shape&, DType dtype) {
    return golden.Input(device, absl::StrCat("noise.", draw), dtype);
  };
  absl::Status observed;
  options.observer = [&](absl::string_view stage, const Tensor& x) {
    // "call<k>.<modality>.in" of the loop is "stage.<modality>.eval<k>" of the case.
    for (const Modality m : sampling::kModalities) {
      const std::string suffix = absl::StrCat(".", ModalityName(m), ".in");
      if (!absl::EndsWith(stage, suffix)) continue;
      absl::string_view call = absl::StripSuffix(absl::StripPrefix(stage, "call"), suffix);
      observed.Update(
          outputs->Set(device, absl::StrCat("stage.", ModalityName(m), ".eval", call), x));
    }
  };
  PerModality<sampling::LatentState> states;
  for (const Modality m : sampling::kModalities) {
    const std::string prefix = absl::StrCat(ModalityName(m), ".");
    if (!golden.HasInput(prefix + "latent")) continue;
    LTX_ASSIGN_OR_RETURN(states[m], InputState(golden, device, prefix, DType::kF32));
  }
  LTX_ASSIGN_OR_RETURN(const auto loop,
                       sampling::DenoisingLoop::Create(&device, options, std::move(states)));
  while (!loop->done()) LTX_RETURN_IF_ERROR(loop->Step());
  for (const Modality m : sampling::kModalities) {
    if (!loop->latent(m).defined()) continue;
    LTX_RETURN_IF_ERROR(outputs->Set(device, ModalityName(m), loop->latent(m)));
  }
  return observed;
}

absl::Status EulerLoop(const GoldenCase& golden, const GoldenContext& context,
                       GoldenOutputs* outputs) {
  return RunLoop(golden, context, {sampling::Sampler::Kind::kEuler}, outputs);
}

absl::Status AncestralLoop(const GoldenCase& golden, const GoldenContext& context,
                           GoldenOutputs* outputs) {
  sampling::Sampler sampler;
  sampler.kind = sampling::Sampler::Kind::kEulerAncestral;
  LTX_ASSIGN_OR_RETURN(sampler.eta, Param<float>(golden, "eta"));
  LTX_ASSIGN_OR_RETURN(sampler.s_noise, Param<float>(golden, "s_noise"));
  return RunLoop(golden, context, sampler, outputs);
}

absl::Status EulerBFloat16(const GoldenCase& golden, const GoldenContext& context,
                           GoldenOutputs* outputs) {
  Device& device = *context.device;
  LTX_ASSIGN_OR_RETURN(const Tensor sample, golden.Input(device, "sample", DType::kBF16));
  LTX_ASSIGN_OR_RETURN(const Tensor denoised, golden.Input(device, "denoised", DType::kBF16));
  LTX_ASSIGN_OR_RETURN(const std::vector<float> sigmas, golden.InputFloats("sigmas"));
  for (size_t i = 0; i + 1 < sigmas.size(); ++i) {
    LTX_ASSIGN_OR_RETURN(const Tensor next,
                         device.EulerStep(sample, denoised, sigmas[i], sigmas[i + 1]));
    LTX_RETURN_IF_ERROR(outputs->Set(device, absl::StrCat("euler.", i), next));
  }
  return absl::OkStatus();
}

}  // namespace

void RegisterPipelineComponents(ComponentRegistry* registry) {
  registry->emplace("schedule.constants", ScheduleConstants);
  registry->emplace("shape.counts", ShapeCounts);
  registry->emplace("patchify.video", PatchifyVideo);
  registry->emplace("patchify.audio", PatchifyAudio);
  registry->emplace("noiser.gaussian", NoiserGaussian);
  registry->emplace("sampler.post_process", PostProcess);
  registry->emplace("sampler.euler_loop", EulerLoop);
  registry->emplace("sampler.euler_ancestral_loop", AncestralLoop);
  registry->emplace("sampler.euler_bf16", EulerBFloat16);
  RegisterPipelineRuns(registry);
}

}  // namespace ltx::golden
