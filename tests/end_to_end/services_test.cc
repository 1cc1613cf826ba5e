#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "client/video_client.h"
#include "server/loopback_services.h"
#include "tests/end_to_end/background_job.h"
#include "tests/end_to_end/limit.h"
#include "tests/end_to_end/subprocess.h"
#include "tests/end_to_end/wire_calls.h"

namespace ltx::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

/// Of calls that are to miss it: enough for being queued on a busy machine.
constexpr absl::Duration kDeadline = absl::Seconds(1);

v1::GenerateVideoRequest Request(const std::string& prompt) {
  v1::GenerateVideoRequest request;
  request.set_prompt(prompt);
  return request;
}

/// What clients see of the services while jobs wait, run and end, over an engine whose units last
/// as long as a test wants. Jobs of the prompt "held" stay in their first unit until Release(),
/// those of "endless" have a unit every millisecond and no last one; others are done at once.
class ServicesTest : public ::testing::Test {
 protected:
  ServicesTest() {
    server::FakeGeneration::Options held;
    held.run = [this](int) {
      release_.WaitForNotification();
      return absl::OkStatus();
    };
    engine_.Set("held", held);
    server::FakeGeneration::Options endless;
    endless.units = 1 << 30;
    endless.run = [this](int) {
      ++endless_units_;
      absl::SleepFor(absl::Milliseconds(1));
      return absl::OkStatus();
    };
    engine_.Set("endless", endless);
    options_.jobs.scratch_dir = MakeFolder();
    options_.jobs.artifact_quota_bytes = 1 << 20;
  }
  ~ServicesTest() override { Release(); }

  void Start() {
    auto services = server::LoopbackServices::Start(options_, &engine_);
    ASSERT_TRUE(services.ok()) << services.status();
    services_ = *std::move(services);
    client_ = client::VideoClient::Connect(address(), kLimit).value();
  }
  void Release() {
    if (!release_.HasBeenNotified()) release_.Notify();
  }
  std::string address() const { return services_->address(); }
  std::string File(const std::string& name) const { return folder_ + "/" + name; }

  std::unique_ptr<BackgroundJob> Call(const std::string& prompt,
                                      absl::Time deadline = absl::InfiniteFuture()) {
    return std::make_unique<BackgroundJob>(address(), Request(prompt), File(prompt + ".mp4"),
                                           deadline);
  }
  /// A call that has the device until Release().
  std::unique_ptr<BackgroundJob> Hold() {
    auto job = Call("held");
    EXPECT_TRUE(job->WaitForAdmission());
    return job;
  }
  static bool WaitForPlace(BackgroundJob* job, int place) {
    return job->WaitForEvent([place](const v1::GenerateVideoEvent& event) {
      return event.has_queued() && event.queued().position() == place;
    });
  }
  /// Places told to the job, repetitions left out.
  static std::vector<int> Places(const BackgroundJob& job) {
    std::vector<int> places;
    for (const v1::GenerateVideoEvent& event : job.events()) {
      if (!event.has_queued()) continue;
      if (places.empty() || places.back() != event.queued().position()) {
        places.push_back(event.queued().position());
      }
    }
    return places;
  }
  v1::Job AwaitAnyOf(const std::string& id, const std::set<v1::JobState>& states) {
    const absl::Time limit = absl::Now() + kLimit;
    auto job = client_->GetJob(id);
    while (job.ok() && states.count(job->state()) == 0 && absl::Now() < limit) {
      absl::SleepFor(absl::Milliseconds(1));
      job = client_->GetJob(id);
    }
    EXPECT_TRUE(job.ok()) << job.status();
    if (!job.ok()) return {};
    EXPECT_EQ(states.count(job->state()), 1u) << job->ShortDebugString();
    return *job;
  }
  v1::Job AwaitState(const std::string& id, v1::JobState state) { return AwaitAnyOf(id, {state}); }

  absl::Notification release_;
  std::atomic<int> endless_units_{0};
  const std::string folder_ = MakeFolder();
  server::FakeEngine engine_;
  server::LoopbackServices::Options options_;
  std::unique_ptr<server::LoopbackServices> services_;
  std::unique_ptr<client::VideoClient> client_;
};

