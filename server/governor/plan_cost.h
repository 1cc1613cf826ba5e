#ifndef LTX_SERVER_GOVERNOR_PLAN_COST_H_
#define LTX_SERVER_GOVERNOR_PLAN_COST_H_

#include <cstdint>

#include "engine/pipeline/plan_projector.h"
#include "server/governor/cost_unit.h"

namespace ltx::server {

/// The name of the phase after the engine's, in plans and metrics.
inline constexpr char kMuxPhase[] = "mux";

CostKind CostKindOf(pipeline::Phase phase);

/// What a unit of the engine costs, in the terms of the model.
CostUnit CostOf(const pipeline::UnitProjection& unit);

/// Checking and encoding a clip on the host, all of it.
CostUnit MuxCost(int64_t width, int64_t height, int64_t num_frames, int64_t audio_samples);

}  // namespace ltx::server

#endif  // LTX_SERVER_GOVERNOR_PLAN_COST_H_
