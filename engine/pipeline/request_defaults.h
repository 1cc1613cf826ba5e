#ifndef LTX_ENGINE_PIPELINE_REQUEST_DEFAULTS_H_
#define LTX_ENGINE_PIPELINE_REQUEST_DEFAULTS_H_

#include <cstdint>
#include <optional>

#include "engine/checkpoint/model_version.h"
#include "engine/pipeline/frame_rate.h"
#include "engine/pipeline/generation_request.h"
#include "engine/pipeline/recipe.h"

namespace ltx::pipeline {

/// What a model's requests get where they leave a field open.
struct RequestDefaults {
  /// Of the request that names none.
  Recipe recipe = Recipe::kDistilled;
  /// Decides what the model's own numbers leave open.
  checkpoint::ModelVersion version;
  std::optional<int64_t> height;
  std::optional<int64_t> width;
  std::optional<int64_t> num_frames;
  std::optional<FrameRate> frame_rate;

  /// A request of `recipe` with an empty prompt: size, length and rate of the model, else of its
  /// generation, and the generation's seed. Without size for a recipe without picture.
  GenerationRequest For(Recipe recipe) const;
};

}  // namespace ltx::pipeline

#endif  // LTX_ENGINE_PIPELINE_REQUEST_DEFAULTS_H_