TEST_F(ServicesTest, WaitingJobsKnowTheirPlace) {
  options_.jobs.scheduler.capacity = 2;
  Start();
  // The server learns how long a job takes: three units of a second, as the fake says.
  ASSERT_TRUE(Call("first")->Join().ok());
  // Whoever hears of the end finds the device free.
  const auto running = Hold();
  EXPECT_THAT(Places(*running), ElementsAre(0));
  const auto second = Call("second");
  ASSERT_TRUE(WaitForPlace(second.get(), 1));
  const auto third = Call("third");
  ASSERT_TRUE(WaitForPlace(third.get(), 2));

  const v1::QueueInfo queue = ReadHealth(address()).queue();
  EXPECT_EQ(queue.waiting(), 2);
  EXPECT_EQ(queue.capacity(), 2);
  EXPECT_EQ(queue.running_job_id(), running->id());
  EXPECT_EQ(queue.running_phase(), v1::PHASE_STAGE_1);

  // One more than may wait.
  const WireError refused = CallGenerate(address(), Request("fourth")).error;
  EXPECT_EQ(refused.code, absl::StatusCode::kResourceExhausted) << refused.message;
  EXPECT_EQ(refused.reason, "QUEUE_FULL");
  EXPECT_THAT(refused.message, HasSubstr("2 jobs wait"));
  EXPECT_EQ(refused.retry_seconds, 4);

  Release();
  ASSERT_TRUE(running->Join().ok());
  ASSERT_TRUE(second->Join().ok());
  ASSERT_TRUE(third->Join().ok());
  EXPECT_THAT(Places(*running), ElementsAre(0));
  EXPECT_THAT(Places(*second), ElementsAre(1));
  EXPECT_THAT(Places(*third), ElementsAre(2, 1));
}

