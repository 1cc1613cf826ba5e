#ifndef LTX_SERVER_GENERATION_BACKEND_H_
#define LTX_SERVER_GENERATION_BACKEND_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "proto/ltx/v1/video_service.pb.h"
#include "server/jobs/generation_sink.h"
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
    /// Device time; 0 if nobody knows.
    double expected_seconds = 0;
  };
  /// Checks a request, or refuses it by name; touches no device.
  virtual absl::StatusOr<Prepared> Prepare(const v1::GenerateVideoRequest& request) = 0;

  /// Fills in model, device and memory.
  virtual void Describe(v1::HealthResponse* response) const = 0;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_GENERATION_BACKEND_H_
