#include "server/scheduler/scheduler.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "engine/pipeline/error_details.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/reasons.h"
#include "server/scheduler/fake_task.h"
#include "server/scheduler/scheduler_fixture.h"

namespace ltx::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string ReasonOf(const absl::Status& status) {
  const auto detail = pipeline::GetErrorDetail(status);
  return detail.has_value() ? detail->reason : "";
}

TEST_F(SchedulerTest, TellsOneJobsLifeInOrder) {
  MustSubmit(Spec("a"), Units(2));
  journal_.WaitFor("a ends OK");
  // The memory is gone before anybody hears of the end.
  EXPECT_THAT(journal_.Lines(), ElementsAre("a queued 0", "a starts", "a on device 0", "a unit 1",
                                            "a unit 2", "a freed", "a ends OK"));
  const Scheduler::Snapshot snapshot = scheduler_->Read();
  EXPECT_EQ(snapshot.succeeded, 1u);
  EXPECT_EQ(snapshot.units, 2u);
  EXPECT_EQ(snapshot.mean_job_seconds, 2.0);
  EXPECT_THAT(snapshot.running_ids, IsEmpty());
}

TEST_F(SchedulerTest, AnIdleDeviceHasWorkOfItsOwnUntilThatIsDone) {
  absl::Mutex mutex;
  int steps = 0;
  int left = 3;
  SchedulerHooks hooks;
  hooks.idle = [&] {
    absl::MutexLock lock(&mutex);
    ++steps;
    return --left > 0;
  };
  const auto wait_for = [&](int count) {
    absl::MutexLock lock(&mutex);
    const auto there = [&] { return steps >= count; };
    mutex.Await(absl::Condition(&there));
    EXPECT_EQ(steps, count);
    left = 2;
  };
  Make(Capacity(100), hooks);
  wait_for(3);
  // Again after a job, not while there are jobs.
  HoldDevice();
  MustSubmit(Spec("next"), Units(2));
  {
    absl::MutexLock lock(&mutex);
    EXPECT_EQ(steps, 3);
  }
  Release();
  journal_.WaitFor("next ends OK");
  wait_for(5);
  WaitIdle();
  scheduler_.reset();
  EXPECT_EQ(steps, 5);
}

TEST_F(SchedulerTest, AJobWaitsForOneStepOfIdleWorkAtMost) {
  absl::Notification begun;
  absl::Notification go_on;
  SchedulerHooks hooks;
  int steps = 0;
  hooks.idle = [&] {
    journal_.Write("idle");
    if (steps == 0) begun.Notify();
    go_on.WaitForNotification();
    return ++steps < 3;
  };
  Make(Capacity(100), hooks);
  begun.WaitForNotification();
  MustSubmit(Spec("a"), Units(1));
  go_on.Notify();
  journal_.WaitFor("a ends OK");
  const std::vector<std::string> lines = journal_.Lines();
  const auto start = std::find(lines.begin(), lines.end(), "a starts");
  EXPECT_EQ(std::count(lines.begin(), start, "idle"), 1);
  // The hook needs what stands here.
  scheduler_.reset();
}

/// Looks at the scheduler, and asks it for another job, as soon as it hears of the end.
class EagerListener final : public JobListener {
 public:
  explicit EagerListener(std::function<void()> on_end) : on_end_(std::move(on_end)) {}
  void OnQueued(int) override {}
  void OnStarted() override {}
  void OnSuspended() override {}
  void OnResumed() override {}
  void OnEnd(const absl::Status&) override { on_end_(); }

 private:
  const std::function<void()> on_end_;
};

TEST_F(SchedulerTest, WhoHearsOfTheEndFindsTheDeviceFree) {
  std::vector<std::string> running;
  const auto listener = std::make_shared<EagerListener>([this, &running] {
    running = scheduler_->Read().running_ids;
    MustSubmit(Spec("next"));
  });
  ASSERT_TRUE(
      scheduler_->Submit(Spec("a"), std::make_unique<FakeTask>("a", Units(1), &journal_), listener)
          .ok());
  journal_.WaitFor("next ends OK");
  EXPECT_THAT(running, IsEmpty());
  EXPECT_THAT(journal_.Lines("next queued"), ElementsAre("next queued 0"));
}

