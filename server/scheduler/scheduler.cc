#include "server/scheduler/scheduler.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/pipeline/error_details.h"
#include "kernels/status_macros.h"
#include "server/reasons.h"
#include "server/rpc_details.h"
#include "server/scheduler/cancellation.h"

namespace ltx::server {
namespace {

/// Up to here every waiting job is told its place at each change; above, that would cost more than
/// small jobs themselves, and once a second is soon enough.
constexpr int kShortQueue = 64;
constexpr absl::Duration kHouseTick = absl::Seconds(1);

/// Places near the front to the job, others when they have changed by a twentieth.
bool WorthTelling(int told, int ahead) {
  if (told < 0 || ahead <= kShortQueue) return told != ahead;
  return std::abs(told - ahead) * 20 >= ahead;
}

absl::Status QueueFull(JobClass job_class, int waiting) {
  absl::Status status =
      pipeline::WithDetail(absl::ResourceExhaustedError(
                               absl::StrCat("the queue is full: ", waiting, " jobs wait in class ",
                                            JobClassName(job_class), ", and no more may")),
                           {std::string(kReasonQueueFull), "", absl::StrCat(waiting + 1),
                            absl::StrCat("at most ", waiting)});
  AttachQuotaFailure(absl::StrCat("queue/", JobClassName(job_class)),
                     absl::StrCat("need ", waiting + 1, ", may have ", waiting), &status);
  return status;
}

absl::Status WaitedTooLong() {
  return pipeline::WithDetail(
      absl::DeadlineExceededError("the job waited as long as it may and did not start"),
      {std::string(kReasonQueueTimeout), "", "", ""});
}

}  // namespace

struct Scheduler::Entry {
  Entry(JobSpec job_spec, std::unique_ptr<Task> job_task, std::shared_ptr<JobListener> job_listener)
      : spec(std::move(job_spec)),
        cancellation(spec.deadline),
        listener(std::move(job_listener)),
        task(std::move(job_task)) {}

  const JobSpec spec;
  Cancellation cancellation;
  const std::shared_ptr<JobListener> listener;
  /// Of the executor's thread from Pick() on.
  std::unique_ptr<Task> task;
  // Under the scheduler's lock:
  int told_ahead = -1;
  bool waiting = true;
  bool started = false;
  /// What it counts as on the device; see batch_ageing_seconds.
  JobClass runs_as = spec.job_class;
  double used_seconds = 0;

  absl::Time expiry() const { return std::min(spec.deadline, spec.start_by); }
};

Scheduler::Scheduler(const SchedulerOptions& options, SchedulerHooks hooks)
    : options_(options),
      hooks_(std::move(hooks)),
      queue_(options.tenant_weights),
      slots_(options.devices) {
  for (size_t i = 0; i < slots_.size(); ++i) {
    slots_[i].device = static_cast<int>(i);
    slots_[i].thread = std::thread([this, slot = &slots_[i]] { Loop(slot); });
  }
  housekeeper_ = std::thread([this] { KeepHouse(); });
}

Scheduler::~Scheduler() {
  Drain(absl::ZeroDuration());
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  for (Slot& slot : slots_) slot.thread.join();
  housekeeper_.join();
}

absl::Status Scheduler::Submit(JobSpec spec, std::unique_ptr<Task> task,
                               std::shared_ptr<JobListener> listener) {
  const EntryPtr entry =
      std::make_shared<Entry>(std::move(spec), std::move(task), std::move(listener));
  LTX_RETURN_IF_ERROR(entry->cancellation.Check());
  const JobSpec& job = entry->spec;
  absl::MutexLock lock(&mutex_);
  if (draining_) return ShuttingDown();
  const int waiting = queue_.size(job.job_class);
  if (waiting >= options_.capacity) return QueueFull(job.job_class, waiting);
  queue_.Push({job.id, job.tenant, job.job_class, job.expected_seconds});
  entries_[job.id] = entry;
  if (hooks_.admit) {
    const absl::Status admitted =
        hooks_.admit(job, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return OutlookOf(job); });
    if (!admitted.ok()) {
      queue_.Remove(job.id);
      entries_.erase(job.id);
      return admitted;
    }
  }
  if (entry->expiry() != absl::InfiniteFuture()) expiries_.insert({entry->expiry(), job.id});
  // Under the lock, so that nobody hears of running before hearing of the queue.
  if (queue_.size() > kShortQueue) {
    entry->told_ahead = queue_.size() - 1 + AheadOnDevices(job.job_class);
    entry->listener->OnQueued(entry->told_ahead);
  }
  PlacesChanged();
  return absl::OkStatus();
}

