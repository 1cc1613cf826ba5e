#include "engine/pipeline/stage_forwards.h"

namespace ltx::pipeline {

std::vector<WorkUnit> StageForwards(const StageSpec& stage, Phase phase) {
  std::vector<WorkUnit> forwards;
  const int steps = static_cast<int>(stage.sigmas.size()) - 1;
  for (int step = 1; step <= steps; ++step) {
    forwards.push_back({phase, step, steps, step, steps, "cond", 1});
  }
  return forwards;
}

}  // namespace ltx::pipeline
