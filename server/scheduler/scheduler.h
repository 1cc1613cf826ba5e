#ifndef LTX_SERVER_SCHEDULER_SCHEDULER_H_
#define LTX_SERVER_SCHEDULER_SCHEDULER_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/scheduler/fair_queue.h"
#include "server/scheduler/job_class.h"
#include "server/scheduler/task.h"

namespace ltx::server {

/// What a new job would have before it, if nothing else came.
struct QueueOutlook {
  int jobs_ahead = 0;
  /// Device time of these jobs per device: expected seconds, less what the running ones have used;
  /// for jobs that nobody has an idea of, the mean of the jobs so far.
  double seconds_ahead = 0;
};

/// What others decide for the scheduler; each may be empty. Called under the scheduler's lock, but
/// for `idle`: quick, and without calling it back.
struct SchedulerHooks {
  /// Whether the job may be queued; anything but OK refuses it with that status. `outlook` sorts
  /// the whole queue when it is called.
  std::function<absl::Status(const JobSpec& job, const std::function<QueueOutlook()>& outlook)>
      admit;
  /// Whether `running` may keep what it holds on the device while `next` runs there. Empty: always.
  std::function<bool(const JobSpec& running, const JobSpec& next)> may_suspend;
  /// Called on the device's thread, without the lock, while the device has no job: one step of
  /// whatever there is to do then, for which the next job waits if it comes meanwhile. False if
  /// there is nothing more to do until another job has run.
  std::function<bool()> idle;
};

struct SchedulerOptions {
  /// Jobs of one class that may wait; a flood of batch jobs does not lock out interactive ones.
  int capacity = 64;
  /// Shares of the device; tenants without an entry have weight 1.
  std::map<std::string, double> tenant_weights;
  /// One executor thread each.
  int devices = 1;
  /// Batch jobs have the time that interactive ones leave. Where that was none while interactive
  /// jobs used the device for so many seconds, the next batch job is treated as interactive to its
  /// end. Thus a batch job starts, or goes on, at least that often, and interactive jobs wait for
  /// no more than one of them in that time. 0: batch jobs wait as long as there are others.
  double batch_ageing_seconds = 600;
};

/// Decides which job has which device, and runs it there unit by unit. Order: FairQueue. A running
/// job yields between units to a waiting one of a higher class, and goes on after it, before others
/// of its own class; SchedulerOptions::batch_ageing_seconds bounds how long the higher class may go
/// on. Cancellation and deadline are looked at between units, of suspended jobs too. By the time a
/// job's listener hears of its end the device is free for the next one.
class Scheduler {
 public:
  Scheduler(const SchedulerOptions& options, SchedulerHooks hooks);
  /// Ends all jobs with UNAVAILABLE and waits for them.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// RESOURCE_EXHAUSTED (QUEUE_FULL), UNAVAILABLE (DRAINING), DEADLINE_EXCEEDED if the deadline has
  /// passed already, or what hooks.admit says. Only an accepted job's listener hears anything.
  absl::Status Submit(JobSpec spec, std::unique_ptr<Task> task,
                      std::shared_ptr<JobListener> listener);

  /// Cancels this job and no other; false if it is over or unknown. A waiting job ends at once, a
  /// running one after its unit, a suspended one after the unit of the job that runs instead.
  bool Cancel(const std::string& id);

  /// Accepts nothing more, ends waiting jobs with UNAVAILABLE, and waits until running and
  /// suspended ones are done and their listeners know; after `grace` ends them with UNAVAILABLE at
  /// the next unit.
  void Drain(absl::Duration grace);

  struct Snapshot {
    /// By class.
    std::array<int, kJobClassCount> waiting{};
    int capacity = 0;
    bool draining = false;
    std::vector<std::string> running_ids;
    std::vector<std::string> suspended_ids;
    uint64_t succeeded = 0;
    /// Ended otherwise after they had started.
    uint64_t failed = 0;
    /// Ended before they had started, and not by the client.
    uint64_t refused = 0;
    uint64_t cancelled = 0;
    uint64_t units = 0;
    uint64_t suspensions = 0;
    /// Mean device seconds of the jobs that ran to their end; 0 before the first.
    double mean_job_seconds = 0;