TEST_F(SchedulerTest, ADrainedSchedulerHasToldEveryEnd) {
  absl::Notification ends;
  absl::Notification go_on;
  bool told = false;
  const auto listener = std::make_shared<EagerListener>([&] {
    ends.Notify();
    go_on.WaitForNotification();
    told = true;
  });
  ASSERT_TRUE(
      scheduler_->Submit(Spec("a"), std::make_unique<FakeTask>("a", Units(1), &journal_), listener)
          .ok());
  ends.WaitForNotification();
  absl::Notification drained;
  std::thread drain([&] {
    scheduler_->Drain(absl::InfiniteDuration());
    EXPECT_TRUE(told);
    drained.Notify();
  });
  while (!scheduler_->Read().draining) absl::SleepFor(absl::Milliseconds(1));
  // The device is idle, but somebody does not know it yet.
  EXPECT_FALSE(drained.WaitForNotificationWithTimeout(absl::Milliseconds(20)));
  go_on.Notify();
  drain.join();
}

TEST_F(SchedulerTest, OneAtATimeInOrderOfArrivalAndEveryoneKnowsItsPlace) {
  HoldDevice();
  for (const char* id : {"a", "b", "c"}) MustSubmit(Spec(id));
  EXPECT_THAT(scheduler_->Read().running_ids, ElementsAre("holder"));
  EXPECT_EQ(scheduler_->Read().waiting[1], 3);
  EXPECT_THAT(journal_.Lines("starts"), ElementsAre("holder starts"));
  Release();
  for (const char* id : {"a", "b", "c"}) journal_.WaitFor(absl::StrCat(id, " ends OK"));
  EXPECT_THAT(journal_.Lines("starts"),
              ElementsAre("holder starts", "a starts", "b starts", "c starts"));
  EXPECT_THAT(journal_.Lines("c queued"), ElementsAre("c queued 3", "c queued 2", "c queued 1"));
}

TEST_F(SchedulerTest, RefusesAboveTheCapacityOfTheClass) {
  Make(Capacity(1));
  HoldDevice();
  MustSubmit(Spec("a"));
  const absl::Status refused = Submit(Spec("b"));
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(refused), kReasonQueueFull);
  MustSubmit(Spec("c", JobClass::kInteractive));
  Release();
  WaitIdle();
  // The refused job's listener heard nothing.
  EXPECT_THAT(journal_.Lines("b "), ElementsAre("b freed"));
}

TEST_F(SchedulerTest, CancelsTheOneJobAndNoOther) {
  HoldDevice();
  MustSubmit(Spec("a"));
  MustSubmit(Spec("b"));
  EXPECT_TRUE(scheduler_->Cancel("a"));
  // A waiting job ends at once.
  EXPECT_THAT(journal_.Lines("a "), ElementsAre("a queued 1", "a freed", "a ends CANCELLED"));
  EXPECT_THAT(journal_.Lines("b queued"), ElementsAre("b queued 2", "b queued 1"));
  EXPECT_FALSE(scheduler_->Cancel("a"));
  EXPECT_FALSE(scheduler_->Cancel("nobody"));
  Release();
  journal_.WaitFor("b ends OK");
  WaitIdle();
  EXPECT_EQ(scheduler_->Read().cancelled, 1u);
  EXPECT_EQ(scheduler_->Read().succeeded, 2u);
}

TEST_F(SchedulerTest, ARunningJobIsCancelledAfterItsUnitAndNothingSticks) {
  absl::Notification go_on;
  MustSubmit(Spec("a"), Held(5, &go_on));
  journal_.WaitFor("a unit 1");
  MustSubmit(Spec("b"), Units(3));
  EXPECT_TRUE(scheduler_->Cancel("a"));
  go_on.Notify();
  journal_.WaitFor("a ends CANCELLED");
  EXPECT_THAT(journal_.Lines("a unit"), ElementsAre("a unit 1"));
  journal_.WaitFor("b ends OK");
  EXPECT_THAT(journal_.Lines("b unit"), ElementsAre("b unit 1", "b unit 2", "b unit 3"));
}

TEST_F(SchedulerTest, AFailureIsOfOneJob) {
  MustSubmit(Spec("a"), {3, 1, [](int unit) {
                           return unit == 2 ? absl::InternalError("broken") : absl::OkStatus();
                         }});
  MustSubmit(Spec("b"));
  journal_.WaitFor("a ends INTERNAL");
  journal_.WaitFor("b ends OK");
  EXPECT_THAT(journal_.Lines("a unit"), ElementsAre("a unit 1", "a unit 2"));
  WaitIdle();
  EXPECT_EQ(scheduler_->Read().failed, 1u);
}

