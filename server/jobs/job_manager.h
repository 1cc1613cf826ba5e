#ifndef LTX_SERVER_JOBS_JOB_MANAGER_H_
#define LTX_SERVER_JOBS_JOB_MANAGER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/ltx/v1/job_service.pb.h"
#include "server/jobs/artifact_store.h"
#include "server/jobs/generation_sink.h"
#include "server/jobs/job.h"
#include "server/jobs/record_store.h"
#include "server/jobs/state_folder.h"
#include "server/scheduler/scheduler.h"

namespace ltx::server {

struct JobManagerOptions {
  SchedulerOptions scheduler;
  /// Jobs and clips survive the process there. Empty: they do not, and `scratch_dir` holds clips
  /// while they are made.
  std::string state_dir;
  /// Existing folder, private to this process.
  std::string scratch_dir;
  int64_t artifact_quota_bytes = 0;
  /// How long, and how many, finished jobs are remembered.
  absl::Duration ttl = absl::InfiniteDuration();
  int history = 500;
  /// How long a job may wait that asks for nothing, and the most that one may ask for.
  absl::Duration queue_timeout = absl::InfiniteDuration();
  /// Jobs of one tenant that may wait and run at a time; 0: as many as the queue takes.
  int tenant_max_jobs = 0;
  /// Called after the end of each job of this process; may be empty.
  std::function<void(const Job& job)> on_over;
};

/// All jobs the server knows: takes new ones, finds old ones, forgets the oldest. Thread-safe.
class JobManager {
 public:
  /// Opens the state folder; jobs that were not over when the last server ended become LOST.
  /// FAILED_PRECONDITION if another server has the folder, NOT_FOUND / PERMISSION_DENIED.
  static absl::StatusOr<std::unique_ptr<JobManager>> Create(JobManagerOptions options,
                                                            SchedulerHooks hooks);
  /// Ends all jobs.
  ~JobManager();
  JobManager(const JobManager&) = delete;
  JobManager& operator=(const JobManager&) = delete;

  struct Submission {
    v1::GenerateVideoRequest request;
    std::string tenant;
    /// Of the call.
    absl::Time deadline = absl::InfiniteFuture();
    /// The governor's, of the names in its ladder; may be empty.
    std::string rung;
    double expected_seconds = 0;
    int64_t expected_bytes = 0;
    /// Makes the work; called at most once, without locks.
    std::function<std::unique_ptr<Task>(const std::string& job_id,
                                        std::shared_ptr<GenerationSink> sink)>
        make_task;
  };
  /// A new job, queued and on disk, or the one that the request's key stands for. The caller owns a
  /// share in it (Job::AddOwner) until Leave(). INVALID_ARGUMENT for request_id, job_class or
  /// queue_timeout_seconds, ALREADY_EXISTS (REQUEST_ID_REUSED), RESOURCE_EXHAUSTED (TENANT_QUOTA),
  /// or what the scheduler says.
  absl::StatusOr<std::shared_ptr<Job>> Submit(Submission submission);
  /// The job that the request's key stands for, with a share in it, or null: for callers that would
  /// do costly checks first.
  absl::StatusOr<std::shared_ptr<Job>> Join(const v1::GenerateVideoRequest& request,
                                            const std::string& tenant);
  /// Gives a share back: nobody else's means that the job is cancelled, unless it is detached.
  void Leave(const std::shared_ptr<Job>& job);

  /// NOT_FOUND (JOB_UNKNOWN), as all calls answer for a job that is not there.
  static absl::Status Unknown(const std::string& job_id);
  absl::StatusOr<std::shared_ptr<Job>> Find(const std::string& job_id) const;
  /// Newest first. INVALID_ARGUMENT for page_size or page_token.
  absl::StatusOr<v1::ListJobsResponse> List(const v1::ListJobsRequest& request) const;
  absl::StatusOr<std::shared_ptr<Job>> Cancel(const std::string& job_id);
  absl::Status Delete(const std::string& job_id);

  void Drain(absl::Duration grace) { scheduler_->Drain(grace); }
  Scheduler::Snapshot ReadScheduler() const { return scheduler_->Read(); }
  /// What the request would have before it if it were submitted now. INVALID_ARGUMENT for
  /// job_class.
  absl::StatusOr<QueueOutlook> Outlook(const v1::GenerateVideoRequest& request,
                                       const std::string& tenant) const;
  int64_t artifact_bytes() const { return artifacts_->bytes(); }
  /// Jobs that are known, over or not.
  int size() const;
  /// Forgets what is too old at `now`; call it now and then.
  void Sweep(absl::Time now);

 private:
  explicit JobManager(JobManagerOptions options);

  void Restore();
  Job::Parts PartsOfJobs();
  std::shared_ptr<Job> NewJob(const Submission& submission, const std::string& digest)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Queue(const std::shared_ptr<Job>& job, const Submission& submission);
  /// The job of the key, or null. ALREADY_EXISTS if it is another request's.
  absl::StatusOr<std::shared_ptr<Job>> FindByKey(const v1::GenerateVideoRequest& request,
                                                 const std::string& tenant,
                                                 const std::string& digest) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// RESOURCE_EXHAUSTED (TENANT_QUOTA) if the tenant may have no further job.
  absl::Status CheckQuota(const std::string& tenant) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Insert(const std::shared_ptr<Job>& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnOver(const Job& job);
  void RememberOver(const Job& job);
  /// Takes the job out of all books, and its files away.
  void Forget(uint64_t sequence);

  const JobManagerOptions options_;
  const std::string id_prefix_;
  std::unique_ptr<StateFolder> folder_;
  std::unique_ptr<ArtifactStore> artifacts_;
  /// Null without a state folder.
  std::unique_ptr<RecordStore> records_;

  mutable absl::Mutex mutex_;
  uint64_t next_sequence_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<uint64_t, std::shared_ptr<Job>> jobs_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, uint64_t> by_id_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::pair<std::string, std::string>, uint64_t> by_key_
      ABSL_GUARDED_BY(mutex_);
  /// Over, by their end.
  std::set<std::pair<absl::Time, uint64_t>> finished_ ABSL_GUARDED_BY(mutex_);
  /// To be forgotten as soon as they are over.
  absl::flat_hash_set<uint64_t> doomed_ ABSL_GUARDED_BY(mutex_);
  /// Last: its jobs use all of the above until it is gone.
  std::unique_ptr<Scheduler> scheduler_;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_JOBS_JOB_MANAGER_H_