    int total_waiting() const { return waiting[0] + waiting[1]; }
  };
  Snapshot Read() const;
  /// What a job of this tenant and class would have before it if it came now: what `admit` is told.
  QueueOutlook Outlook(const std::string& tenant, JobClass job_class);

 private:
  struct Entry;
  using EntryPtr = std::shared_ptr<Entry>;
  /// One device. Only its own thread changes it, under the lock.
  struct Slot {
    int device = 0;
    EntryPtr running;
    /// Its task holds memory on the device.
    EntryPtr suspended;
    /// Device time of interactive jobs since a batch job last had the device, or none waited.
    double batch_passed_over_seconds = 0;
    std::thread thread;
  };

  void Loop(Slot* slot);
  /// Waits for a job, with what there is to do meanwhile; null: the scheduler stops.
  EntryPtr Next(Slot* slot);
  bool HasWork(const Slot& slot) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Whether it is the turn of a batch job though interactive ones wait.
  bool BatchIsDue(const Slot& slot) const;
  /// Whether the suspended job goes on now.
  bool GoesOn(const Slot& slot) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Makes the job that has the device next the running one.
  EntryPtr Pick(Slot* slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Runs units until the job is over (a status) or has to yield (none).
  std::optional<absl::Status> RunUnits(Slot* slot, Entry* entry);
  /// Books a unit; true if the job has to yield.
  bool AfterUnit(Slot* slot, Entry* entry, double seconds);
  bool MustYield(const Slot& slot, const Entry& entry) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Destroys the task of the slot's running or suspended job, frees its place, counts the end and
  /// tells it, in this order.
  void EndStarted(Slot* slot, const EntryPtr& entry, const absl::Status& status);
  /// Ends a job that was taken out of the queue.
  void EndUnstarted(const EntryPtr& entry, const absl::Status& status);
  void EndDeadSuspended(Slot* slot);

  /// By value: the id in the queue goes away on the way.
  EntryPtr TakeWaiting(std::string id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  QueueOutlook OutlookOf(const JobSpec& spec) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Jobs on devices that come before a waiting one of the class.
  int AheadOnDevices(JobClass job_class) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  double MeanJobSeconds() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  struct News {
    EntryPtr entry;
    int ahead = 0;
  };
  /// Waiting jobs whose place is not what they were told; from now on they count as told.
  std::vector<News> TakeNews() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// After a change of the queue: short queues are told at once, long ones by KeepHouse().
  void PlacesChanged() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// A few at a time, so that nobody waits long for the lock.
  void Tell(const std::vector<News>& news);
  /// Ends waiting jobs whose time is over, and tells places, until the scheduler stops.
  void KeepHouse();
  absl::Time NextHouseTick(absl::Time now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const SchedulerOptions options_;
  const SchedulerHooks hooks_;
  mutable absl::Mutex mutex_;
  FairQueue queue_ ABSL_GUARDED_BY(mutex_);
  /// All jobs that are not over.
  absl::flat_hash_map<std::string, EntryPtr> entries_ ABSL_GUARDED_BY(mutex_);
  /// When waiting jobs end by themselves.
  std::set<std::pair<absl::Time, std::string>> expiries_ ABSL_GUARDED_BY(mutex_);
  bool places_changed_ ABSL_GUARDED_BY(mutex_) = false;
  /// Jobs that have ended, and whose listeners are being told.
  int ending_ ABSL_GUARDED_BY(mutex_) = 0;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  Snapshot counts_ ABSL_GUARDED_BY(mutex_);
  double seconds_of_succeeded_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Slot> slots_;
  std::thread housekeeper_;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_SCHEDULER_SCHEDULER_H_
