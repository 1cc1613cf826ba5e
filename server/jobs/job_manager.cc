#include "server/jobs/job_manager.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>
#include <random>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "engine/media/sha256.h"
#include "engine/pipeline/error_details.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "kernels/status_macros.h"
#include "server/jobs/job_state.h"
#include "server/reasons.h"
#include "server/rpc_details.h"
#include "spdlog/spdlog.h"

namespace ltx::server {
namespace {

constexpr size_t kMaxRequestIdBytes = 128;
constexpr int kDefaultPageSize = 50;
constexpr int kMaxPageSize = 200;

/// The same for calls that mean the same job.
std::string DigestOf(const v1::GenerateVideoRequest& request) {
  v1::GenerateVideoRequest job = request;
  job.clear_detach();
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    job.SerializeToCodedStream(&coded);
  }
  return media::Sha256Of(bytes);
}

absl::Status Bad(absl::string_view field, absl::string_view value, absl::string_view legal) {
  return pipeline::WithDetail(
      absl::InvalidArgumentError(absl::StrCat(field, " ", value, " is not ", legal)),
      {std::string(pipeline::kReasonUnknownValue), std::string(field), std::string(value),
       std::string(legal)});
}

absl::Status CheckRequestId(const std::string& request_id) {
  const bool printable =
      std::all_of(request_id.begin(), request_id.end(), [](char c) { return c > ' ' && c <= '~'; });
  if (printable && request_id.size() <= kMaxRequestIdBytes) return absl::OkStatus();
  return Bad("request_id", absl::StrCat("of ", request_id.size(), " bytes"),
             "at most 128 printable ASCII characters without blanks");
}

absl::StatusOr<JobClass> MapClass(v1::JobClass job_class) {
  switch (job_class) {
    case v1::JOB_CLASS_UNSPECIFIED:
    case v1::JOB_CLASS_INTERACTIVE:
      return JobClass::kInteractive;
    case v1::JOB_CLASS_BATCH:
      return JobClass::kBatch;
    default:
      return Bad("job_class", absl::StrCat(static_cast<int>(job_class)), "interactive or batch");
  }
}

/// The time until which the job may wait.
absl::StatusOr<absl::Time> StartBy(const v1::GenerateVideoRequest& request, absl::Duration limit) {
  absl::Duration timeout = limit;
  if (request.has_queue_timeout_seconds()) {
    const double seconds = request.queue_timeout_seconds();
    if (!(seconds > 0 && seconds < std::numeric_limits<double>::infinity())) {
      return Bad("queue_timeout_seconds", absl::StrCat(seconds), "a positive number of seconds");
    }
    timeout = std::min(limit, absl::Seconds(seconds));
  }
  return absl::Now() + timeout;
}

/// What a killed server was writing beside `output_path`; see media::AtomicFile.
void RemoveHalfWritten(const std::string& output_path) {
  if (output_path.empty()) return;
  const std::filesystem::path path(output_path);
  const std::string prefix = path.filename().string() + ".part-";
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path.parent_path(), error)) {
    std::error_code ignored;
    const std::string name = entry.path().filename().string();
    if (absl::StartsWith(name, prefix)) std::filesystem::remove(entry.path(), ignored);
  }
}

}  // namespace

absl::Status JobManager::Unknown(const std::string& job_id) {
  return pipeline::WithDetail(
      absl::NotFoundError(absl::StrCat("there is no job \"", job_id, "\", or none any more")),
      {std::string(kReasonJobUnknown), "job_id", job_id, ""});
}

absl::StatusOr<std::unique_ptr<JobManager>> JobManager::Create(JobManagerOptions options,
                                                               SchedulerHooks hooks) {
  std::unique_ptr<JobManager> manager(new JobManager(std::move(options)));
  const JobManagerOptions& settings = manager->options_;
  ArtifactStore::Options artifacts{settings.scratch_dir, settings.artifact_quota_bytes,
                                   /*keep=*/false};
  if (!settings.state_dir.empty()) {
    LTX_ASSIGN_OR_RETURN(manager->folder_, StateFolder::Open(settings.state_dir));
    artifacts.folder = manager->folder_->artifacts();
    artifacts.keep = true;
    manager->records_ = std::make_unique<RecordStore>(manager->folder_->jobs());
  }
  manager->artifacts_ = std::make_unique<ArtifactStore>(std::move(artifacts));
  if (manager->records_ != nullptr) manager->Restore();
  manager->scheduler_ = std::make_unique<Scheduler>(settings.scheduler, std::move(hooks));
  return manager;
}

