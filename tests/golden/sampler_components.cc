#include "tests/golden/sampler_components.h"

#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "engine/sampling/denoising_loop.h"
#include "engine/sampling/latent_state.h"
#include "engine/sampling/noise_source.h"
#include "engine/sampling/schedules.h"
#include "engine/sampling/steppers.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"
#include "tests/golden/case_params.h"

namespace ltx::golden {
namespace {

using nlohmann::json;
using sampling::Modality;
using sampling::ModalityName;
using sampling::PerModality;

void SetSigmas(absl::string_view name, absl::Span<const float> sigmas, GoldenOutputs* outputs) {
  outputs->SetFloats(name, Shape{static_cast<int64_t>(sigmas.size())}, sigmas);
}

absl::Status ScheduleConstants(const GoldenCase&, const GoldenContext&, GoldenOutputs* outputs) {
  SetSigmas("distilled", sampling::kDistilledSigmas, outputs);
  SetSigmas("stage_2_distilled", sampling::kDistilledStage2Sigmas, outputs);
  SetSigmas("tdp_distilled", sampling::kTiledStage2Sigmas, outputs);
  SetSigmas("dfr_temporal", sampling::kTemporalRoundSigmas, outputs);
  SetSigmas("hdr_stage_2", sampling::kHdrStage2Sigmas, outputs);
  return absl::OkStatus();
}

/// "sigmas.<i>" from the i-th entry of params.cases and its number of steps.
absl::Status EachSchedule(
    const GoldenCase& golden, GoldenOutputs* outputs,
    const std::function<absl::StatusOr<std::vector<float>>(const json&, int)>& schedule) {
  LTX_ASSIGN_OR_RETURN(const json cases, ParamCases(golden));
  for (size_t i = 0; i < cases.size(); ++i) {
    LTX_ASSIGN_OR_RETURN(const std::vector<float> sigmas,
                         schedule(cases[i], cases[i].value("steps", 0)));
    SetSigmas(absl::StrCat("sigmas.", i), sigmas, outputs);
  }
  return absl::OkStatus();
}

absl::Status Ltx2Schedules(const GoldenCase& golden, const GoldenContext&, GoldenOutputs* outputs) {
  return EachSchedule(golden, outputs, [](const json& params, int steps) {
    sampling::Ltx2ScheduleOptions options;
    options.max_shift = ParamOr(params, "max_shift", options.max_shift);
    options.base_shift = ParamOr(params, "base_shift", options.base_shift);
    options.stretch = ParamOr(params, "stretch", options.stretch);
    options.terminal = ParamOr(params, "terminal", options.terminal);
    options.tokens = ParamOr(params, "default_number_of_tokens", options.tokens);
    const auto shape = ParamOr(params, "latent_shape", std::vector<int64_t>());
    if (shape.size() > 2) {
      options.tokens =
          std::accumulate(shape.begin() + 2, shape.end(), int64_t{1}, std::multiplies<int64_t>());
    }
    return sampling::Ltx2Schedule(steps, options);
  });
}

absl::Status LinearQuadraticSchedules(const GoldenCase& golden, const GoldenContext&,
                                      GoldenOutputs* outputs) {
  return EachSchedule(golden, outputs, [](const json& params, int steps) {
    sampling::LinearQuadraticScheduleOptions options;
    options.threshold_noise = ParamOr(params, "threshold_noise", options.threshold_noise);
    const int linear_steps = ParamOr(params, "linear_steps", -1);
    if (linear_steps >= 0) options.linear_steps = linear_steps;
    return sampling::LinearQuadraticSchedule(steps, options);
  });
}

absl::Status BetaSchedules(const GoldenCase& golden, const GoldenContext&, GoldenOutputs* outputs) {
  return EachSchedule(golden, outputs, [](const json& params, int steps) {
    sampling::BetaScheduleOptions options;
    options.alpha = ParamOr(params, "alpha", options.alpha);
    options.beta = ParamOr(params, "beta", options.beta);
    return sampling::BetaSchedule(steps, options);
  });
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
/// x0 = target + 0.35 sin(2 x) (1 - 0.5 sigma) + 0.1 mean(the other modality's x), and 0.7 x0 + 0.1
/// x for the negative prompt.
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

  absl::StatusOr<sampling::Estimates> operator()(const sampling::Evaluation& evaluation) const {
    PerModality<std::vector<float>> x;
    PerModality<double> mean;
    for (const Modality m : sampling::kModalities) {
      if (!evaluation.latents[m].defined()) continue;
      LTX_ASSIGN_OR_RETURN(x[m], ToFloats(*device_, evaluation.latents[m]));
      for (const float value : x[m]) mean[m] += value;
      mean[m] /= static_cast<double>(x[m].size());
    }
    sampling::Estimates estimates;
    for (const Modality m : sampling::kModalities) {
      const Tensor& latent = evaluation.latents[m];
      if (!latent.defined()) continue;
      const double other = m == Modality::kVideo ? mean.audio : mean.video;
      std::vector<float> denoised(x[m].size()), unconditioned(x[m].size());
      for (size_t i = 0; i < denoised.size(); ++i) {
        const double x0 = targets_[m].at(i) +
                          0.35 * std::sin(2.0 * x[m][i]) * (1.0 - 0.5 * evaluation.sigma) +
                          0.1 * other;
        denoised[i] = static_cast<float>(x0);
        unconditioned[i] = static_cast<float>(0.7 * x0 + 0.1 * x[m][i]);
      }
      LTX_ASSIGN_OR_RETURN(estimates.denoised[m],
                           TensorFromFloats(*device_, denoised, latent.shape()));
      LTX_ASSIGN_OR_RETURN(estimates.unconditioned[m],
                           TensorFromFloats(*device_, unconditioned, latent.shape()));
    }
    return estimates;
  }

 private:
  Device* device_ = nullptr;
  PerModality<std::vector<float>> targets_;
};

/// `in/<name>` in a dtype that samplers draw noise in.
absl::StatusOr<Tensor> NoiseInput(const GoldenCase& golden, Device& device, const std::string& name,
                                  DType dtype) {
  if (dtype != DType::kF64) return golden.Input(device, name, dtype);
  LTX_ASSIGN_OR_RETURN(const std::vector<double> values, golden.InputDoubles(name));
  LTX_ASSIGN_OR_RETURN(const Shape shape, golden.InputShape(name));
  return TensorFromDoubles(device, values, shape);
}

absl::Status RunLoop(const GoldenCase& golden, const GoldenContext& context,
                     const sampling::Sampler& sampler, GoldenOutputs* outputs) {
  Device& device = *context.device;
  sampling::DenoisingLoop::Options options;
  options.sampler = sampler;
  LTX_ASSIGN_OR_RETURN(options.sigmas, golden.InputFloats("sigmas"));
  options.noise = [&](const sampling::LoopDraw& draw, const Shape&, DType dtype) {
    return NoiseInput(golden, device, absl::StrCat("noise.", draw.index), dtype);
  };
  PerModality<sampling::LatentState> states;
  for (const Modality m : sampling::kModalities) {
    const std::string prefix = absl::StrCat(ModalityName(m), ".");
    if (!golden.HasInput(prefix + "latent")) continue;
    LTX_ASSIGN_OR_RETURN(states[m], InputState(golden, device, prefix, DType::kF32));
  }
  LTX_ASSIGN_OR_RETURN(const AnalyticDenoiser model, AnalyticDenoiser::Load(golden, &device));
  LTX_ASSIGN_OR_RETURN(const auto loop,
                       sampling::DenoisingLoop::Create(&device, options, std::move(states)));
  while (!loop->done()) {
    LTX_ASSIGN_OR_RETURN(const sampling::Evaluation evaluation, loop->Next());
    for (const Modality m : sampling::kModalities) {
      if (!evaluation.latents[m].defined()) continue;
      LTX_RETURN_IF_ERROR(
          outputs->Set(device, absl::StrCat("stage.", ModalityName(m), ".eval", evaluation.index),
                       evaluation.latents[m]));
    }
    LTX_ASSIGN_OR_RETURN(const sampling::Estimates estimates, model(evaluation));
    LTX_RETURN_IF_ERROR(loop->Accept(estimates));
  }
  for (const Modality m : sampling::kModalities) {
    if (!loop->latent(m).defined()) continue;
    LTX_RETURN_IF_ERROR(outputs->Set(device, ModalityName(m), loop->latent(m)));
  }
  return absl::OkStatus();
}

/// Runs a loop with the options that the parameters give.
ComponentRunner LoopRunner(const sampling::Sampler& defaults) {
  return [defaults](const GoldenCase& golden, const GoldenContext& context,
                    GoldenOutputs* outputs) -> absl::Status {
    const json& params = golden.params();
    sampling::Sampler sampler = defaults;
    sampler.eta = ParamOr(params, "eta", sampler.eta);
    sampler.s_noise = ParamOr(params, "s_noise", sampler.s_noise);
    sampler.gamma = ParamOr(params, "ge_gamma", sampler.gamma);
    sampler.refine_anchor = ParamOr(params, "bongmath", sampler.refine_anchor);
    sampler.uniform_noise = ParamOr(params, "legacy_mode", sampler.uniform_noise);
    return RunLoop(golden, context, sampler, outputs);
  };
}

ComponentRunner LoopRunner(sampling::Sampler::Kind kind) {
  sampling::Sampler sampler;
  sampler.kind = kind;
  return LoopRunner(sampler);
}

/// "<stepper>[.eta<eta>[.s<s_noise>]].<step index>" of an output.
struct StepName {
  std::string stepper;
  float eta = 0.0f;
  float s_noise = 0.0f;
  int index = 0;
};

absl::StatusOr<StepName> ParseStepName(const std::string& name) {
  StepName step;
  static const std::regex pattern(
      R"(([a-z0-9]+)(?:\.eta([0-9.]+?))?(?:\.s([0-9]+\.[0-9]+))?\.([0-9]+))");
  std::smatch match;
  if (!std::regex_match(name, match, pattern) || !absl::SimpleAtoi(match[4].str(), &step.index) ||
      (match[2].matched && !absl::SimpleAtof(match[2].str(), &step.eta)) ||
      (match[3].matched && !absl::SimpleAtof(match[3].str(), &step.s_noise))) {
    return absl::InvalidArgumentError(absl::StrCat("no stepper in ", name));
  }
  step.stepper = match[1].str();
  return step;
}

absl::Status Steps(const GoldenCase& golden, const GoldenContext& context, GoldenOutputs* outputs) {
  Device& device = *context.device;
  LTX_ASSIGN_OR_RETURN(const Tensor x, golden.Input(device, "sample"));
  LTX_ASSIGN_OR_RETURN(const Tensor x0, golden.Input(device, "denoised"));
  LTX_ASSIGN_OR_RETURN(const Tensor unconditioned, golden.Input(device, "uncond"));
  LTX_ASSIGN_OR_RETURN(const Tensor noise, golden.Input(device, "noise"));
  LTX_ASSIGN_OR_RETURN(const std::vector<float> sigmas, golden.InputFloats("sigmas"));
  for (const std::string& name : golden.OutputNames()) {
    LTX_ASSIGN_OR_RETURN(const StepName step, ParseStepName(name));
    const float sigma = sigmas.at(step.index);
    const float next = sigmas.at(step.index + 1);
    sampling::Sampler sampler;
    sampler.eta = step.eta;
    sampler.s_noise = step.s_noise;
    Tensor result = x0;
    if (step.stepper == "euler") {
      LTX_ASSIGN_OR_RETURN(result, device.EulerStep(x, x0, sigma, next));
    } else if (step.stepper == "cfgpp") {
      LTX_ASSIGN_OR_RETURN(result, sampling::CfgPpStep::Between(sampler, sigma, next)
                                       .Apply(device, x, x0, unconditioned, noise));
    } else if (step.stepper == "ancestral" && next != 0.0f) {
      LTX_ASSIGN_OR_RETURN(result, sampling::AncestralStep::Between(sampler, sigma, next)
                                       .Apply(device, x, x0, step.eta > 0.0f ? noise : Tensor()));
    } else if (step.stepper == "res2s") {
      const sampling::SdeMix mix = sampling::SdeMix::Between(sigma, next, step.eta);
      LTX_ASSIGN_OR_RETURN(
          result,
          device.WeightedSum({{x, {mix.sample}}, {x0, {mix.advanced}}, {noise, {mix.noise}}},
                             DType::kF32));
    } else if (step.stepper != "ancestral") {
      return absl::UnimplementedError(absl::StrCat("stepper ", step.stepper));
    }
    LTX_RETURN_IF_ERROR(outputs->Set(device, name, result));
  }
  return absl::OkStatus();
}

absl::Status Res2sParts(const GoldenCase& golden, const GoldenContext&, GoldenOutputs* outputs) {
  LTX_ASSIGN_OR_RETURN(const std::vector<double> sizes, golden.InputDoubles("h"));
  std::vector<double> table;
  for (const double h : sizes) {
    const auto weights = sampling::Res2sWeights::Of(h);
    table.insert(table.end(), {weights.a21, weights.b1, weights.b2});
  }
  outputs->SetDoubles("a21_b1_b2", {static_cast<int64_t>(sizes.size()), 3}, table);
  LTX_ASSIGN_OR_RETURN(std::vector<double> noise, golden.InputDoubles("raw_noise"));
  LTX_ASSIGN_OR_RETURN(const Shape shape, golden.InputShape("raw_noise"));
  LTX_RETURN_IF_ERROR(sampling::StandardizeNoise(shape.dim(0), &noise));
  outputs->SetDoubles("noise", shape, noise);
  return absl::OkStatus();
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

void RegisterSamplerComponents(ComponentRegistry* registry) {
  registry->emplace("schedule.constants", ScheduleConstants);
  registry->emplace("schedule.ltx2", Ltx2Schedules);
  registry->emplace("schedule.linear_quadratic", LinearQuadraticSchedules);
  registry->emplace("schedule.beta", BetaSchedules);
  registry->emplace("noiser.gaussian", NoiserGaussian);
  registry->emplace("sampler.post_process", PostProcess);
  registry->emplace("sampler.euler_bf16", EulerBFloat16);
  registry->emplace("sampler.steps", Steps);
  registry->emplace("sampler.res2s_parts", Res2sParts);
  using Kind = sampling::Sampler::Kind;
  registry->emplace("sampler.euler_loop", LoopRunner(Kind::kEuler));
  registry->emplace("sampler.euler_ancestral_loop", LoopRunner(Kind::kEulerAncestral));
  registry->emplace("sampler.euler_cfg_pp_loop", LoopRunner(Kind::kEulerCfgPp));
  registry->emplace("sampler.gradient_estimating_loop", LoopRunner(Kind::kGradientEstimating));
  registry->emplace("sampler.res2s_loop", LoopRunner(sampling::Sampler::Res2s()));
}

}  // namespace ltx::golden