TEST_F(SchedulerTest, Deadlines) {
  JobSpec late = Spec("late");
  late.deadline = absl::Now() - absl::Seconds(1);
  EXPECT_EQ(Submit(late).code(), absl::StatusCode::kDeadlineExceeded);
  absl::Notification go_on;
  JobSpec slow = Spec("slow");
  slow.deadline = absl::Now() + absl::Milliseconds(50);
  MustSubmit(slow, Held(2, &go_on));
  journal_.WaitFor("slow unit 1");
  JobSpec waiting = Spec("waiting");
  waiting.deadline = absl::Now() + absl::Milliseconds(50);
  MustSubmit(waiting);
  // By itself: the device is still held.
  journal_.WaitFor("waiting ends DEADLINE_EXCEEDED");
  absl::SleepFor(slow.deadline - absl::Now());
  go_on.Notify();
  journal_.WaitFor("slow ends DEADLINE_EXCEEDED");
  EXPECT_THAT(journal_.Lines("slow unit"), ElementsAre("slow unit 1"));
  WaitIdle();
  EXPECT_EQ(scheduler_->Read().failed, 1u);
  EXPECT_EQ(scheduler_->Read().refused, 1u);
}

TEST_F(SchedulerTest, AJobWaitsNoLongerThanItMay) {
  HoldDevice();
  JobSpec impatient = Spec("impatient");
  impatient.start_by = absl::Now() + absl::Milliseconds(30);
  MustSubmit(impatient);
  MustSubmit(Spec("patient"));
  journal_.WaitFor("impatient ends DEADLINE_EXCEEDED");
  // The one behind moves up.
  journal_.WaitFor("patient queued 1");
  Release();
  journal_.WaitFor("patient ends OK");
  EXPECT_THAT(journal_.Lines("impatient starts"), IsEmpty());
}

TEST_F(SchedulerTest, DrainEndsWaitingJobsAndLetsTheRunningOneFinish) {
  HoldDevice();
  MustSubmit(Spec("waiting"));
  std::thread release([&] {
    journal_.WaitFor("waiting ends UNAVAILABLE");
    Release();
  });
  scheduler_->Drain(absl::InfiniteDuration());
  release.join();
  EXPECT_THAT(journal_.Lines("holder ends"), ElementsAre("holder ends OK"));
  const absl::Status refused = Submit(Spec("refused"));
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ReasonOf(refused), kReasonDraining);
  EXPECT_TRUE(scheduler_->Read().draining);
}

TEST_F(SchedulerTest, DrainAbandonsTheRunningJobAfterTheGrace) {
  MustSubmit(Spec("endless"), {1 << 30, 1, [](int) {
                                 absl::SleepFor(absl::Milliseconds(1));
                                 return absl::OkStatus();
                               }});
  journal_.WaitFor("endless unit 1");
  scheduler_->Drain(absl::Milliseconds(20));
  EXPECT_THAT(journal_.Lines("endless ends"), ElementsAre("endless ends UNAVAILABLE"));
}

TEST_F(SchedulerTest, ABatchJobYieldsToAnInteractiveOneAndGoesOnBeforeItsEquals) {
  absl::Notification go_on;
  MustSubmit(Spec("batch"), Held(3, &go_on));
  journal_.WaitFor("batch unit 1");
  MustSubmit(Spec("equal", JobClass::kBatch, "other"));
  MustSubmit(Spec("urgent", JobClass::kInteractive), Units(2));
  go_on.Notify();
  journal_.WaitFor("equal ends OK");
  std::vector<std::string> lines = journal_.Lines();
  lines.erase(std::remove_if(lines.begin(), lines.end(),
                             [](const std::string& line) {
                               return line.find("queued") != std::string::npos ||
                                      line.find("device") != std::string::npos ||
                                      line.find("freed") != std::string::npos;
                             }),
              lines.end());
  EXPECT_THAT(lines, ElementsAre("batch starts", "batch unit 1", "batch suspended", "urgent starts",
                                 "urgent unit 1", "urgent unit 2", "urgent ends OK",
                                 "batch resumed", "batch unit 2", "batch unit 3", "batch ends OK",
                                 "equal starts", "equal unit 1", "equal ends OK"));
  EXPECT_EQ(scheduler_->Read().suspensions, 1u);
}

TEST_F(SchedulerTest, InteractiveJobsDoNotYield) {
  absl::Notification go_on;
  MustSubmit(Spec("first", JobClass::kInteractive), Held(3, &go_on));
  journal_.WaitFor("first unit 1");
  MustSubmit(Spec("second", JobClass::kInteractive, "other"));
  go_on.Notify();
  journal_.WaitFor("second ends OK");
  EXPECT_THAT(journal_.Lines("suspended"), IsEmpty());
}

