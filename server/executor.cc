#include "server/executor.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/pipeline/error_details.h"
#include "kernels/status_macros.h"
#include "server/reasons.h"

namespace ltx::server {

Executor::Executor(int capacity) : capacity_(capacity), thread_([this] { Loop(); }) {}

Executor::~Executor() {
  Drain(absl::ZeroDuration());
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  thread_.join();
}

absl::Status Executor::Submit(std::shared_ptr<Job> job) {
  LTX_RETURN_IF_ERROR(job->cancellation().Check());
  absl::MutexLock lock(&mutex_);
  if (draining_) return ShuttingDown();
  if (static_cast<int>(waiting_.size()) >= capacity_) {
    return pipeline::WithDetail(
        absl::ResourceExhaustedError(
            absl::StrCat("the queue is full: ", waiting_.size(), " jobs wait, and no more may")),
        {std::string(kReasonQueueFull), "", "", ""});
  }
  waiting_.push_back({std::move(job)});
  // Under the lock, so that nobody hears of running before hearing of the queue.
  AnnouncePositions();
  return absl::OkStatus();
}

void Executor::Cancel(Job* job) {
  job->cancellation().Cancel();
  std::shared_ptr<Job> removed;
  {
    absl::MutexLock lock(&mutex_);
    const auto found =
        std::find_if(waiting_.begin(), waiting_.end(),
                     [job](const Waiting& waiting) { return waiting.job.get() == job; });
    if (found == waiting_.end()) return;
    removed = std::move(found->job);
    waiting_.erase(found);
    AnnouncePositions();
  }
  EndUnrun(removed, removed->cancellation().Check());
}

void Executor::Drain(absl::Duration grace) {
  std::deque<Waiting> unrun;
  {
    absl::MutexLock lock(&mutex_);
    draining_ = true;
    unrun.swap(waiting_);
  }
  for (const Waiting& waiting : unrun) EndUnrun(waiting.job, ShuttingDown());
  absl::MutexLock lock(&mutex_);
  const auto idle = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return running_ == nullptr; };
  if (mutex_.AwaitWithTimeout(absl::Condition(&idle), grace)) return;
  running_->cancellation().Abandon();
  mutex_.Await(absl::Condition(&idle));
}

Executor::Snapshot Executor::Read() const {
  absl::MutexLock lock(&mutex_);
  Snapshot snapshot = counts_;
  snapshot.waiting = static_cast<int>(waiting_.size());
  snapshot.capacity = capacity_;
  snapshot.draining = draining_;
  if (running_ != nullptr) snapshot.running_id = running_->id();
  if (snapshot.succeeded > 0) {
    snapshot.mean_job_seconds = seconds_of_succeeded_ / snapshot.succeeded;
  }
  return snapshot;
}

void Executor::EndUnrun(const std::shared_ptr<Job>& job, const absl::Status& status) {
  {
    absl::MutexLock lock(&mutex_);
    CountEnd(status);
  }
  job->OnEnd(status);
}

void Executor::CountEnd(const absl::Status& status) {
  if (status.ok()) {
    ++counts_.succeeded;
  } else if (absl::IsCancelled(status)) {
    ++counts_.cancelled;
  } else {
    ++counts_.failed;
  }
}

void Executor::AnnouncePositions() {
  int ahead = running_ != nullptr ? 1 : 0;
  for (Waiting& waiting : waiting_) {
    if (waiting.announced != ahead) waiting.job->OnQueued(ahead);
    waiting.announced = ahead++;
  }
}

void Executor::Loop() {
  while (true) {
    std::shared_ptr<Job> job;
    {
      absl::MutexLock lock(&mutex_);
      const auto wake = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
        return stop_ || !waiting_.empty();
      };
      mutex_.Await(absl::Condition(&wake));
      if (stop_) return;
      job = std::move(waiting_.front().job);
      waiting_.pop_front();
      running_ = job;
      AnnouncePositions();
    }
    const absl::Time start = absl::Now();
    absl::Status status = job->cancellation().Check();
    if (status.ok()) status = job->Run();
    {
      absl::MutexLock lock(&mutex_);
      CountEnd(status);
      if (status.ok()) seconds_of_succeeded_ += absl::ToDoubleSeconds(absl::Now() - start);
    }
    job->OnEnd(status);
    // The job's memory must be gone before anybody sees the device as idle.
    job.reset();
    {
      absl::MutexLock lock(&mutex_);
      running_.reset();
    }
  }
}

}  // namespace ltx::server
