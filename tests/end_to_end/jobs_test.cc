#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/video_client.h"
#include "tests/end_to_end/background_job.h"
#include "tests/end_to_end/server_process.h"
#include "tests/end_to_end/subprocess.h"
#include "tests/end_to_end/wire_calls.h"

namespace ltx::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::Duration kLimit = absl::Seconds(60);

bool IsOver(const v1::Job& job) {
  return job.state() != v1::JOB_STATE_QUEUED && job.state() != v1::JOB_STATE_RUNNING;
}

v1::WatchJobRequest WatchRequest(const std::string& id, bool skip_media = false) {
  v1::WatchJobRequest request;
  request.set_job_id(id);
  request.set_skip_media(skip_media);
  return request;
}

/// Jobs that outlive their calls, on a server that keeps them.
class JobsTest : public ::testing::Test {
 protected:
  void SetUp() override { StartServer(); }
  void StartServer() {
    client_.reset();
    server_.reset();
    auto server = ServerProcess::Start({"--state-dir", state_dir_});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    auto client = client::VideoClient::Connect(server_->address(), kLimit);
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }
  const std::string& address() const { return server_->address(); }
  std::string File(const std::string& name) const { return folder_ + "/" + name; }

  std::string Submit(const v1::GenerateVideoRequest& request) {
    const auto id = client_->Submit(request, kLimit);
    EXPECT_TRUE(id.ok()) << id.status();
    return id.ok() ? *id : "";
  }
  v1::Job Get(const std::string& id) {
    const auto job = client_->GetJob(id);
    EXPECT_TRUE(job.ok()) << job.status();
    return job.ok() ? *job : v1::Job();
  }
  /// Waits until `done` says so; polls often against what units take.
  template <typename Done>
  v1::Job Await(const std::string& id, const Done& done) {
    const absl::Time limit = absl::Now() + kLimit;
    v1::Job job = Get(id);
    while (!done(job) && absl::Now() < limit) {
      absl::SleepFor(absl::Milliseconds(1));
      job = Get(id);
    }
    EXPECT_TRUE(done(job)) << job.ShortDebugString();
    return job;
  }
  v1::Job AwaitEnd(const std::string& id) { return Await(id, IsOver); }
  /// The clip of a finished job.
  std::string Download(const std::string& id) {
    const std::string path = File(id + ".mp4");
    const auto report = client_->Watch(WatchRequest(id), path, {});
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? ReadWholeFile(path) : "";
  }
  /// The same request made and waited for.
  std::string Undisturbed(const v1::GenerateVideoRequest& request) {
    const std::string path = File("undisturbed.mp4");
    const auto report = client_->Generate(request, path, {});
    EXPECT_TRUE(report.ok()) << report.status();
    return ReadWholeFile(path);
  }

  const std::string folder_ = MakeFolder();
  const std::string state_dir_ = MakeFolder();
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<client::VideoClient> client_;
};