TEST_F(SchedulerTest, ADeviceThatWasIdleKnowsNoDebts) {
  // `a` is in debt to `b` when both are done.
  absl::Notification go_on;
  MustSubmit(Spec("long", JobClass::kBatch, "a"), Held(5, &go_on));
  journal_.WaitFor("long unit 1");
  MustSubmit(Spec("short", JobClass::kBatch, "b"));
  go_on.Notify();
  journal_.WaitFor("short ends OK");
  HoldDevice();
  MustSubmit(Spec("first", JobClass::kBatch, "a"));
  MustSubmit(Spec("second", JobClass::kBatch, "b"));
  Release();
  for (const char* id : {"first", "second"}) journal_.WaitFor(absl::StrCat(id, " ends OK"));
  EXPECT_THAT(journal_.Lines(" starts"), ElementsAre("long starts", "short starts", "holder starts",
                                                     "first starts", "second starts"));
}

TEST_F(SchedulerTest, AJobThatMayNotBeSuspendedGoesOn) {
  SchedulerHooks hooks;
  hooks.may_suspend = [](const JobSpec& running, const JobSpec& next) {
    EXPECT_EQ(running.id, "batch");
    return next.id == "small";
  };
  Make(Capacity(100), std::move(hooks));
  absl::Notification go_on;
  MustSubmit(Spec("batch"), Held(3, &go_on));
  journal_.WaitFor("batch unit 1");
  MustSubmit(Spec("large", JobClass::kInteractive));
  go_on.Notify();
  journal_.WaitFor("large ends OK");
  EXPECT_THAT(journal_.Lines("suspended"), IsEmpty());
  EXPECT_THAT(journal_.Lines("starts"), ElementsAre("batch starts", "large starts"));
}

TEST_F(SchedulerTest, ASuspendedJobIsCancelledAfterTheUnitOfTheOther) {
  absl::Notification start_urgent;
  absl::Notification go_on;
  MustSubmit(Spec("batch"), Held(3, &start_urgent));
  journal_.WaitFor("batch unit 1");
  MustSubmit(Spec("urgent", JobClass::kInteractive), Held(3, &go_on));
  start_urgent.Notify();
  journal_.WaitFor("urgent unit 1");
  EXPECT_THAT(scheduler_->Read().suspended_ids, ElementsAre("batch"));
  EXPECT_THAT(scheduler_->Read().running_ids, ElementsAre("urgent"));
  EXPECT_TRUE(scheduler_->Cancel("batch"));
  go_on.Notify();
  journal_.WaitFor("urgent ends OK");
  const std::vector<std::string> lines = journal_.Lines();
  const auto at = [&lines](const std::string& line) {
    return std::find(lines.begin(), lines.end(), line) - lines.begin();
  };
  EXPECT_LT(at("batch freed"), at("batch ends CANCELLED"));
  EXPECT_LT(at("urgent unit 1"), at("batch freed"));
  EXPECT_LT(at("batch ends CANCELLED"), at("urgent unit 2"));
  EXPECT_THAT(journal_.Lines("batch resumed"), IsEmpty());
}

TEST_F(SchedulerTest, TheOutlookIsTheOneOfAdmission) {
  QueueOutlook admitted;
  SchedulerHooks hooks;
  hooks.admit = [&](const JobSpec&, const std::function<QueueOutlook()>& outlook) {
    admitted = outlook();
    return absl::OkStatus();
  };
  Make(Capacity(10), std::move(hooks));
  HoldDevice();
  int id = 0;
  const auto submit = [&](JobClass job_class, const std::string& tenant, double seconds) {
    const QueueOutlook before = scheduler_->Outlook(tenant, job_class);
    EXPECT_EQ(scheduler_->Outlook(tenant, job_class).jobs_ahead, before.jobs_ahead);
    JobSpec spec = Spec(absl::StrCat("job", id++), job_class, tenant);
    spec.expected_seconds = seconds;
    MustSubmit(spec);
    EXPECT_EQ(before.jobs_ahead, admitted.jobs_ahead) << spec.id;
    EXPECT_EQ(before.seconds_ahead, admitted.seconds_ahead) << spec.id;
    return before;
  };
  submit(JobClass::kBatch, "a", 5);
  submit(JobClass::kBatch, "a", 7);
  EXPECT_EQ(submit(JobClass::kBatch, "a", 1).seconds_ahead, 12);
  // A class above sees none of them, another tenant only those whose turn comes first.
  EXPECT_EQ(submit(JobClass::kInteractive, "b", 3).seconds_ahead, 0);
  EXPECT_EQ(submit(JobClass::kBatch, "c", 3).seconds_ahead, 3 + 5);
  EXPECT_EQ(scheduler_->Read().total_waiting(), 5);
  Release();
}

