#include "engine/pipeline/stage_forwards.h"

#include <algorithm>

#include "engine/pipeline/guidance_passes.h"
#include "engine/sampling/denoising_loop.h"

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

}  // namespace

std::vector<GuidancePass> StagePasses(const StageSpec& stage, int step, bool half_step) {
  if (!stage.guidance.has_value()) return {GuidancePass::kCond};
  // The reference hands its guiders step 0 for every half step, so that none is skipped.
  return PassesAt(*stage.guidance,
                  {stage.tokens(Modality::kVideo) > 0, stage.tokens(Modality::kAudio) > 0},
                  half_step ? 0 : step);
}

std::vector<WorkUnit> StageForwards(const StageSpec& stage, Phase phase) {
  const int steps = static_cast<int>(stage.sigmas.size()) - 1;
  const int evaluations = sampling::DenoisingLoop::EvaluationCount(stage.sampler, steps,
                                                                   stage.sigmas.back() == 0.0f);
  std::vector<WorkUnit> forwards;
  for (int evaluation = 0; evaluation < evaluations; ++evaluation) {
    const int step = StepOf(stage.sampler, evaluation);
    const std::vector<GuidancePass> passes =
        StagePasses(stage, step, IsHalfStep(stage.sampler, evaluation));
    if (passes.empty()) continue;
    WorkUnit unit;
    unit.phase = phase;
    unit.step = step + 1;
    unit.steps = steps;
    if (stage.batched) {
      unit.passes = GuidancePassNames(passes);
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