bool Scheduler::Cancel(const std::string& id) {
  EntryPtr waiting;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = entries_.find(id);
    if (found == entries_.end()) return false;
    found->second->cancellation.Cancel();
    waiting = TakeWaiting(id);
    if (waiting == nullptr) return true;
    PlacesChanged();
  }
  EndUnstarted(waiting, waiting->cancellation.Check());
  return true;
}

void Scheduler::Drain(absl::Duration grace) {
  std::vector<EntryPtr> waiting;
  {
    absl::MutexLock lock(&mutex_);
    draining_ = true;
    while (!queue_.empty()) waiting.push_back(TakeWaiting(queue_.Head()->id));
  }
  for (const EntryPtr& entry : waiting) EndUnstarted(entry, ShuttingDown());
  absl::MutexLock lock(&mutex_);
  const auto idle = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return ending_ == 0 && std::all_of(slots_.begin(), slots_.end(), [](const Slot& slot) {
             return slot.running == nullptr && slot.suspended == nullptr;
           });
  };
  if (mutex_.AwaitWithTimeout(absl::Condition(&idle), grace)) return;
  for (const auto& [id, entry] : entries_) entry->cancellation.Abandon();
  mutex_.Await(absl::Condition(&idle));
}

Scheduler::Snapshot Scheduler::Read() const {
  absl::MutexLock lock(&mutex_);
  Snapshot snapshot = counts_;
  for (int c = 0; c < kJobClassCount; ++c) {
    snapshot.waiting[c] = queue_.size(static_cast<JobClass>(c));
  }
  snapshot.capacity = options_.capacity;
  snapshot.draining = draining_;
  for (const Slot& slot : slots_) {
    if (slot.running != nullptr) snapshot.running_ids.push_back(slot.running->spec.id);
    if (slot.suspended != nullptr) snapshot.suspended_ids.push_back(slot.suspended->spec.id);
  }
  snapshot.mean_job_seconds = MeanJobSeconds();
  return snapshot;
}

bool Scheduler::HasWork(const Slot& slot) const {
  return slot.suspended != nullptr || !queue_.empty();
}

bool Scheduler::MustYield(const Slot& slot, const Entry& entry) const {
  const WaitingJob* const head = queue_.Head();
  // One suspended job a device: its memory is all that a plan has to count with.
  if (head == nullptr || slot.suspended != nullptr) return false;
  if (!IsAbove(head->job_class, entry.runs_as)) return false;
  return !hooks_.may_suspend || hooks_.may_suspend(entry.spec, entries_.at(head->id)->spec);
}

bool Scheduler::BatchIsDue(const Slot& slot) const {
  return options_.batch_ageing_seconds > 0 &&
         slot.batch_passed_over_seconds >= options_.batch_ageing_seconds;
}

bool Scheduler::GoesOn(const Slot& slot) const {
  const WaitingJob* const head = queue_.Head();
  const JobSpec& suspended = slot.suspended->spec;
  return head == nullptr || BatchIsDue(slot) || !IsAbove(head->job_class, suspended.job_class) ||
         (hooks_.may_suspend && !hooks_.may_suspend(suspended, entries_.at(head->id)->spec));
}

Scheduler::EntryPtr Scheduler::Pick(Slot* slot) {
  const bool batch_is_due = BatchIsDue(*slot);
  if (slot->suspended != nullptr && GoesOn(*slot)) {
    slot->running = std::move(slot->suspended);
    slot->suspended = nullptr;
  } else {
    const bool aged = batch_is_due && queue_.Head(JobClass::kBatch) != nullptr;
    const WaitingJob next = queue_.Pop(aged ? JobClass::kBatch : queue_.Head()->job_class);
    slot->running = entries_.at(next.id);
    slot->running->waiting = false;
    expiries_.erase({slot->running->expiry(), next.id});
    PlacesChanged();
  }
  if (batch_is_due) slot->running->runs_as = JobClass::kInteractive;
  return slot->running;
}

Scheduler::EntryPtr Scheduler::Next(Slot* slot) {
  bool has_idle_work = hooks_.idle != nullptr;
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      const auto wake = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stop_ || HasWork(*slot) || (has_idle_work && !draining_);
      };
      mutex_.Await(absl::Condition(&wake));
      if (stop_) return nullptr;
      if (HasWork(*slot)) return Pick(slot);
    }
    has_idle_work = hooks_.idle();
  }
}