JobManager::JobManager(JobManagerOptions options)
    : options_(std::move(options)),
      id_prefix_(absl::StrFormat("%08x", static_cast<uint32_t>(absl::ToUnixSeconds(absl::Now())))) {
}

Job::Parts JobManager::PartsOfJobs() {
  return {artifacts_.get(), records_.get(), options_.ttl,
          [this](const Job& over) { OnOver(over); }};
}

JobManager::~JobManager() = default;

void JobManager::Restore() {
  const RecordStore::Contents contents = records_->Load();
  for (const std::string& warning : contents.warnings) spdlog::warn("{}", warning);
  int lost = 0;
  for (const JobRecord& record : contents.records) {
    auto job = std::make_shared<Job>(record, PartsOfJobs());
    {
      absl::MutexLock lock(&mutex_);
      Insert(job);
      next_sequence_ = std::max(next_sequence_, job->sequence() + 1);
    }
    if (!job->over()) {
      RemoveHalfWritten(job->Describe(/*brief=*/false).request().output_path());
      job->Lose();
      ++lost;
      continue;
    }
    const MediaInfo clip = job->Clip();
    if (!clip.mime_type.empty()) artifacts_->Restore(job->id(), clip);
    RememberOver(*job);
  }
  artifacts_->RemoveStrangers();
  spdlog::info("{} jobs of earlier starts, {} of them lost; {:.1f} MB of clips", size(), lost,
               static_cast<double>(artifacts_->bytes()) / 1e6);
}

std::shared_ptr<Job> JobManager::NewJob(const Submission& submission, const std::string& digest) {
  JobRecord record;
  record.set_sequence(next_sequence_++);
  record.set_request_digest(digest);
  v1::Job* const job = record.mutable_job();
  // The last part keeps ids from being guessed.
  job->set_job_id(absl::StrFormat("%s-%d-%08x", id_prefix_, record.sequence(),
                                  static_cast<uint32_t>(std::random_device()())));
  job->set_tenant(submission.tenant);
  job->set_job_class(submission.request.job_class() == v1::JOB_CLASS_BATCH
                         ? v1::JOB_CLASS_BATCH
                         : v1::JOB_CLASS_INTERACTIVE);
  job->set_rung(submission.rung);
  *job->mutable_request() = submission.request;
  return std::make_shared<Job>(record, PartsOfJobs());
}

absl::StatusOr<std::shared_ptr<Job>> JobManager::FindByKey(const v1::GenerateVideoRequest& request,
                                                           const std::string& tenant,
                                                           const std::string& digest) const {
  if (request.request_id().empty()) return nullptr;
  const auto found = by_key_.find({tenant, request.request_id()});
  if (found == by_key_.end()) return nullptr;
  std::shared_ptr<Job> job = jobs_.at(found->second);
  // A job that the server gave up: its client was told to come back.
  if (job->over() && job->EndStatus().error_code() == grpc::StatusCode::UNAVAILABLE) return nullptr;
  if (job->request_digest() == digest) return job;
  return pipeline::WithDetail(
      absl::AlreadyExistsError(absl::StrCat("request_id \"", request.request_id(),
                                            "\" stands for job ", job->id(),
                                            ", which has another request; use a new one")),
      {std::string(kReasonRequestIdReused), "request_id", request.request_id(), "a new key"});
}

absl::StatusOr<std::shared_ptr<Job>> JobManager::Join(const v1::GenerateVideoRequest& request,
                                                      const std::string& tenant) {
  LTX_RETURN_IF_ERROR(CheckRequestId(request.request_id()));
  if (request.request_id().empty()) return nullptr;
  const std::string digest = DigestOf(request);
  std::shared_ptr<Job> job;
  {
    absl::MutexLock lock(&mutex_);
    LTX_ASSIGN_OR_RETURN(job, FindByKey(request, tenant, digest));
    if (job == nullptr) return nullptr;
    job->AddOwner(request.detach());
  }
  LTX_RETURN_IF_ERROR(job->AwaitAccepted());
  return job;
}

