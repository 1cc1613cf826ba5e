#ifndef LTX_ENGINE_PIPELINE_PARAMETER_SET_H_
#define LTX_ENGINE_PIPELINE_PARAMETER_SET_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/checkpoint/model_version.h"
#include "engine/pipeline/recipe.h"
#include "engine/sampling/guiders.h"
#include "engine/sampling/latent_state.h"

namespace ltx::pipeline {

/// What a recipe runs with where a request leaves a field open. The numbers are properties of a
/// generation of models (reference: constants.py).
struct ParameterSet {
  /// "ltx-2.0", "ltx-2.3", "ltx-2.4" or "hq".
  absl::string_view name;
  /// Pixels of the finished clip.
  int64_t height = 0;
  int64_t width = 0;
  int64_t num_frames = 0;
  uint64_t seed = 0;
  /// Of a free schedule.
  int64_t num_inference_steps = 0;
  sampling::PerModality<sampling::GuiderParams> guidance;
};

/// The set of `recipe` for a model: the newest one not newer than the model, or the preset of a
/// recipe that has one. An unknown version gets the oldest.
ParameterSet ParametersFor(const RecipeTraits& recipe, const checkpoint::ModelVersion& version);

/// Blocks for a model of `num_blocks` where the set's were meant for the released ones, which have
/// 48: a block that is not there moves to the same relative depth.
std::vector<int64_t> BlocksFor(const std::vector<int64_t>& blocks, int64_t num_blocks);

/// What a guided recipe steers away from unless the request says so. The reference ships a list of
/// its own; this one is ours.
absl::string_view DefaultNegativePrompt();

}  // namespace ltx::pipeline

#endif  // LTX_ENGINE_PIPELINE_PARAMETER_SET_H_
