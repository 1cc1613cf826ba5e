#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/video_client.h"
#include "tests/end_to_end/background_job.h"
#include "tests/end_to_end/limit.h"
#include "tests/end_to_end/server_process.h"
#include "tests/end_to_end/subprocess.h"
#include "tests/end_to_end/wire_calls.h"

namespace ltx::testing {
namespace {

using ::testing::HasSubstr;

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
    auto server = ServerProcess::StartModel(model_, {"--state-dir", state_dir_});
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
  const std::string folder_ = MakeFolder();
  const std::string state_dir_ = MakeFolder();
  const std::string model_ = LargeModel();
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

TEST_F(JobsTest, ACancelledJobEndsWithinOneUnit) {
  const std::string id = Submit(EndlessRequest(1));
  Await(id, [](const v1::Job& job) { return job.progress().units_done() >= 1; });
  const auto cancelled = client_->CancelJob(id);
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  EXPECT_EQ(cancelled->state(), v1::JOB_STATE_RUNNING);
  const v1::Job end = AwaitEnd(id);
  EXPECT_EQ(end.state(), v1::JOB_STATE_CANCELLED);
  EXPECT_LE(end.progress().units_done(), cancelled->progress().units_done() + 1);
  EXPECT_EQ(ListFolder(state_dir_ + "/artifacts").size(), 0u);
}

TEST_F(JobsTest, JobsSurviveTheServer) {
  const std::string done = Submit(SmallRequest(1));
  ASSERT_EQ(AwaitEnd(done).state(), v1::JOB_STATE_SUCCEEDED);
  const std::string clip = Download(done);
  const std::string running = Submit(EndlessRequest(1));
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

}  // namespace
}  // namespace ltx::testing