absl::StatusOr<std::shared_ptr<Job>> JobManager::Submit(Submission submission) {
  const v1::GenerateVideoRequest& request = submission.request;
  LTX_RETURN_IF_ERROR(CheckRequestId(request.request_id()));
  LTX_RETURN_IF_ERROR(MapClass(request.job_class()).status());
  LTX_RETURN_IF_ERROR(StartBy(request, options_.queue_timeout).status());
  const std::string digest = DigestOf(request);
  std::shared_ptr<Job> job;
  bool joined;
  {
    absl::MutexLock lock(&mutex_);
    LTX_ASSIGN_OR_RETURN(job, FindByKey(request, submission.tenant, digest));
    joined = job != nullptr;
    if (!joined) {
      LTX_RETURN_IF_ERROR(CheckQuota(submission.tenant));
      job = NewJob(submission, digest);
      Insert(job);
    }
    job->AddOwner(request.detach());
  }
  if (joined) {
    LTX_RETURN_IF_ERROR(job->AwaitAccepted());
    return job;
  }
  const absl::Status accepted = job->Accept(Queue(job, submission));
  if (!accepted.ok()) {
    // It may have been queued, and its record not be written: then it ends without anybody knowing.
    scheduler_->Cancel(job->id());
    Forget(job->sequence());
    return accepted;
  }
  return job;
}

absl::Status JobManager::CheckQuota(const std::string& tenant) const {
  if (options_.tenant_max_jobs == 0) return absl::OkStatus();
  const auto open = std::count_if(jobs_.begin(), jobs_.end(), [&tenant](const auto& entry) {
    return entry.second->tenant() == tenant && !entry.second->over();
  });
  if (open < options_.tenant_max_jobs) return absl::OkStatus();
  const std::string have = absl::StrCat(options_.tenant_max_jobs);
  absl::Status status = pipeline::WithDetail(
      absl::ResourceExhaustedError(absl::StrCat("tenant ", tenant, " has ", open,
                                                " jobs waiting and running; it may have ", have)),
      {std::string(kReasonTenantQuota), "", absl::StrCat(open + 1),
       absl::StrCat("at most ", have)});
  AttachQuotaFailure(absl::StrCat("tenant:", tenant, "/jobs"),
                     absl::StrCat("need ", open + 1, ", may have ", have), &status);
  return status;
}

absl::Status JobManager::Queue(const std::shared_ptr<Job>& job, const Submission& submission) {
  JobSpec spec;
  spec.id = job->id();
  spec.tenant = submission.tenant;
  LTX_ASSIGN_OR_RETURN(spec.job_class, MapClass(submission.request.job_class()));
  LTX_ASSIGN_OR_RETURN(spec.start_by, StartBy(submission.request, options_.queue_timeout));
  if (!submission.request.detach()) spec.deadline = submission.deadline;
  spec.expected_seconds = submission.expected_seconds;
  spec.expected_bytes = submission.expected_bytes;
  return scheduler_->Submit(std::move(spec), submission.make_task(job->id(), job), job);
}

absl::StatusOr<QueueOutlook> JobManager::Outlook(const v1::GenerateVideoRequest& request,
                                                 const std::string& tenant) const {
  LTX_ASSIGN_OR_RETURN(const JobClass job_class, MapClass(request.job_class()));
  return scheduler_->Outlook(tenant, job_class);
}

void JobManager::Leave(const std::shared_ptr<Job>& job) {
  if (job->RemoveOwner()) scheduler_->Cancel(job->id());
}

absl::StatusOr<std::shared_ptr<Job>> JobManager::Find(const std::string& job_id) const {
  absl::MutexLock lock(&mutex_);
  const auto found = by_id_.find(job_id);
  if (found == by_id_.end()) return Unknown(job_id);
  return jobs_.at(found->second);
}

