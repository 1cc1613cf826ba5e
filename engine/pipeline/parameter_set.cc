#include "engine/pipeline/parameter_set.h"

#include <utility>

namespace ltx::pipeline {
namespace {

// Depth of the released transformers.
constexpr int64_t kReleasedBlocks = 48;

struct Generation {
  checkpoint::ModelVersion since;
  absl::string_view name;
  int64_t num_inference_steps;
  int64_t stg_block;
};

/// Newest first.
std::vector<Generation> Generations() {
  return {{{2, 4}, "ltx-2.4", 30, 28}, {{2, 3}, "ltx-2.3", 30, 28}, {{}, "ltx-2.0", 40, 29}};
}

sampling::GuiderParams Guider(double cfg, double stg, double rescale, std::vector<int64_t> blocks) {
  sampling::GuiderParams params;
  params.cfg_scale = cfg;
  params.stg_scale = stg;
  params.rescale_scale = rescale;
  params.modality_scale = 3.0;
  params.stg_blocks = std::move(blocks);
  return params;
}

}  // namespace

ParameterSet ParametersFor(const RecipeTraits& recipe, const checkpoint::ModelVersion& version) {
  ParameterSet set;
  set.num_frames = 121;
  set.seed = 10;
  const int64_t size_factor = recipe.stages[0].size_divisor;
  if (recipe.hq_preset) {
    set.name = "hq";
    set.height = 544 * size_factor;
    set.width = 960 * size_factor;
    set.num_inference_steps = 15;
    set.guidance.video = Guider(3.0, 0.0, 0.45, {});
    set.guidance.audio = Guider(7.0, 0.0, 1.0, {});
    return set;
  }
  set.height = 512 * size_factor;
  set.width = 768 * size_factor;
  for (const Generation& generation : Generations()) {
    if (version < generation.since) continue;
    set.name = generation.name;
    set.num_inference_steps = generation.num_inference_steps;
    set.guidance.video = Guider(3.0, 1.0, 0.7, {generation.stg_block});
    set.guidance.audio = Guider(7.0, 1.0, 0.7, {generation.stg_block});
    break;
  }
  return set;
}

std::vector<int64_t> BlocksFor(const std::vector<int64_t>& blocks, int64_t num_blocks) {
  std::vector<int64_t> moved = blocks;
  for (int64_t& block : moved) {
    if (block >= num_blocks) block = block * num_blocks / kReleasedBlocks;
  }
  return moved;
}

absl::string_view DefaultNegativePrompt() {
  return "low quality, soft focus, blown highlights, crushed shadows, dull colours, heavy grain, "
         "compression artefacts, flicker, ghosting, jerky motion, frozen picture, warped anatomy, "
         "extra fingers, melted faces, garbled lettering, watermark, captions, crooked framing, "
         "plastic skin, hiss, clipping, muffled voice, robotic speech, echo, silence, sound out of "
         "step with the picture";
}

}  // namespace ltx::pipeline