void Scheduler::Loop(Slot* slot) {
  while (const EntryPtr entry = Next(slot)) {
    const std::optional<absl::Status> end = RunUnits(slot, entry.get());
    if (!end.has_value()) {
      entry->task->OnSuspend();
      entry->listener->OnSuspended();
      absl::MutexLock lock(&mutex_);
      ++counts_.suspensions;
      slot->suspended = std::move(slot->running);
      slot->running = nullptr;
      continue;
    }
    EndStarted(slot, entry, *end);
  }
}

std::optional<absl::Status> Scheduler::RunUnits(Slot* slot, Entry* entry) {
  LTX_RETURN_IF_ERROR(entry->cancellation.Check());
  bool resumes;
  {
    absl::MutexLock lock(&mutex_);
    resumes = std::exchange(entry->started, true);
  }
  if (resumes) {
    entry->listener->OnResumed();
    entry->task->OnResume();
  } else {
    entry->listener->OnStarted();
    LTX_RETURN_IF_ERROR(entry->task->Start(slot->device));
  }
  while (true) {
    const absl::Time start = absl::Now();
    const absl::StatusOr<UnitOutcome> outcome = entry->task->AdvanceUnit();
    const bool yield = AfterUnit(
        slot, entry, outcome.ok() ? outcome->seconds : absl::ToDoubleSeconds(absl::Now() - start));
    EndDeadSuspended(slot);
    if (!outcome.ok()) return outcome.status();
    if (outcome->done) return absl::OkStatus();
    LTX_RETURN_IF_ERROR(entry->cancellation.Check());
    if (yield) return std::nullopt;
  }
}

bool Scheduler::AfterUnit(Slot* slot, Entry* entry, double seconds) {
  absl::MutexLock lock(&mutex_);
  ++counts_.units;
  entry->used_seconds += seconds;
  queue_.Charge(entry->spec.tenant, seconds);
  const bool batch_waits = slot->suspended != nullptr || queue_.size(JobClass::kBatch) > 0;
  if (entry->spec.job_class == JobClass::kBatch || !batch_waits) {
    slot->batch_passed_over_seconds = 0;
  } else {
    slot->batch_passed_over_seconds += seconds;
  }
  return MustYield(*slot, *entry);
}

void Scheduler::EndDeadSuspended(Slot* slot) {
  EntryPtr dead;
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    if (slot->suspended == nullptr) return;
    status = slot->suspended->cancellation.Check();
    if (status.ok()) return;
    dead = slot->suspended;
  }
  EndStarted(slot, dead, status);
}

void Scheduler::EndStarted(Slot* slot, const EntryPtr& entry, const absl::Status& status) {
  // The job's memory must be gone before anybody hears of its end or sees the device as idle.
  entry->task.reset();
  {
    absl::MutexLock lock(&mutex_);
    // Whoever hears of the end, and asks for more at once, has nobody before it.
    (slot->running == entry ? slot->running : slot->suspended) = nullptr;
    ++ending_;
    entries_.erase(entry->spec.id);
    queue_.Release(entry->spec.tenant);
    if (status.ok()) {
      ++counts_.succeeded;
      seconds_of_succeeded_ += entry->used_seconds;
    } else if (absl::IsCancelled(status)) {
      ++counts_.cancelled;
    } else {
      ++(entry->started ? counts_.failed : counts_.refused);
    }
  }
  entry->listener->OnEnd(status);
  absl::MutexLock lock(&mutex_);
  --ending_;
}

void Scheduler::EndUnstarted(const EntryPtr& entry, const absl::Status& status) {
  entry->task.reset();
  {
    absl::MutexLock lock(&mutex_);
    ++(absl::IsCancelled(status) ? counts_.cancelled : counts_.refused);
  }
  entry->listener->OnEnd(status);
}

Scheduler::EntryPtr Scheduler::TakeWaiting(std::string id) {  // NOLINT(*-unnecessary-value-param)
  if (!queue_.Remove(id)) return nullptr;
  const auto found = entries_.find(id);
  EntryPtr entry = found->second;
  entry->waiting = false;
  entries_.erase(found);
  expiries_.erase({entry->expiry(), id});
  return entry;
}

double Scheduler::MeanJobSeconds() const {
  return counts_.succeeded == 0 ? 0.0 : seconds_of_succeeded_ / counts_.succeeded;
}

