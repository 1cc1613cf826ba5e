#ifndef LTX_TESTS_MEMORY_TINY_SERVICE_H_
#define LTX_TESTS_MEMORY_TINY_SERVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "proto/ltx/v1/job_service.pb.h"
#include "server/governor/governor.h"
#include "server/jobs/job_manager.h"
#include "server/metrics/server_metrics.h"
#include "server/model_backend.h"
#include "tests/memory/tiny_model.h"

namespace ltx::testing {

struct TinyServiceSetup {
  std::string model = "models/ltx-tiny";
  /// What the governor may give out; 0: no limit.
  int64_t device_bytes = 0;
  int64_t fused_cache_bytes = 0;
};

/// Jobs of the service over ltx-tiny or a set like it, in this process.
class TinyService {
 public:
  /// Is told, on the executor's thread, before or after each unit of a job how many are done.
  using OnUnit = std::function<void(const std::string& job_id, int units_done)>;

  explicit TinyService(std::function<void(const server::Job&)> on_over = nullptr,
                       const TinyServiceSetup& setup = {});

  TinyModel& tiny() { return tiny_; }
  server::JobManager& jobs() { return *jobs_; }
  server::ModelBackend& backend() { return *backend_; }
  /// Device bytes of the model alone.
  int64_t loaded() const { return loaded_; }

  /// Queues a job; fails the test if it is refused.
  std::shared_ptr<server::Job> Submit(const v1::GenerateVideoRequest& request,
                                      OnUnit before_unit = nullptr, OnUnit after_unit = nullptr);
  /// Waits for its end.
  void Await(const server::Job& job) const;
  /// The bytes of a finished job's clip.
  static std::string Clip(const server::Job& job);

 private:
  std::string scratch_;
  TinyModel tiny_;
  server::ServerMetrics metrics_;
  std::unique_ptr<server::Governor> governor_;
  std::unique_ptr<server::ModelBackend> backend_;
  std::unique_ptr<server::JobManager> jobs_;
  int64_t loaded_ = 0;
};

}  // namespace ltx::testing

#endif  // LTX_TESTS_MEMORY_TINY_SERVICE_H_
