#include "server/jobs/job.h"

#include <google/protobuf/util/time_util.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/pipeline/error_details.h"
#include "kernels/status_macros.h"
#include "server/jobs/job_state.h"
#include "server/logging.h"
#include "server/reasons.h"
#include "server/wire_status.h"
#include "spdlog/spdlog.h"

namespace ltx::server {
namespace {

/// Several times the units of the longest recipes; bounds what one job holds to some 100 KiB.
constexpr int kMaxEvents = 1024;

google::protobuf::Timestamp ToTimestamp(absl::Time time) {
  return google::protobuf::util::TimeUtil::NanosecondsToTimestamp(absl::ToUnixNanos(time));
}

absl::Time FromTimestamp(const google::protobuf::Timestamp& time) {
  return absl::FromUnixNanos(google::protobuf::util::TimeUtil::TimestampToNanoseconds(time));
}

/// False, with a line in the log, if there is no way from the one state to the other.
bool Enter(v1::JobState next, v1::Job* job) {
  if (!MayFollow(job->state(), next)) {
    spdlog::error("{} cannot become {}", v1::JobState_Name(job->state()), v1::JobState_Name(next));
    return false;
  }
  job->set_state(next);
  return true;
}

v1::JobState EndState(v1::JobState before, const absl::Status& status) {
  if (status.ok()) return v1::JOB_STATE_SUCCEEDED;
  if (absl::IsCancelled(status)) return v1::JOB_STATE_CANCELLED;
  return before == v1::JOB_STATE_QUEUED ? v1::JOB_STATE_REFUSED : v1::JOB_STATE_FAILED;
}

}  // namespace

Job::State Job::Restored(const JobRecord& record) {
  State state{record.job(), EventLog(kMaxEvents)};
  if (state.job.state() == v1::JOB_STATE_UNSPECIFIED) {
    (void)server::Enter(v1::JOB_STATE_QUEUED, &state.job);
    *state.job.mutable_create_time() = ToTimestamp(absl::Now());
  }
  for (const v1::GenerateVideoEvent& event : record.events()) state.log.Restore(event);
  return state;
}

Job::Job(const JobRecord& record, Parts parts)
    : id_(record.job().job_id()),
      sequence_(record.sequence()),
      tenant_(record.job().tenant()),
      request_id_(record.job().request().request_id()),
      request_digest_(record.request_digest()),
      parts_(std::move(parts)),
      state_(Restored(record)) {
  // What is on disk was accepted.
  if (record.job().state() != v1::JOB_STATE_UNSPECIFIED) accepted_.Notify();
}

v1::Job Job::Describe(bool brief) const {
  absl::MutexLock lock(&mutex_);
  v1::Job job = state_.job;
  job.set_last_event(state_.log.last_number());
  if (job.has_artifact()) {
    job.mutable_artifact()->set_available(IsOver(job.state()) && parts_.artifacts->Has(id_));
  }
  if (job.has_end_time() && parts_.ttl != absl::InfiniteDuration()) {
    *job.mutable_expire_time() = ToTimestamp(FromTimestamp(job.end_time()) + parts_.ttl);
  }
  if (brief) {
    job.clear_request();
    job.clear_parameters();
    job.clear_report();
  }
  return job;
}

v1::JobState Job::state() const {
  absl::MutexLock lock(&mutex_);
  return state_.job.state();
}

bool Job::over() const { return IsOver(state()); }

absl::Time Job::end_time() const {
  absl::MutexLock lock(&mutex_);
  return state_.job.has_end_time() ? FromTimestamp(state_.job.end_time()) : absl::InfiniteFuture();
}

v1::Phase Job::phase() const {
  absl::MutexLock lock(&mutex_);
  return state_.phase;
}

grpc::Status Job::EndStatus() const {
  absl::MutexLock lock(&mutex_);
  if (!state_.job.has_error()) return grpc::Status::OK;
  const v1::JobError& error = state_.job.error();
  return grpc::Status(static_cast<grpc::StatusCode>(error.code()), error.message(),
                      error.status_details());
}

std::optional<v1::GenerateVideoEvent> Job::EventFrom(int64_t number) const {
  absl::MutexLock lock(&mutex_);
  const v1::GenerateVideoEvent* const event = state_.log.From(number);
  if (event == nullptr) return std::nullopt;
  return *event;
}

MediaInfo Job::Clip() const {
  absl::MutexLock lock(&mutex_);
  const v1::Artifact& artifact = state_.job.artifact();
  return {artifact.mime_type(), artifact.total_bytes(), artifact.sha256()};
}

absl::StatusOr<std::shared_ptr<const MediaFile>> Job::OpenClip() const {
  return parts_.artifacts->Open(id_);
}

void Job::AddWatcher(std::weak_ptr<JobWatcher> watcher) {
  absl::MutexLock lock(&mutex_);
  watchers_.push_back(std::move(watcher));
}

void Job::AddOwner(bool detach) {
  absl::MutexLock lock(&mutex_);
  ++owners_;
  if (detach) state_.job.set_detached(true);
}

bool Job::RemoveOwner() {
  absl::MutexLock lock(&mutex_);
  return --owners_ == 0 && !state_.job.detached();
}

absl::Status Job::Accept(const absl::Status& queued) {
  absl::Status status = queued;
  if (status.ok() && parts_.records != nullptr) {
    absl::MutexLock save(&save_mutex_);
    JobRecord record;
    {
      absl::MutexLock lock(&mutex_);
      record = ToRecord(state_);
    }
    // One that is over already is on disk.
    if (!IsOver(record.job().state())) status = parts_.records->Save(record);
  }
  accepted_status_ = status;
  accepted_.Notify();
  return status;
}

absl::Status Job::AwaitAccepted() const {
  accepted_.WaitForNotification();
  return accepted_status_;
}

void Job::Lose() {
  const char* const when = state() == v1::JOB_STATE_QUEUED ? "waited" : "ran";
  End(pipeline::WithDetail(
      absl::UnavailableError(absl::StrCat("the server ended while the job ", when)),
      {std::string(kReasonLost), "", "", ""}));
}

void Job::OnQueued(int ahead) {
  {
    absl::MutexLock lock(&mutex_);
    if (state_.job.state() != v1::JOB_STATE_QUEUED) return;
    state_.job.set_jobs_ahead(ahead);
    v1::GenerateVideoEvent event;
    event.mutable_queued()->set_job_id(id_);
    event.mutable_queued()->set_position(ahead);
    state_.log.Append(std::move(event));
  }
  Notify();
}

void Job::OnStarted() {
  absl::MutexLock lock(&mutex_);
  if (!server::Enter(v1::JOB_STATE_RUNNING, &state_.job)) return;
  state_.job.set_jobs_ahead(0);
  *state_.job.mutable_start_time() = ToTimestamp(absl::Now());
}

void Job::OnSuspended() {
  const LogJob log(id_);
  spdlog::info("suspended for a job of a higher class");
  {
    absl::MutexLock lock(&mutex_);
    state_.job.set_suspended(true);
    suspended_since_ = absl::Now();
    v1::GenerateVideoEvent event;
    event.mutable_suspended()->set_job_id(id_);
    state_.log.Append(std::move(event));
  }
  Notify();
}

void Job::OnResumed() {
  const LogJob log(id_);
  spdlog::info("resumed");
  {
    absl::MutexLock lock(&mutex_);
    state_.job.set_suspended(false);
    v1::GenerateVideoEvent event;
    event.mutable_resumed()->set_job_id(id_);
    event.mutable_resumed()->set_suspended_seconds(
        absl::ToDoubleSeconds(absl::Now() - suspended_since_));
    state_.log.Append(std::move(event));
  }
  Notify();
}

void Job::OnEnd(const absl::Status& status) { End(status); }

void Job::ApplyEnd(const absl::Status& status, State* state) {
  v1::Job* const job = &state->job;
  const bool started = job->state() == v1::JOB_STATE_RUNNING;
  v1::JobState next = EndState(job->state(), status);
  // Whatever a lost job was doing: the server failed it.
  const std::optional<pipeline::ErrorDetail> detail = WireDetail(status);
  if (detail.has_value() && detail->reason == kReasonLost) next = v1::JOB_STATE_FAILED;
  if (!server::Enter(next, job)) return;
  *job->mutable_end_time() = ToTimestamp(absl::Now());
  job->set_jobs_ahead(0);
  job->set_suspended(false);
  state->phase = v1::PHASE_UNSPECIFIED;
  if (status.ok()) {
    v1::GenerateVideoEvent event;
    *event.mutable_finished()->mutable_report() = job->report();
    state->log.Append(std::move(event));
    return;
  }
  const grpc::Status wire = ToWire(status);
  v1::JobError* const error = job->mutable_error();
  error->set_code(wire.error_code());
  error->set_message(wire.error_message());
  error->set_status_details(wire.error_details());
  if (detail.has_value()) error->set_reason(detail->reason);
  // A clip that was delivered by a job that did not succeed is nobody's.
  if (!job->has_partial_result()) job->clear_artifact();
  job->clear_report();
  if (!started) job->clear_progress();
}

JobRecord Job::ToRecord(const State& state) const {
  JobRecord record;
  *record.mutable_job() = state.job;
  record.set_sequence(sequence_);
  record.set_request_digest(request_digest_);
  for (const v1::GenerateVideoEvent& event : state.log.events()) *record.add_events() = event;
  return record;
}

void Job::End(const absl::Status& status) {
  const LogJob log(id_);
  {
    absl::MutexLock save(&save_mutex_);
    std::optional<State> ended;
    {
      absl::MutexLock lock(&mutex_);
      ended = state_;
    }
    ApplyEnd(status, &*ended);
    if (parts_.records != nullptr) {
      const absl::Status saved = parts_.records->Save(ToRecord(*ended));
      if (!saved.ok()) spdlog::error("its end is not on disk: {}", saved.ToString());
    }
    absl::MutexLock lock(&mutex_);
    // Others may have joined it meanwhile; all else is the executor's alone.
    ended->job.set_detached(state_.job.detached());
    state_ = *std::move(ended);
  }
  const v1::JobState state = this->state();
  if (state == v1::JOB_STATE_SUCCEEDED) {
    const v1::Job job = Describe(/*brief=*/false);
    spdlog::info("succeeded in {:.2f} s after {:.2f} s in the queue", job.report().run_seconds(),
                 job.report().queue_seconds());
  } else {
    spdlog::warn("ended {}: {}", v1::JobState_Name(state), status.ToString());
  }
  Notify();
  if (parts_.on_over) parts_.on_over(*this);
}

void Job::Enter(v1::Phase phase) {
  absl::MutexLock lock(&mutex_);
  state_.phase = phase;
}

void Job::Send(v1::GenerateVideoEvent event) {
  {
    absl::MutexLock lock(&mutex_);
    if (event.has_admitted()) *state_.job.mutable_parameters() = event.admitted().parameters();
    if (event.has_progress()) *state_.job.mutable_progress() = event.progress();
    state_.log.Append(std::move(event));
  }
  Notify();
}

std::string Job::ClipPath(absl::string_view mime_type) const {
  return parts_.artifacts->PathFor(id_, mime_type);
}

absl::StatusOr<v1::Artifact> Job::AddArtifact(absl::string_view mime_type) {
  v1::Artifact artifact;
  if (mime_type.empty()) return artifact;
  LTX_ASSIGN_OR_RETURN(const MediaInfo info, parts_.artifacts->Add(id_, mime_type));
  artifact.set_mime_type(info.mime_type);
  artifact.set_total_bytes(info.total_bytes);
  artifact.set_sha256(info.sha256);
  return artifact;
}

absl::Status Job::Deliver(v1::GenerationReport report, absl::string_view mime_type) {
  LTX_ASSIGN_OR_RETURN(v1::Artifact artifact, AddArtifact(mime_type));
  absl::MutexLock lock(&mutex_);
  *state_.job.mutable_report() = std::move(report);
  if (!mime_type.empty()) *state_.job.mutable_artifact() = std::move(artifact);
  return absl::OkStatus();
}

absl::Status Job::DeliverPartial(v1::PartialResult partial, absl::string_view mime_type) {
  LTX_ASSIGN_OR_RETURN(v1::Artifact artifact, AddArtifact(mime_type));
  v1::GenerateVideoEvent event;
  *event.mutable_partial() = partial;
  {
    absl::MutexLock lock(&mutex_);
    *state_.job.mutable_partial_result() = std::move(partial);
    if (!mime_type.empty()) *state_.job.mutable_artifact() = std::move(artifact);
  }
  Send(std::move(event));
  return absl::OkStatus();
}

void Job::Notify() {
  std::vector<std::shared_ptr<JobWatcher>> alive;
  {
    absl::MutexLock lock(&mutex_);
    watchers_.erase(std::remove_if(watchers_.begin(), watchers_.end(),
                                   [&alive](const std::weak_ptr<JobWatcher>& weak) {
                                     std::shared_ptr<JobWatcher> watcher = weak.lock();
                                     if (watcher == nullptr) return true;
                                     alive.push_back(std::move(watcher));
                                     return false;
                                   }),
                    watchers_.end());
  }
  for (const std::shared_ptr<JobWatcher>& watcher : alive) watcher->OnJobChanged();
}

}  // namespace ltx::server
