#ifndef LTX_SERVER_CALIBRATION_H_
#define LTX_SERVER_CALIBRATION_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/pipeline/model.h"
#include "server/governor/governor.h"

namespace ltx::server {

/// Makes clips of a few small sizes, one after the other, so that the governor has measured every
/// kind of work before the first request comes. Each size runs twice: what the first of a size pays
/// is first use. Ends after `budget` with the unit that runs then; what has been measured by then
/// counts. Clips go to a file in `scratch_dir` and away. The device must be idle.
absl::Status Calibrate(const pipeline::Model& model, Governor* governor,
                       const std::string& scratch_dir, absl::Duration budget);

}  // namespace ltx::server

#endif  // LTX_SERVER_CALIBRATION_H_
