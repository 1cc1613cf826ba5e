#ifndef LTX_SERVER_GENERATION_BACKEND_H_
#define LTX_SERVER_GENERATION_BACKEND_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/ltx/v1/video_service.pb.h"
#include "server/jobs/generation_sink.h"
#include "server/scheduler/scheduler.h"
#include "server/scheduler/task.h"

namespace ltx::server {

/// What the services generate with. Thread-safe.
class GenerationBackend {
 public:
  virtual ~GenerationBackend() = default;

  struct Prepared {
    /// Makes the work of the job.
    std::function<std::unique_ptr<Task>(const std::string& job_id,
                                        std::shared_ptr<GenerationSink> sink)>
        make_task;
    /// The governor's rung, for metrics; empty if there is none.
    std::string rung;
    /// Device time; 0 if nobody knows.
    double expected_seconds = 0;
    /// Device memory beyond what is resident, at its peak; 0 if nobody knows.
    int64_t expected_bytes = 0;
  };
  /// Checks a request, or refuses it by name; touches no device.
  virtual absl::StatusOr<Prepared> Prepare(const v1::GenerateVideoRequest& request) = 0;

  /// What the request would cost, with the queue as it is, and whether it would be admitted.
  virtual absl::StatusOr<v1::PlanResponse> Plan(const v1::GenerateVideoRequest& /*request*/,
                                                absl::Time /*deadline*/,
                                                const QueueOutlook& /*outlook*/) {
    return absl::UnimplementedError("this backend plans nothing");
  }
  virtual absl::StatusOr<v1::ListRungsResponse> ListRungs(const v1::ListRungsRequest& /*request*/) {
    return absl::UnimplementedError("this backend has no rungs");
  }

  /// Fills in model, device and memory.
  virtual void Describe(v1::HealthResponse* response) const = 0;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_GENERATION_BACKEND_H_