absl::StatusOr<v1::ListJobsResponse> JobManager::List(const v1::ListJobsRequest& request) const {
  int page_size = request.page_size() == 0 ? kDefaultPageSize : request.page_size();
  if (page_size < 0 || page_size > kMaxPageSize) {
    return Bad("page_size", absl::StrCat(page_size), "in 0..200");
  }
  uint64_t before = std::numeric_limits<uint64_t>::max();
  if (!request.page_token().empty() && !absl::SimpleAtoi(request.page_token(), &before)) {
    return Bad("page_token", request.page_token(), "the token of a previous page");
  }
  const auto wanted = [&request](const Job& job) {
    if (!request.tenant().empty() && job.tenant() != request.tenant()) return false;
    const auto& states = request.states();
    return states.empty() || std::find(states.begin(), states.end(), job.state()) != states.end();
  };
  std::vector<std::shared_ptr<Job>> page;
  bool more = false;
  {
    absl::MutexLock lock(&mutex_);
    for (auto next = jobs_.lower_bound(before); next != jobs_.begin() && !more;) {
      --next;
      if (!wanted(*next->second)) continue;
      more = static_cast<int>(page.size()) == page_size;
      if (!more) page.push_back(next->second);
    }
  }
  v1::ListJobsResponse response;
  for (const std::shared_ptr<Job>& job : page) *response.add_jobs() = job->Describe(/*brief=*/true);
  if (more) response.set_next_page_token(absl::StrCat(page.back()->sequence()));
  return response;
}

absl::StatusOr<std::shared_ptr<Job>> JobManager::Cancel(const std::string& job_id) {
  LTX_ASSIGN_OR_RETURN(std::shared_ptr<Job> job, Find(job_id));
  scheduler_->Cancel(job_id);
  return job;
}

absl::Status JobManager::Delete(const std::string& job_id) {
  LTX_ASSIGN_OR_RETURN(const std::shared_ptr<Job> job, Find(job_id));
  {
    absl::MutexLock lock(&mutex_);
    if (jobs_.count(job->sequence()) == 0) return absl::OkStatus();
    doomed_.insert(job->sequence());
  }
  scheduler_->Cancel(job_id);
  // One that was over before will not say so again.
  if (job->over()) Forget(job->sequence());
  return absl::OkStatus();
}

int JobManager::size() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(jobs_.size());
}

void JobManager::Sweep(absl::Time now) {
  std::vector<uint64_t> old;
  {
    absl::MutexLock lock(&mutex_);
    int excess = static_cast<int>(finished_.size()) - options_.history;
    for (const auto& [end, sequence] : finished_) {
      if (excess-- <= 0 && end + options_.ttl > now) break;
      old.push_back(sequence);
    }
  }
  for (const uint64_t sequence : old) Forget(sequence);
}

void JobManager::Insert(const std::shared_ptr<Job>& job) {
  jobs_[job->sequence()] = job;
  by_id_[job->id()] = job->sequence();
  if (!job->request_id().empty()) by_key_[{job->tenant(), job->request_id()}] = job->sequence();
}

void JobManager::OnOver(const Job& job) {
  if (options_.on_over) options_.on_over(job);
  RememberOver(job);
}

void JobManager::RememberOver(const Job& job) {
  artifacts_->Unpin(job.id());
  bool doomed;
  {
    absl::MutexLock lock(&mutex_);
    if (jobs_.count(job.sequence()) > 0) finished_.insert({job.end_time(), job.sequence()});
    doomed = doomed_.count(job.sequence()) > 0;
  }
  if (doomed) Forget(job.sequence());
  Sweep(absl::Now());
}

void JobManager::Forget(uint64_t sequence) {
  std::shared_ptr<Job> job;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = jobs_.find(sequence);
    if (found == jobs_.end()) return;
    job = std::move(found->second);
    jobs_.erase(found);
    by_id_.erase(job->id());
    const auto key = by_key_.find({job->tenant(), job->request_id()});
    if (key != by_key_.end() && key->second == sequence) by_key_.erase(key);
    finished_.erase({job->end_time(), sequence});
    doomed_.erase(sequence);
  }
  // The record first: a clip without one is removed at the next start, the other way round would
  // promise what is not there.
  if (records_ != nullptr) records_->Remove(job->id());
  artifacts_->Remove(job->id());
}

}  // namespace ltx::server
