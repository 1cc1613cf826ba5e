#ifndef LTX_SERVER_JOBS_JOB_H_
#define LTX_SERVER_JOBS_JOB_H_

#include <grpcpp/support/status.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "server/jobs/artifact_store.h"
#include "server/jobs/event_log.h"
#include "server/jobs/generation_sink.h"
#include "server/jobs/job_record.pb.h"
#include "server/jobs/record_store.h"
#include "server/scheduler/task.h"

namespace ltx::server {

/// Is called, under no lock of the job's, when there are new events or the job is over.
class JobWatcher {
 public:
  virtual ~JobWatcher() = default;
  virtual void OnJobChanged() = 0;
};

/// One job from its acceptance on, until it is forgotten: its state, its events, how it ended, and
/// who looks on. Keeps what clients may ask for, not the work itself. Thread-safe.
class Job final : public JobListener, public GenerationSink {
 public:
  struct Parts {
    /// Must outlive the job.
    ArtifactStore* artifacts = nullptr;
    /// Null: the job is not kept on disk.
    const RecordStore* records = nullptr;
    /// How long it is known after its end.
    absl::Duration ttl = absl::InfiniteDuration();
    /// After the end is on disk and told.
    std::function<void(const Job& job)> on_over;
  };
  /// A new job (state QUEUED), or one that a record tells of.
  Job(const JobRecord& record, Parts parts);

  const std::string& id() const { return id_; }
  uint64_t sequence() const { return sequence_; }
  const std::string& tenant() const { return tenant_; }
  const std::string& request_id() const { return request_id_; }
  const std::string& request_digest() const { return request_digest_; }

  // What clients see.

  /// Everything about the job; without request, parameters and report if `brief`.
  v1::Job Describe(bool brief) const;
  v1::JobState state() const;
  bool over() const;
  absl::Time end_time() const;
  v1::Phase phase() const;
  /// How the stream of a job that is over ends.
  grpc::Status EndStatus() const;
  /// The first event with this number or a later one, if there is one already.
  std::optional<v1::GenerateVideoEvent> EventFrom(int64_t number) const;
  /// What the clip is; without a type if there is none (or none that the server keeps).
  MediaInfo Clip() const;
  absl::StatusOr<std::shared_ptr<const MediaFile>> OpenClip() const;
  void AddWatcher(std::weak_ptr<JobWatcher> watcher);

  /// Calls that the job lives for: when the last one is gone and the job is not detached it is to
  /// be cancelled (RemoveOwner() is true then).
  void AddOwner(bool detach);
  bool RemoveOwner();

  // How it comes into the world.

  /// What came of queueing it, with the record on disk; wakes AwaitAccepted().
  absl::Status Accept(const absl::Status& queued);
  absl::Status AwaitAccepted() const;
  /// The job was not over when its server ended.
  void Lose();

  // JobListener.
  void OnQueued(int ahead) override;
  void OnStarted() override;
  void OnSuspended() override;
  void OnResumed() override;
  void OnEnd(const absl::Status& status) override;

  // GenerationSink.
  void Enter(v1::Phase phase) override;
  void Send(v1::GenerateVideoEvent event) override;
  std::string ClipPath(absl::string_view mime_type) const override;
  absl::Status Deliver(v1::GenerationReport report, absl::string_view mime_type) override;
  absl::Status DeliverPartial(v1::PartialResult partial, absl::string_view mime_type) override;

 private:
  /// Takes the finished file at ClipPath() into the store; nothing without a type.
  absl::StatusOr<v1::Artifact> AddArtifact(absl::string_view mime_type);
  struct State {
    v1::Job job;
    EventLog log;
    v1::Phase phase = v1::PHASE_UNSPECIFIED;
  };
  static State Restored(const JobRecord& record);
  static void ApplyEnd(const absl::Status& status, State* state);
  JobRecord ToRecord(const State& state) const;
  /// On disk, then for all to see.
  void End(const absl::Status& status);
  void Notify();

  const std::string id_;
  const uint64_t sequence_;
  const std::string tenant_;
  const std::string request_id_;
  const std::string request_digest_;
  const Parts parts_;

  /// Held while a record is written, so that an older one does not replace a newer. Before mutex_.
  absl::Mutex save_mutex_;
  mutable absl::Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_);
  absl::Time suspended_since_ ABSL_GUARDED_BY(mutex_);
  int owners_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::weak_ptr<JobWatcher>> watchers_ ABSL_GUARDED_BY(mutex_);
  absl::Status accepted_status_;
  absl::Notification accepted_;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_JOBS_JOB_H_
