#ifndef LTX_SERVER_EXECUTOR_H_
#define LTX_SERVER_EXECUTOR_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/scheduler/cancellation.h"

namespace ltx::server {

/// Something that wants the device for a while.
class Job {
 public:
  Job(std::string id, absl::Time deadline) : id_(std::move(id)), cancellation_(deadline) {}
  virtual ~Job() = default;

  const std::string& id() const { return id_; }
  Cancellation& cancellation() { return cancellation_; }

  /// `ahead` jobs come before this one, the running one included. On arrival and when it changes.
  virtual void OnQueued(int ahead) = 0;
  /// Does the work on the executor's thread, looking at cancellation() between units.
  virtual absl::Status Run() = 0;
  /// Exactly once, after Run() or instead of it.
  virtual void OnEnd(const absl::Status& status) = 0;

 private:
  const std::string id_;
  Cancellation cancellation_;
};

/// One thread that runs jobs in order of arrival, one at a time, behind a bounded queue.
class Executor {
 public:
  /// `capacity` jobs may wait beside the running one.
  explicit Executor(int capacity);
  /// Ends waiting jobs and the running one with UNAVAILABLE and waits for it.
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// RESOURCE_EXHAUSTED (reason QUEUE_FULL) if the queue is full, UNAVAILABLE (reason DRAINING)
  /// while draining, DEADLINE_EXCEEDED if the job's deadline has passed already. Only an accepted
  /// job gets OnQueued() and OnEnd().
  absl::Status Submit(std::shared_ptr<Job> job);

  /// Cancels this job and no other. A waiting job ends at once, a running one after its unit.
  void Cancel(Job* job);

  /// Accepts nothing more, ends waiting jobs with UNAVAILABLE, and waits until the running job is
  /// done; after `grace` ends it with UNAVAILABLE at its next unit.
  void Drain(absl::Duration grace);

  struct Snapshot {
    int waiting = 0;
    int capacity = 0;
    bool draining = false;
    std::string running_id;
    uint64_t succeeded = 0;
    uint64_t failed = 0;
    uint64_t cancelled = 0;
    /// Mean seconds of the jobs that ran to their end; 0 before the first.
    double mean_job_seconds = 0;
  };
  Snapshot Read() const;

 private:
  void Loop();
  /// Ends a job that never ran.
  void EndUnrun(const std::shared_ptr<Job>& job, const absl::Status& status);
  void CountEnd(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Tells each waiting job its place where it differs from what it was told.
  void AnnouncePositions() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  struct Waiting {
    std::shared_ptr<Job> job;
    int announced = -1;
  };

  const int capacity_;
  mutable absl::Mutex mutex_;
  std::deque<Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<Job> running_ ABSL_GUARDED_BY(mutex_);
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  Snapshot counts_ ABSL_GUARDED_BY(mutex_);
  double seconds_of_succeeded_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread thread_;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_EXECUTOR_H_
