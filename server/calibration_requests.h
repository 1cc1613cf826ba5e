#ifndef LTX_SERVER_CALIBRATION_REQUESTS_H_
#define LTX_SERVER_CALIBRATION_REQUESTS_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "engine/pipeline/generation_request.h"
#include "server/governor/rung_ladder.h"

namespace ltx::server {

/// What a calibration asks for: `usual` (a model's default request) at several sizes, each once and
/// only those that `validate` takes, in this order: the shortest clip (of 8 k + 1 frames, at least
/// `min_frames`) of the smallest rung, the usual size, a quarter of its length at five areas, and
/// the rungs, smaller ones first, up to four times the usual pixels.
///
/// What belongs to a unit, what grows with area and what with length show at sizes that are far
/// apart. What a new size prepares shows at the cost of short clips, and takes several: the first
/// ones of a process load code that later ones find there. A rung that was made has its preparation
/// behind it.
std::vector<pipeline::GenerationRequest> CalibrationRequests(
    const pipeline::GenerationRequest& usual, int64_t min_frames, const RungLadder& ladder,
    absl::FunctionRef<absl::Status(const pipeline::GenerationRequest&)> validate);

}  // namespace ltx::server

#endif  // LTX_SERVER_CALIBRATION_REQUESTS_H_
