#include "tests/golden/guidance_components.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/sampling/guiders.h"
#include "kernels/status_macros.h"
#include "tests/golden/case_params.h"

namespace ltx::golden {
namespace {

using nlohmann::json;

using PairDelta = absl::StatusOr<Tensor> (*)(Device&, float, const Tensor&, const Tensor&);

/// A guider of one scale, whose second prediction is the input `other`.
ComponentRunner PairRunner(PairDelta delta, const char* other) {
  return [delta, other](const GoldenCase& golden, const GoldenContext& context,
                        GoldenOutputs* outputs) -> absl::Status {
    Device& device = *context.device;
    LTX_ASSIGN_OR_RETURN(const float scale, Param<float>(golden, "scale"));
    LTX_ASSIGN_OR_RETURN(const Tensor cond, golden.Input(device, "cond"));
    LTX_ASSIGN_OR_RETURN(const Tensor second, golden.Input(device, other));
    LTX_ASSIGN_OR_RETURN(const Tensor result, delta(device, scale, cond, second));
    return outputs->Set(device, "delta", result);
  };
}

sampling::ApgOptions ApgOptionsOf(const json& params) {
  sampling::ApgOptions options;
  options.scale = ParamOr(params, "scale", options.scale);
  options.eta = ParamOr(params, "eta", options.eta);
  options.norm_threshold = ParamOr(params, "norm_threshold", options.norm_threshold);
  return options;
}

absl::Status Apg(const GoldenCase& golden, const GoldenContext& context, GoldenOutputs* outputs) {
  Device& device = *context.device;
  LTX_ASSIGN_OR_RETURN(const Tensor cond, golden.Input(device, "cond"));
  LTX_ASSIGN_OR_RETURN(const Tensor uncond, golden.Input(device, "uncond"));
  LTX_ASSIGN_OR_RETURN(const json cases, ParamCases(golden));
  for (size_t i = 0; i < cases.size(); ++i) {
    LTX_ASSIGN_OR_RETURN(const Tensor delta,
                         sampling::ApgDelta(device, ApgOptionsOf(cases[i]), cond, uncond));
    LTX_RETURN_IF_ERROR(outputs->Set(device, absl::StrCat("delta.", i), delta));
  }
  return absl::OkStatus();
}

absl::Status StatefulApg(const GoldenCase& golden, const GoldenContext& context,
                         GoldenOutputs* outputs) {
  Device& device = *context.device;
  sampling::StatefulApg guider(ApgOptionsOf(golden.params()),
                               ParamOr(golden.params(), "momentum", 0.0f));
  for (int i = 0; golden.HasInput(absl::StrCat("cond.", i)); ++i) {
    LTX_ASSIGN_OR_RETURN(const Tensor cond, golden.Input(device, absl::StrCat("cond.", i)));
    LTX_ASSIGN_OR_RETURN(const Tensor uncond, golden.Input(device, absl::StrCat("uncond.", i)));
    LTX_ASSIGN_OR_RETURN(const Tensor delta, guider.Delta(device, cond, uncond));
    LTX_RETURN_IF_ERROR(outputs->Set(device, absl::StrCat("delta.", i), delta));
  }
  return absl::OkStatus();
}

sampling::GuiderParams GuiderParamsOf(const json& params) {
  sampling::GuiderParams guider;
  guider.cfg_scale = ParamOr(params, "cfg_scale", guider.cfg_scale);
  guider.stg_scale = ParamOr(params, "stg_scale", guider.stg_scale);
  guider.rescale_scale = ParamOr(params, "rescale_scale", guider.rescale_scale);
  guider.modality_scale = ParamOr(params, "modality_scale", guider.modality_scale);
  guider.skip_step = ParamOr(params, "skip_step", guider.skip_step);
  return guider;
}

/// As a guided step does it: passes that the settings do not ask for do not exist.
absl::StatusOr<Tensor> MultiModalOf(const GoldenCase& golden, Device& device, const json& params,
                                    DType dtype) {
  const sampling::GuiderParams guider = GuiderParamsOf(params);
  LTX_ASSIGN_OR_RETURN(const Tensor cond, golden.Input(device, "cond", dtype));
  Tensor uncond, perturbed, isolated;
  if (guider.NeedsUnconditioned()) {
    LTX_ASSIGN_OR_RETURN(uncond, golden.Input(device, "uncond", dtype));
  }
  if (guider.NeedsPerturbed()) {
    LTX_ASSIGN_OR_RETURN(perturbed, golden.Input(device, "perturbed", dtype));
  }
  if (guider.NeedsIsolated()) {
    LTX_ASSIGN_OR_RETURN(isolated, golden.Input(device, "modality", dtype));
  }
  return device.Guide(cond, uncond, perturbed, isolated, guider.scales());
}

absl::Status MultiModal(const GoldenCase& golden, const GoldenContext& context,
                        GoldenOutputs* outputs) {
  Device& device = *context.device;
  LTX_ASSIGN_OR_RETURN(const json cases, ParamCases(golden));
  for (size_t i = 0; i < cases.size(); ++i) {
    LTX_ASSIGN_OR_RETURN(const Tensor guided, MultiModalOf(golden, device, cases[i], DType::kF32));
    LTX_RETURN_IF_ERROR(outputs->Set(device, absl::StrCat("pred.", i), guided));
  }
  const size_t bf16_case = ParamOr(golden.params(), "bf16_case", cases.size());
  if (bf16_case >= cases.size()) return absl::OkStatus();
  LTX_ASSIGN_OR_RETURN(const Tensor guided,
                       MultiModalOf(golden, device, cases[bf16_case], DType::kBF16));
  return outputs->Set(device, "pred_bf16", guided);
}

absl::Status Selection(const GoldenCase& golden, const GoldenContext&, GoldenOutputs* outputs) {
  // What the case fixes besides its parameters: 12 steps, bins 1.0 -> 1, 0.8 -> 2, 0.3 -> 3.
  constexpr int kSteps = 12;
  const json& params = golden.params();
  const auto skip_steps = ParamOr(params, "skip_steps", std::vector<int64_t>());
  const auto sigmas = ParamOr(params, "sigmas", std::vector<double>());
  for (const int64_t k : skip_steps) {
    sampling::GuiderParams guider;
    guider.skip_step = k;
    std::vector<int64_t> skipped;
    for (int step = 0; step < kSteps; ++step) skipped.push_back(guider.SkipsStep(step) ? 1 : 0);
    outputs->SetInts(absl::StrCat("skip.", k), {kSteps}, skipped);
  }
  std::map<double, sampling::GuiderParams> by_bound;
  for (const auto& [bound, cfg] : {std::pair<double, double>{1.0, 1.0}, {0.8, 2.0}, {0.3, 3.0}}) {
    by_bound[bound].cfg_scale = cfg;
  }
  LTX_ASSIGN_OR_RETURN(const auto schedule, sampling::GuiderSchedule::FromBounds(by_bound));
  std::vector<float> scales;
  for (const double sigma : sigmas) {
    scales.push_back(static_cast<float>(schedule.At(sigma).cfg_scale));
  }
  outputs->SetFloats("cfg_by_sigma", {static_cast<int64_t>(scales.size())}, scales);
  return absl::OkStatus();
}

}  // namespace

void RegisterGuidanceComponents(ComponentRegistry* registry) {
  registry->emplace("guider.cfg", PairRunner(sampling::CfgDelta, "uncond"));
  registry->emplace("guider.cfg_star", PairRunner(sampling::CfgStarDelta, "uncond"));
  registry->emplace("guider.stg", PairRunner(sampling::StgDelta, "perturbed"));
  registry->emplace("guider.apg", Apg);
  registry->emplace("guider.apg_stateful", StatefulApg);
  registry->emplace("guider.multimodal", MultiModal);
  registry->emplace("guider.selection", Selection);
}

}  // namespace ltx::golden