QueueOutlook Scheduler::Outlook(const std::string& tenant, JobClass job_class) {
  // Jobs have ids that are not empty.
  JobSpec job;
  job.tenant = tenant;
  job.job_class = job_class;
  absl::MutexLock lock(&mutex_);
  queue_.Push({job.id, job.tenant, job.job_class, job.expected_seconds});
  const QueueOutlook outlook = OutlookOf(job);
  queue_.Remove(job.id);
  return outlook;
}

QueueOutlook Scheduler::OutlookOf(const JobSpec& spec) const {
  const double mean = MeanJobSeconds();
  QueueOutlook outlook;
  const auto add = [&](double expected_seconds, double used_seconds) {
    ++outlook.jobs_ahead;
    const double expected = expected_seconds > 0 ? expected_seconds : mean;
    outlook.seconds_ahead += std::max(expected - used_seconds, 0.0);
  };
  for (const Slot& slot : slots_) {
    for (const EntryPtr& entry : {slot.running, slot.suspended}) {
      if (entry == nullptr || IsAbove(spec.job_class, entry->runs_as)) continue;
      add(entry->spec.expected_seconds, entry->used_seconds);
    }
  }
  for (const WaitingJob* job : queue_.Order(mean)) {
    if (job->id == spec.id) break;
    add(job->expected_seconds, 0);
  }
  outlook.seconds_ahead /= static_cast<double>(slots_.size());
  return outlook;
}

int Scheduler::AheadOnDevices(JobClass job_class) const {
  int ahead = 0;
  for (const Slot& slot : slots_) {
    if (slot.running != nullptr) ++ahead;
    if (slot.suspended != nullptr && !IsAbove(job_class, slot.suspended->spec.job_class)) ++ahead;
  }
  return ahead;
}

std::vector<Scheduler::News> Scheduler::TakeNews() {
  places_changed_ = false;
  std::vector<News> news;
  if (queue_.empty()) return news;
  std::array<int, kJobClassCount> on_devices;
  for (int c = 0; c < kJobClassCount; ++c) on_devices[c] = AheadOnDevices(static_cast<JobClass>(c));
  int place = 0;
  for (const WaitingJob* job : queue_.Order(MeanJobSeconds())) {
    const EntryPtr& entry = entries_.at(job->id);
    const int ahead = place++ + on_devices[static_cast<int>(job->job_class)];
    if (!WorthTelling(entry->told_ahead, ahead)) continue;
    entry->told_ahead = ahead;
    news.push_back({entry, ahead});
  }
  return news;
}

void Scheduler::PlacesChanged() {
  places_changed_ = true;
  if (queue_.size() > kShortQueue) return;
  for (const News& item : TakeNews()) item.entry->listener->OnQueued(item.ahead);
}

void Scheduler::Tell(const std::vector<News>& news) {
  for (size_t begin = 0; begin < news.size(); begin += kShortQueue) {
    absl::MutexLock lock(&mutex_);
    const size_t end = std::min(begin + kShortQueue, news.size());
    for (size_t i = begin; i < end; ++i) {
      // It may have started, or ended, meanwhile.
      if (news[i].entry->waiting) news[i].entry->listener->OnQueued(news[i].ahead);
    }
  }
}

absl::Time Scheduler::NextHouseTick(absl::Time now) const {
  const absl::Time tick = now + kHouseTick;
  return expiries_.empty() ? tick : std::min(tick, expiries_.begin()->first);
}

void Scheduler::KeepHouse() {
  while (true) {
    std::vector<std::pair<EntryPtr, absl::Status>> expired;
    std::vector<News> news;
    {
      absl::MutexLock lock(&mutex_);
      // Woken by an expiry that is nearer than the one it sleeps for, too.
      const absl::Time planned = NextHouseTick(absl::Now());
      const auto wake = [this, planned]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stop_ || (!expiries_.empty() && expiries_.begin()->first < planned);
      };
      mutex_.AwaitWithDeadline(absl::Condition(&wake), planned);
      if (stop_) return;
      const absl::Time now = absl::Now();
      while (!expiries_.empty() && expiries_.begin()->first <= now) {
        EntryPtr entry = TakeWaiting(expiries_.begin()->second);
        absl::Status status = entry->cancellation.Check();
        if (status.ok()) status = WaitedTooLong();
        expired.emplace_back(std::move(entry), std::move(status));
      }
      if (!expired.empty()) places_changed_ = true;
      if (places_changed_) news = TakeNews();
    }
    for (const auto& [entry, status] : expired) EndUnstarted(entry, status);
    Tell(news);
  }
}

}  // namespace ltx::server
