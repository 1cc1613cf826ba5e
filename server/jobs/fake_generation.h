#ifndef LTX_SERVER_JOBS_FAKE_GENERATION_H_
#define LTX_SERVER_JOBS_FAKE_GENERATION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/jobs/generation_sink.h"
#include "server/scheduler/task.h"

namespace ltx::server {

/// The work of a job without an engine: reports units like the real one and delivers a clip of the
/// bytes of its job's id, over and over.
class FakeGeneration final : public Task {
 public:
  struct Options {
    int units = 3;
    /// What a unit is said to cost.
    double unit_seconds = 1;
    /// What the job is said to need before it is queued; 0: nobody knows.
    double expected_seconds = 0;
    int64_t clip_bytes = 100;
    /// Called in every unit, from 1; may be empty.
    std::function<absl::Status(int unit)> run;
  };
  FakeGeneration(std::string job_id, Options options, std::shared_ptr<GenerationSink> sink)
      : job_id_(std::move(job_id)), options_(std::move(options)), sink_(std::move(sink)) {}

  absl::Status Start(int device) override;
  absl::StatusOr<UnitOutcome> AdvanceUnit() override;

  /// The bytes of the clip of that job.
  static std::string Clip(const std::string& job_id, int64_t bytes);

 private:
  absl::Status Deliver();

  const std::string job_id_;
  const Options options_;
  const std::shared_ptr<GenerationSink> sink_;
  int unit_ = 0;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_JOBS_FAKE_GENERATION_H_
