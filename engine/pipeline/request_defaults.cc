#include "engine/pipeline/request_defaults.h"

#include "engine/pipeline/parameter_set.h"

namespace ltx::pipeline {

GenerationRequest RequestDefaults::For(Recipe recipe) const {
  const RecipeTraits& traits = TraitsOf(recipe);
  const ParameterSet set = ParametersFor(traits, version);
  GenerationRequest request;
  request.recipe = recipe;
  if (traits.video) {
    request.height = height.value_or(set.height);
    request.width = width.value_or(set.width);
  }
  request.num_frames = num_frames.value_or(set.num_frames);
  // All of the reference's sets have the rate that a FrameRate starts with.
  request.frame_rate = frame_rate.value_or(FrameRate());
  request.seed = set.seed;
  return request;
}

}  // namespace ltx::pipeline
