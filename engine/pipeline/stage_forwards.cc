#include "engine/pipeline/stage_forwards.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/pipeline/guided_denoiser.h"
#include "engine/sampling/denoising_loop.h"
#include "engine/sampling/latent_state.h"

namespace ltx::pipeline {
namespace {

using sampling::Modality;

/// The step of the schedule, from 0, that an evaluation belongs to.
int StepOf(const sampling::Sampler& sampler, int evaluation) {
  return sampler.kind == sampling::Sampler::Kind::kRes2s ? evaluation / 2 : evaluation;
}
bool IsHalfStep(const sampling::Sampler& sampler, int evaluation) {
  return sampler.kind == sampling::Sampler::Kind::kRes2s && evaluation % 2 == 1;
}

std::vector<GuidancePass> PassesOf(const StageSpec& stage, int step, bool half_step) {
  GuidersAt guiders;
  for (const Modality m : sampling::kModalities) {
    if (stage.tokens(m) > 0) guiders[m] = &stage.guidance[m];
  }
  return PassesAt(guiders, step, half_step, /*force_uncond=*/false);
}

std::string NamesOf(const std::vector<GuidancePass>& passes) {
  return absl::StrJoin(passes, "+", [](std::string* out, GuidancePass pass) {
    absl::StrAppend(out, GuidancePassName(pass));
  });
}

}  // namespace

std::vector<WorkUnit> StageForwards(const StageSpec& stage, Phase phase) {
  const int steps = static_cast<int>(stage.sigmas.size()) - 1;
  const int evaluations =
      sampling::DenoisingLoop::EvaluationCount(stage.sampler, steps, stage.sigmas.back() == 0.0f);
  std::vector<WorkUnit> forwards;
  for (int evaluation = 0; evaluation < evaluations; ++evaluation) {
    const int step = StepOf(stage.sampler, evaluation);
    const std::vector<GuidancePass> passes =
        PassesOf(stage, step, IsHalfStep(stage.sampler, evaluation));
    if (passes.empty()) continue;
    WorkUnit unit;
    unit.phase = phase;
    unit.step = step + 1;
    unit.steps = steps;
    if (stage.batched) {
      unit.passes = NamesOf(passes);
      unit.rows = static_cast<int>(passes.size());
      forwards.push_back(unit);
      continue;
    }
    for (const GuidancePass pass : passes) {
      unit.passes = std::string(GuidancePassName(pass));
      unit.rows = 1;
      forwards.push_back(unit);
    }
  }
  int index = 0;
  for (WorkUnit& unit : forwards) {
    unit.index = ++index;
    unit.count = static_cast<int>(forwards.size());
  }
  return forwards;
}

}  // namespace ltx::pipeline