TEST_F(ServicesTest, ARunningJobEndsWithItsCall) {
  Start();
  const auto running = Call("endless");
  ASSERT_TRUE(running->WaitForEvent([](const auto& event) { return event.has_progress(); }));
  running->Cancel();
  EXPECT_EQ(running->Join().status().code(), absl::StatusCode::kCancelled);
  const v1::Job job = AwaitState(running->id(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(job.progress().units_done(), endless_units_);
  EXPECT_THAT(ListFolder(folder_), IsEmpty());
  EXPECT_EQ(ReadHealth(address()).queue().cancelled_jobs(), 1u);
  EXPECT_TRUE(Call("next")->Join().ok());
}

TEST_F(ServicesTest, AWaitingJobEndsWithItsCallAtOnce) {
  Start();
  const auto running = Hold();
  const auto waiting = Call("waiting");
  ASSERT_TRUE(WaitForPlace(waiting.get(), 1));
  waiting->Cancel();
  EXPECT_EQ(waiting->Join().status().code(), absl::StatusCode::kCancelled);
  const v1::Job job = AwaitState(waiting->id(), v1::JOB_STATE_CANCELLED);
  EXPECT_FALSE(job.has_start_time());
  EXPECT_FALSE(running->ended());
  Release();
  EXPECT_TRUE(running->Join().ok());
}

TEST_F(ServicesTest, CancelledByIdAndNoOther) {
  Start();
  const auto running = client_->Submit(Request("held"), kLimit);
  const auto waiting = client_->Submit(Request("waiting"), kLimit);
  const auto other = client_->Submit(Request("other"), kLimit);
  ASSERT_TRUE(running.ok() && waiting.ok() && other.ok());
  AwaitState(*running, v1::JOB_STATE_RUNNING);
  // Waiting is not running.
  EXPECT_EQ(client_->GetJob(*waiting)->state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(client_->GetJob(*other)->jobs_ahead(), 2);
  const auto cancelled = client_->CancelJob(*waiting);
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  EXPECT_EQ(cancelled->state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(client_->GetJob(*running)->state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(client_->GetJob(*other)->state(), v1::JOB_STATE_QUEUED);
  ASSERT_TRUE(client_->DeleteJob(*running).ok());
  Release();
  AwaitState(*other, v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(client_->GetJob(*running).status().code(), absl::StatusCode::kNotFound);
  v1::WatchJobRequest watch;
  watch.set_job_id(*waiting);
  EXPECT_EQ(CallWatch(address(), watch).error.code, absl::StatusCode::kCancelled);
}

TEST_F(ServicesTest, OneKeyIsOneJob) {
  Start();
  v1::GenerateVideoRequest request = Request("held");
  request.set_request_id("key");
  BackgroundJob first(address(), request, File("first.mp4"));
  ASSERT_TRUE(first.WaitForAdmission());
  BackgroundJob second(address(), request, File("second.mp4"));
  ASSERT_TRUE(second.WaitForAdmission());
  EXPECT_EQ(second.id(), first.id());
  // The job lives as long as one of them wants it.
  first.Cancel();
  EXPECT_EQ(first.Join().status().code(), absl::StatusCode::kCancelled);
  Release();
  const auto report = second.Join();
  EXPECT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(ListFolder(folder_), ElementsAre("second.mp4"));
}

TEST_F(ServicesTest, DeadlineOfARunningJob) {
  Start();
  const auto late = Call("endless", absl::Now() + kDeadline);
  EXPECT_EQ(late->Join().status().code(), absl::StatusCode::kDeadlineExceeded);
  // The server's clock and the client's hanging up are a race.
  AwaitAnyOf(late->id(), {v1::JOB_STATE_FAILED, v1::JOB_STATE_CANCELLED});
  EXPECT_THAT(ListFolder(folder_), IsEmpty());
  EXPECT_TRUE(Call("next")->Join().ok());
}

TEST_F(ServicesTest, DeadlineOfAWaitingJob) {
  Start();
  const auto running = Hold();
  const auto late = Call("late", absl::Now() + kDeadline);
  EXPECT_EQ(late->Join().status().code(), absl::StatusCode::kDeadlineExceeded);
  const v1::Job job = AwaitAnyOf(late->id(), {v1::JOB_STATE_REFUSED, v1::JOB_STATE_CANCELLED});
  EXPECT_FALSE(job.has_start_time());
  EXPECT_FALSE(running->ended());
}

TEST_F(ServicesTest, QueueTimeoutIsToldByName) {
  Start();
  const auto running = Hold();
  v1::GenerateVideoRequest request = Request("impatient");
  request.set_queue_timeout_seconds(0.05);
  const WireStream stream = CallGenerate(address(), request);
  EXPECT_EQ(stream.error.code, absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(stream.error.reason, "QUEUE_TIMEOUT");
  ASSERT_FALSE(stream.events.empty());
  AwaitState(stream.events[0].queued().job_id(), v1::JOB_STATE_REFUSED);
  EXPECT_EQ(ReadHealth(address()).queue().refused_jobs(), 1u);
}

TEST_F(ServicesTest, QuotaOfJobs) {
  options_.jobs.tenant_max_jobs = 1;
  Start();
  const auto running = Hold();
  const WireError second = CallGenerate(address(), Request("second")).error;
  EXPECT_EQ(second.code, absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(second.reason, "TENANT_QUOTA");
  EXPECT_EQ(second.legal, "at most 1");
  Release();
  ASSERT_TRUE(running->Join().ok());
  // Whoever hears of the end may come again.
  EXPECT_EQ(CallGenerate(address(), Request("second")).error.code, absl::StatusCode::kOk);
}

TEST_F(ServicesTest, ADrainingServerFinishesTheRunningJobOnly) {
  Start();
  const auto running = Hold();
  const auto waiting = Call("waiting");
  ASSERT_TRUE(WaitForPlace(waiting.get(), 1));
  std::thread drain([this] { services_->jobs().Drain(absl::InfiniteDuration()); });
  const absl::Status refused = waiting->Join().status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("DRAINING"));
  // It still answers, and takes nothing new.
  EXPECT_EQ(ReadHealth(address()).state(), v1::HealthResponse::STATE_DRAINING);
  const WireError late = CallGenerate(address(), Request("late")).error;
  EXPECT_EQ(late.code, absl::StatusCode::kUnavailable) << late.message;
  EXPECT_EQ(late.reason, "DRAINING");
  EXPECT_FALSE(running->ended());
  Release();
  EXPECT_TRUE(running->Join().ok());
  drain.join();
  EXPECT_THAT(ListFolder(folder_), UnorderedElementsAre("held.mp4"));
}

}  // namespace
}  // namespace ltx::testing
