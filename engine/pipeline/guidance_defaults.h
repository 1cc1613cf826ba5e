#ifndef LTX_ENGINE_PIPELINE_GUIDANCE_DEFAULTS_H_
#define LTX_ENGINE_PIPELINE_GUIDANCE_DEFAULTS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/pipeline/effective_parameters.h"
#include "engine/pipeline/generation_request.h"
#include "engine/pipeline/parameter_set.h"
#include "engine/pipeline/stage_spec.h"

namespace ltx::pipeline {

/// The guidance of a request of a guided recipe over the defaults of its parameter set, for a model
/// of `num_blocks`. An absent modality is left neutral, and so is the modality scale where there is
/// no other modality to isolate from.
///
/// INVALID_ARGUMENT naming the field: a block that the model does not have; blocks, or a negative
/// prompt, that the scales leave without effect.
absl::StatusOr<EffectiveParameters::Guidance> ResolveGuidance(const GenerationRequest& request,
                                                              const ParameterSet& set,
                                                              int64_t num_blocks);

/// Whether the passes of this guided stage share one forward. kAuto batches them while a forward of
/// one pass is too small to fill a device.
bool ChooseBatched(GuidanceBatching choice, const StageSpec& stage);

/// Whether a pass uses the negative prompt.
bool NeedsNegative(const EffectiveParameters& parameters);

}  // namespace ltx::pipeline

#endif  // LTX_ENGINE_PIPELINE_GUIDANCE_DEFAULTS_H_
