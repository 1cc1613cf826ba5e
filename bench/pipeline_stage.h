#ifndef LTX_BENCH_PIPELINE_STAGE_H_
#define LTX_BENCH_PIPELINE_STAGE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "bench/stage.h"

namespace ltx::bench {

/// A whole request: prompt to frames and waveform on the device. Encoding to a file is not part of
/// it. Projected as the server does before it admits a request (engine/pipeline/plan_projector.h).
absl::StatusOr<std::unique_ptr<Stage>> LoadPipelineStage(Device* device,
                                                         const checkpoint::ModelSet* files,
                                                         const StageOptions& options);

}  // namespace ltx::bench

#endif  // LTX_BENCH_PIPELINE_STAGE_H_
