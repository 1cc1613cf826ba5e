#ifndef LTX_SERVER_CALIBRATION_SIZES_H_
#define LTX_SERVER_CALIBRATION_SIZES_H_

#include <vector>

#include "engine/pipeline/generation_request.h"
#include "server/governor/rung_ladder.h"

namespace ltx::server {

/// The sizes of clips that a calibration makes, all legal for `usual` (a model's default request)
/// and each once, in this order: the shortest clip of the smallest rung, the usual size, a quarter
/// of its length at five areas, and the rungs, smaller ones first, up to four times the usual
/// pixels.
///
/// What belongs to a unit, what grows with area and what with length show at sizes that are far
/// apart. What a new size prepares shows at the cost of short clips, and takes several: the first
/// ones of a process load code that later ones find there. A rung that was made has its preparation
/// behind it.
std::vector<Geometry> CalibrationSizes(const pipeline::GenerationRequest& usual,
                                       const pipeline::RequestLimits& limits,
                                       const RungLadder& ladder);

}  // namespace ltx::server

#endif  // LTX_SERVER_CALIBRATION_SIZES_H_
