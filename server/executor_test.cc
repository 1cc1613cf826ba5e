#include "server/executor.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "engine/pipeline/error_details.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/reasons.h"

namespace ltx::server {
namespace {

using ::testing::ElementsAre;

/// Counts what happens to it; runs until released or cancelled.
class FakeJob final : public Job {
 public:
  explicit FakeJob(std::string id, absl::Time deadline = absl::InfiniteFuture())
      : Job(std::move(id), deadline) {}

  void OnQueued(int ahead) override {
    absl::MutexLock lock(&mutex_);
    positions_.push_back(ahead);
  }
  absl::Status Run() override {
    started_.Notify();
    while (!released_.HasBeenNotified()) {
      if (absl::Status status = cancellation().Check(); !status.ok()) return status;
      absl::SleepFor(absl::Milliseconds(1));
    }
    return absl::OkStatus();
  }
  void OnEnd(const absl::Status& status) override {
    absl::MutexLock lock(&mutex_);
    ASSERT_EQ(++ends_, 1) << id();
    end_ = status;
    ended_.Notify();
  }

  void Release() { released_.Notify(); }
  void WaitStarted() { started_.WaitForNotification(); }
  bool started() const { return started_.HasBeenNotified(); }
  absl::Status WaitEnd() {
    ended_.WaitForNotification();
    absl::MutexLock lock(&mutex_);
    return end_;
  }
  std::vector<int> positions() {
    absl::MutexLock lock(&mutex_);
    return positions_;
  }

 private:
  absl::Mutex mutex_;
  std::vector<int> positions_;
  int ends_ = 0;
  absl::Status end_;
  absl::Notification started_, released_, ended_;
};

std::string ReasonOf(const absl::Status& status) {
  const auto detail = pipeline::GetErrorDetail(status);
  return detail.has_value() ? detail->reason : "";
}

TEST(ExecutorTest, RunsInOrderOneAtATime) {
  Executor executor(8);
  std::vector<std::shared_ptr<FakeJob>> jobs;
  for (int i = 0; i < 4; ++i) {
    jobs.push_back(std::make_shared<FakeJob>(absl::StrCat(i)));
    ASSERT_TRUE(executor.Submit(jobs.back()).ok());
    if (i == 0) jobs[0]->WaitStarted();
  }
  for (int i = 0; i < 4; ++i) {
    jobs[i]->WaitStarted();
    EXPECT_EQ(executor.Read().running_id, absl::StrCat(i));
    for (int later = i + 1; later < 4; ++later) EXPECT_FALSE(jobs[later]->started());
    jobs[i]->Release();
    EXPECT_TRUE(jobs[i]->WaitEnd().ok());
  }
  EXPECT_THAT(jobs[3]->positions(), ElementsAre(3, 2, 1));
  executor.Drain(absl::InfiniteDuration());
  EXPECT_EQ(executor.Read().succeeded, 4);
  EXPECT_EQ(executor.Read().running_id, "");
}

TEST(ExecutorTest, RefusesAboveItsCapacity) {
  Executor executor(1);
  const auto running = std::make_shared<FakeJob>("running");
  ASSERT_TRUE(executor.Submit(running).ok());
  running->WaitStarted();
  const auto waiting = std::make_shared<FakeJob>("waiting");
  ASSERT_TRUE(executor.Submit(waiting).ok());
  const absl::Status refused = executor.Submit(std::make_shared<FakeJob>("refused"));
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(refused), kReasonQueueFull);
  running->Release();
  waiting->Release();
  EXPECT_TRUE(waiting->WaitEnd().ok());
}

TEST(ExecutorTest, CancelsTheOneJobAndNoOther) {
  Executor executor(8);
  const auto first = std::make_shared<FakeJob>("first");
  const auto second = std::make_shared<FakeJob>("second");
  const auto third = std::make_shared<FakeJob>("third");
  for (const auto& job : {first, second, third}) ASSERT_TRUE(executor.Submit(job).ok());
  first->WaitStarted();
  executor.Cancel(second.get());
  EXPECT_EQ(second->WaitEnd().code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(second->started());
  executor.Cancel(first.get());
  EXPECT_EQ(first->WaitEnd().code(), absl::StatusCode::kCancelled);
  third->Release();
  EXPECT_TRUE(third->WaitEnd().ok());
  executor.Drain(absl::InfiniteDuration());
  EXPECT_EQ(executor.Read().cancelled, 2);
  EXPECT_EQ(executor.Read().succeeded, 1);
  executor.Cancel(third.get());  // Too late, and harmless.
}

TEST(ExecutorTest, RefusesADeadlineInThePastAndEndsAtOneThatPasses) {
  Executor executor(8);
  const auto late = std::make_shared<FakeJob>("late", absl::Now() - absl::Seconds(1));
  EXPECT_EQ(executor.Submit(late).code(), absl::StatusCode::kDeadlineExceeded);
  const auto slow = std::make_shared<FakeJob>("slow", absl::Now() + absl::Milliseconds(30));
  ASSERT_TRUE(executor.Submit(slow).ok());
  EXPECT_EQ(slow->WaitEnd().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(ExecutorTest, DrainEndsWaitingJobsAndLetsTheRunningOneFinish) {
  Executor executor(8);
  const auto running = std::make_shared<FakeJob>("running");
  const auto waiting = std::make_shared<FakeJob>("waiting");
  ASSERT_TRUE(executor.Submit(running).ok());
  running->WaitStarted();
  ASSERT_TRUE(executor.Submit(waiting).ok());
  std::thread release([&] {
    EXPECT_EQ(waiting->WaitEnd().code(), absl::StatusCode::kUnavailable);
    running->Release();
  });
  executor.Drain(absl::InfiniteDuration());
  release.join();
  EXPECT_TRUE(running->WaitEnd().ok());
  const absl::Status refused = executor.Submit(std::make_shared<FakeJob>("refused"));
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ReasonOf(refused), kReasonDraining);
}

TEST(ExecutorTest, DrainAbandonsTheRunningJobAfterTheGrace) {
  Executor executor(8);
  const auto running = std::make_shared<FakeJob>("running");
  ASSERT_TRUE(executor.Submit(running).ok());
  running->WaitStarted();
  executor.Drain(absl::Milliseconds(20));
  EXPECT_EQ(running->WaitEnd().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace ltx::server
