#ifndef LTX_SERVER_CALIBRATION_H_
#define LTX_SERVER_CALIBRATION_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/pipeline/model.h"
#include "server/governor/governor.h"

namespace ltx::server {

/// Makes clips of a few sizes, in turns, so that the governor has measured every kind of work
/// before the first request comes. Each size runs up to eight times: what the first of a size pays
/// is first use. A clip that is projected to end after `budget` is not begun; one that takes longer
/// ends with the unit that runs then. What has been measured counts. Clips go to a file in
/// `scratch_dir` and away. The device must be idle.
absl::Status Calibrate(const pipeline::Model& model, Governor* governor,
                       const std::string& scratch_dir, absl::Duration budget);

}  // namespace ltx::server

#endif  // LTX_SERVER_CALIBRATION_H_