TEST_F(SchedulerTest, TheHookDecidesOnAdmissionAndKnowsTheOutlook) {
  SchedulerHooks hooks;
  QueueOutlook seen;
  hooks.admit = [&seen](const JobSpec& job, const std::function<QueueOutlook()>& outlook) {
    if (job.id != "refused") return absl::OkStatus();
    seen = outlook();
    return absl::FailedPreconditionError("does not fit");
  };
  Make(Capacity(100), std::move(hooks));
  HoldDevice();
  const auto expecting = [](JobSpec spec, double seconds) {
    spec.expected_seconds = seconds;
    return spec;
  };
  MustSubmit(expecting(Spec("a"), 10));
  MustSubmit(expecting(Spec("b", JobClass::kInteractive), 20));
  MustSubmit(expecting(Spec("c", JobClass::kBatch, "other"), 40));
  EXPECT_EQ(Submit(Spec("refused", JobClass::kInteractive)).code(),
            absl::StatusCode::kFailedPrecondition);
  // The holder, of unknown length, and b.
  EXPECT_EQ(seen.jobs_ahead, 2);
  EXPECT_EQ(seen.seconds_ahead, 20.0);
  EXPECT_EQ(Submit(Spec("refused", JobClass::kBatch)).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(seen.jobs_ahead, 4);
  EXPECT_EQ(seen.seconds_ahead, 70.0);
  EXPECT_EQ(scheduler_->Read().waiting[0] + scheduler_->Read().waiting[1], 3);
  Release();
  WaitIdle();
}

TEST_F(SchedulerTest, EveryDeviceHasItsOwnJob) {
  SchedulerOptions options = Capacity(100);
  options.devices = 2;
  Make(options);
  absl::Notification go_on;
  MustSubmit(Spec("a"), Held(1, &go_on));
  MustSubmit(Spec("b"), Held(1, &go_on));
  journal_.WaitFor("a unit 1");
  journal_.WaitFor("b unit 1");
  EXPECT_THAT(scheduler_->Read().running_ids, ::testing::UnorderedElementsAre("a", "b"));
  EXPECT_EQ(journal_.Lines("on device 0").size(), 1u);
  EXPECT_EQ(journal_.Lines("on device 1").size(), 1u);
  go_on.Notify();
  WaitIdle();
}

/// 2,000 jobs of 16 clients and 4 tenants: each ends once, and as long as all tenants have jobs
/// waiting they get what their weights say.
TEST_F(SchedulerTest, ManyJobsOfManyClients) {
  constexpr int kClients = 16;
  constexpr int kJobs = 125;
  const std::map<std::string, double> weights = {{"t0", 1}, {"t1", 2}, {"t2", 3}, {"t3", 4}};
  SchedulerOptions options = Capacity(kClients * kJobs);
  options.tenant_weights = weights;
  Make(options);
  HoldDevice();
  std::vector<std::thread> clients;
  clients.reserve(kClients);
  for (int client = 0; client < kClients; ++client) {
    clients.emplace_back([this, client] {
      for (int i = 0; i < kJobs; ++i) {
        const std::string tenant = absl::StrCat("t", client % 4);
        MustSubmit(Spec(absl::StrCat(tenant, "-", client, "-", i), JobClass::kBatch, tenant),
                   Units(3));
      }
    });
  }
  for (std::thread& client : clients) client.join();
  Release();
  while (scheduler_->Read().succeeded < kClients * kJobs + 1) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  WaitIdle();
  const std::vector<std::string> ends = journal_.Lines(" ends OK");
  EXPECT_EQ(ends.size(), static_cast<size_t>(kClients * kJobs + 1));
  EXPECT_EQ(std::set<std::string>(ends.begin(), ends.end()).size(), ends.size());
  // t3's 500 jobs are through when 1,250 are; until 1,000 everybody has some.
  std::map<std::string, int> served;
  for (int i = 1; i <= 1000; ++i) ++served[ends[i].substr(0, 2)];
  for (const auto& [tenant, weight] : weights) {
    EXPECT_NEAR(served[tenant], 100 * weight, 0.05 * 100 * weight) << tenant;
  }
}

}  // namespace
}  // namespace ltx::server