TEST_F(JobsTest, ADetachedJobOutlivesItsClient) {
  const ProgramResult detached =
      server_->Client("generate", Join(SmallClipFlags(1), {"--detach", "--tenant", "team"}));
  ASSERT_EQ(detached.exit.code, 0) << detached.err;
  const std::string id = detached.out.substr(0, detached.out.find('\n'));
  const v1::Job job = AwaitEnd(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(job.tenant(), "team");
  EXPECT_TRUE(job.detached());

  const auto jobs = [&](const std::vector<std::string>& arguments) {
    return RunProgram(Join({kClientProgram, "jobs"}, Join(arguments, {"--server", address()})));
  };
  EXPECT_THAT(jobs({"list"}).out, HasSubstr(id));
  EXPECT_EQ(jobs({"list", "--state", "running"}).out, "");
  EXPECT_THAT(jobs({"get", id}).out, HasSubstr("succeeded"));
  EXPECT_EQ(jobs({"watch", id}).exit.code, 0);
  EXPECT_EQ(jobs({"download", id, "--output", File("clip.mp4")}).exit.code, 0);
  ASSERT_EQ(server_->Client("generate", Join(SmallClipFlags(1), {"--output", File("same.mp4")}))
                .exit.code,
            0);
  EXPECT_TRUE(ReadWholeFile(File("clip.mp4")) == ReadWholeFile(File("same.mp4")));
  EXPECT_EQ(jobs({"delete", id}).exit.code, 0);
  const ProgramResult unknown = jobs({"get", id});
  EXPECT_EQ(unknown.exit.code, 1);
  EXPECT_THAT(unknown.LastErrorLine(), HasSubstr("[JOB_UNKNOWN]"));
  EXPECT_THAT(ListFolder(state_dir_ + "/artifacts").size(), 1u);
}

TEST_F(JobsTest, WatchingGoesOnWhereItEnded) {
  const std::string id = Submit(SmallRequest(1));
  const std::string whole = Download(id);
  const v1::Job job = Get(id);
  // queued, admitted, the units, finished.
  EXPECT_EQ(job.last_event(), job.progress().units_total() + 3);

  v1::WatchJobRequest request = WatchRequest(id);
  request.set_from_event(4);
  request.set_media_offset(1000);
  const WireStream stream = CallWatch(address(), request);
  ASSERT_EQ(stream.error.code, absl::StatusCode::kOk) << stream.error.message;
  int64_t number = 4;
  std::string rest;
  for (const v1::GenerateVideoEvent& event : stream.events) {
    if (event.has_media_chunk()) rest += event.media_chunk().data();
    if (event.number() > 0) {
      EXPECT_EQ(event.number(), number++);
    }
  }
  EXPECT_EQ(number, job.last_event() + 1);
  EXPECT_TRUE(rest == whole.substr(1000));
  EXPECT_TRUE(stream.events.back().has_finished());

  request.set_skip_media(true);
  for (const v1::GenerateVideoEvent& event : CallWatch(address(), request).events) {
    EXPECT_FALSE(event.has_media_header() || event.has_media_chunk());
  }
  request.set_job_id("nobody");
  EXPECT_EQ(CallWatch(address(), request).error.reason, "JOB_UNKNOWN");
}

TEST_F(JobsTest, OneKeyIsOneJob) {
  v1::GenerateVideoRequest request = LongRequest(1);
  request.set_request_id("key");
  BackgroundJob first(address(), request, File("first.mp4"));
  ASSERT_TRUE(first.WaitForAdmission());
  BackgroundJob second(address(), request, File("second.mp4"));
  ASSERT_TRUE(second.WaitForAdmission());
  EXPECT_EQ(second.id(), first.id());
  v1::GenerateVideoRequest other = LongRequest(2);
  other.set_request_id("key");
  const WireError refused = CallGenerate(address(), other).error;
  EXPECT_EQ(refused.code, absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(refused.reason, "REQUEST_ID_REUSED");
  // The job lives as long as one of them wants it.
  first.Cancel();
  EXPECT_EQ(first.Join().status().code(), absl::StatusCode::kCancelled);
  const auto report = second.Join();
  EXPECT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(ListFolder(folder_), ElementsAre("second.mp4"));
}

TEST_F(JobsTest, CancelledByIdAndNoOther) {
  const std::string running = Submit(LongRequest(1));
  const std::string waiting = Submit(SmallRequest(1));
  const std::string other = Submit(SmallRequest(2));
  Await(running, [](const v1::Job& job) { return job.state() == v1::JOB_STATE_RUNNING; });
  // Waiting is not running.
  EXPECT_EQ(Get(waiting).state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(Get(other).jobs_ahead(), 2);
  ASSERT_TRUE(client_->CancelJob(waiting).ok());
  EXPECT_EQ(Get(waiting).state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(Get(running).state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(Get(other).state(), v1::JOB_STATE_QUEUED);
  ASSERT_TRUE(client_->DeleteJob(running).ok());
  EXPECT_EQ(AwaitEnd(other).state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(client_->GetJob(running).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(CallWatch(address(), WatchRequest(waiting)).error.code, absl::StatusCode::kCancelled);
}

/// Cancelled while a unit of each phase runs: that unit is the last one.
TEST_F(JobsTest, CancelledWithinOneUnitInEveryPhase) {
  v1::GenerateVideoRequest request = LongRequest(1);
  request.set_recipe("distilled");
  const std::string measured = Submit(request);
  const v1::Job whole = AwaitEnd(measured);
  ASSERT_EQ(whole.state(), v1::JOB_STATE_SUCCEEDED);
  const std::string clip = Download(measured);
  // Units of each phase, and how many are done when its first one starts.
  std::vector<std::pair<v1::Phase, int>> starts;
  int before = 0;
  for (const v1::GenerateVideoEvent& event :
       CallWatch(address(), WatchRequest(measured, /*skip_media=*/true)).events) {
    for (const v1::PhasePlan& phase : event.admitted().phases()) {
      starts.emplace_back(phase.phase(), before);
      before += phase.units();
    }
  }
  ASSERT_EQ(starts.size(), 7u);
  for (const auto& [phase, done] : starts) {
    SCOPED_TRACE(v1::Phase_Name(phase));
    const std::string id = Submit(request);
    Await(id, [done = done](const v1::Job& job) {
      return IsOver(job) ||
             (job.state() == v1::JOB_STATE_RUNNING && job.progress().units_done() >= done);
    });
    const absl::Time start = absl::Now();
    const auto cancelled = client_->CancelJob(id);
    ASSERT_TRUE(cancelled.ok()) << cancelled.status();
    const v1::Job end = AwaitEnd(id);
    const double milliseconds = absl::ToDoubleMilliseconds(absl::Now() - start);
    EXPECT_EQ(end.state(), v1::JOB_STATE_CANCELLED);
    EXPECT_LE(end.progress().units_done(), cancelled->progress().units_done() + 1);
    EXPECT_LT(end.progress().units_done(), whole.progress().units_total());
    std::printf("cancel latency %s %.1f ms\n", v1::Phase_Name(phase).c_str(), milliseconds);
  }
  // Nothing stays behind: neither files nor any trace in the next clip.
  EXPECT_EQ(ListFolder(state_dir_ + "/artifacts").size(), 1u);
  const v1::HealthResponse health = WaitUntilIdle(address());
  for (const v1::MemoryAmounts& memory : health.memory()) {
    if (memory.owner() == "activations" || memory.owner() == "media") {
      EXPECT_EQ(memory.live_bytes(), 0) << memory.owner();
    }
  }
  EXPECT_TRUE(Undisturbed(request) == clip);
}

TEST_F(JobsTest, ABatchJobGivesWayAndEndsTheSame) {
  v1::GenerateVideoRequest batch = LongRequest(1);
  const std::string undisturbed = Undisturbed(batch);
  batch.set_job_class(v1::JOB_CLASS_BATCH);
  const std::string batch_id = Submit(batch);
  Await(batch_id, [](const v1::Job& job) { return job.progress().units_done() >= 2; });
  const std::string urgent_id = Submit(SmallRequest(1));
  const v1::Job suspended =
      Await(batch_id, [](const v1::Job& job) { return job.suspended() || IsOver(job); });
  EXPECT_EQ(suspended.state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(AwaitEnd(urgent_id).state(), v1::JOB_STATE_SUCCEEDED);
  const v1::Job end = AwaitEnd(batch_id);
  ASSERT_EQ(end.state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_GT(end.report().suspended_seconds(), 0.0);
  EXPECT_LT(Get(urgent_id).end_time().seconds(), end.end_time().seconds() + 1);
  EXPECT_TRUE(Download(batch_id) == undisturbed);
  std::vector<int> pauses;
  int done = 0;
  for (const v1::GenerateVideoEvent& event :
       CallWatch(address(), WatchRequest(batch_id, /*skip_media=*/true)).events) {
    if (event.has_suspended()) pauses.push_back(41);
    if (event.has_resumed()) pauses.push_back(42);
    if (event.has_progress()) {
      EXPECT_EQ(event.progress().units_done(), ++done);
    }
  }
  EXPECT_THAT(pauses, ElementsAre(41, 42));
}

TEST_F(JobsTest, JobsSurviveTheServer) {
  const std::string done = Submit(SmallRequest(1));
  ASSERT_EQ(AwaitEnd(done).state(), v1::JOB_STATE_SUCCEEDED);
  const std::string clip = Download(done);
  const std::string running = Submit(LongRequest(1));
  const std::string waiting = Submit(SmallRequest(2));
  Await(running, [](const v1::Job& job) { return job.progress().units_done() >= 1; });
  server_->process().Signal(SIGKILL);
  ASSERT_TRUE(server_->process().Wait(kLimit).ok());
  StartServer();
  EXPECT_EQ(Get(done).state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_TRUE(Download(done) == clip);
  for (const std::string& id : {running, waiting}) {
    const v1::Job job = Get(id);
    EXPECT_EQ(job.state(), v1::JOB_STATE_FAILED);
    EXPECT_EQ(job.error().reason(), "LOST");
    const WireStream stream = CallWatch(address(), WatchRequest(id));
    EXPECT_EQ(stream.error.code, absl::StatusCode::kUnavailable);
    EXPECT_EQ(stream.error.reason, "LOST");
    ASSERT_FALSE(stream.events.empty());
    EXPECT_TRUE(stream.events[0].has_queued());
  }
  // A drain is not a loss.
  const std::string late = Submit(SmallRequest(3));
  server_->process().Signal(SIGTERM);
  ASSERT_TRUE(server_->process().Wait(kLimit).ok());
  StartServer();
  const v1::JobState state = Get(late).state();
  EXPECT_TRUE(state == v1::JOB_STATE_SUCCEEDED || state == v1::JOB_STATE_REFUSED)
      << v1::JobState_Name(state);
  const auto all = client_->ListJobs({});
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->jobs_size(), 4);
}

TEST_F(JobsTest, QueueTimeoutIsToldByName) {
  const std::string running = Submit(LongRequest(1));
  v1::GenerateVideoRequest request = SmallRequest(1);
  request.set_queue_timeout_seconds(0.05);
  const WireStream stream = CallGenerate(address(), request);
  EXPECT_EQ(stream.error.code, absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(stream.error.reason, "QUEUE_TIMEOUT");
  EXPECT_EQ(Get(stream.events[0].queued().job_id()).state(), v1::JOB_STATE_REFUSED);
  EXPECT_EQ(ReadHealth(address()).queue().refused_jobs(), 1u);
  ASSERT_TRUE(client_->CancelJob(running).ok());
}

}  // namespace
}  // namespace ltx::testing
