#ifndef LTX_SERVER_SCHEDULER_TASK_H_
#define LTX_SERVER_SCHEDULER_TASK_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/scheduler/job_class.h"

namespace ltx::server {

/// What the scheduler has to know of a job.
struct JobSpec {
  /// Unique among the jobs that are not over.
  std::string id;
  /// Who shares the device with whom; see FairQueue.
  std::string tenant;
  JobClass job_class = JobClass::kInteractive;
  /// The job must be done by then; looked at between units, and while it waits.
  absl::Time deadline = absl::InfiniteFuture();
  /// The job must have started by then.
  absl::Time start_by = absl::InfiniteFuture();
  /// Device time it is thought to need; 0 if nobody knows.
  double expected_seconds = 0;
  /// Device memory it is thought to need beyond what is resident; 0 if nobody knows.
  int64_t expected_bytes = 0;
};

/// What one unit of work was.
struct UnitOutcome {
  /// Nothing is left to do.
  bool done = false;
  /// Device time that it took, charged to the tenant.
  double seconds = 0;
};

/// The work of one job, unit by unit. Only one executor thread ever touches it between Start() and
/// the destructor, which frees everything the job holds on the device, at whatever point.
class Task {
 public:
  virtual ~Task() = default;

  /// The job has device number `device`, from 0; it stays there to its end.
  virtual absl::Status Start(int device) = 0;
  /// Runs one unit and waits for it. After an error the task is destroyed. Between two units the
  /// scheduler looks at cancellation and at who waits, so that a unit is what everybody waits for
  /// at the most.
  virtual absl::StatusOr<UnitOutcome> AdvanceUnit() = 0;
  /// Another job has the device until OnResume(); what this one holds on it stays there.
  virtual void OnSuspend() {}
  virtual void OnResume() {}
};

/// Is told what becomes of a job. OnQueued() is called under the scheduler's lock, so that it comes
/// before all others; it must not call the scheduler.
class JobListener {
 public:
  virtual ~JobListener() = default;
  /// `ahead` jobs come before this one, the running one included. On arrival and when it changes;
  /// in a long queue the first number is an upper bound.
  virtual void OnQueued(int ahead) = 0;
  /// The job has the device: once, before Task::Start().
  virtual void OnStarted() = 0;
  virtual void OnSuspended() = 0;
  virtual void OnResumed() = 0;
  /// Exactly once; the task is gone. A job that never started ends without OnStarted().
  virtual void OnEnd(const absl::Status& status) = 0;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_SCHEDULER_TASK_H_
