#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/end_to_end/background_job.h"
#include "tests/end_to_end/limit.h"
#include "tests/end_to_end/server_process.h"
#include "tests/end_to_end/subprocess.h"
#include "tests/end_to_end/wire_calls.h"

namespace ltx::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// A server of its own for each test: most tests end it.
class SignalsTest : public ::testing::Test {
 protected:
  void StartServer(const std::vector<std::string>& flags = {}) {
    auto server = ServerProcess::StartModel(LargeModel(), Join({"--work-dir", work_dir_}, flags));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  const std::string& address() const { return server_->address(); }
  std::string File(const std::string& name) const { return folder_ + "/" + name; }
  /// The bytes of a small clip made now.
  std::string SmallClip(const std::string& name) {
    const ProgramResult result =
        server_->Client("generate", Join(SmallClipFlags(1), {"--output", File(name), "--quiet"}));
    EXPECT_EQ(result.exit.code, 0) << result.err;
    return ReadWholeFile(File(name));
  }
  /// A client whose job has begun.
  std::unique_ptr<Subprocess> StartClient(const std::vector<std::string>& clip,
                                          const std::string& name) {
    auto client = server_->StartClient("generate", Join(clip, {"--output", File(name)}));
    EXPECT_TRUE(client.ok()) << client.status();
    EXPECT_EQ((*client)->WaitForErr("text 1/1", kLimit), absl::OkStatus());
    return *std::move(client);
  }
  void ExpectCleanExit() {
    const auto exit = server_->process().Wait(kLimit);
    ASSERT_TRUE(exit.ok()) << exit.status();
    EXPECT_EQ(exit->code, 0) << "signal " << exit->signal << "\n" << server_->process().Err();
    EXPECT_THAT(ListFolder(work_dir_), IsEmpty());
  }

  std::unique_ptr<ServerProcess> server_;
  const std::string folder_ = MakeFolder();
  const std::string work_dir_ = MakeFolder();
};

TEST_F(SignalsTest, InterruptedClientCancelsItsJob) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const std::string undisturbed = SmallClip("before.mp4");
  for (const int signal : {SIGINT, SIGTERM}) {
    const auto client = StartClient(EndlessClipFlags(1), "stopped.mp4");
    client->Signal(signal);
    const auto exit = client->Wait(kLimit);
    ASSERT_TRUE(exit.ok()) << exit.status();
    EXPECT_EQ(exit->code, 130);
    EXPECT_THAT(client->Err(), HasSubstr("ltx: CANCELLED: "));
    EXPECT_THAT(ListFolder(folder_), ElementsAre("before.mp4"));
  }
  const v1::HealthResponse health = WaitUntilIdle(address());
  EXPECT_EQ(health.queue().cancelled_jobs(), 2u);
  EXPECT_EQ(health.queue().finished_jobs(), 1u);
  EXPECT_EQ(health.queue().failed_jobs(), 0u);
  EXPECT_EQ(server_->CountLogLines("stage1 8/8"), 1);
  EXPECT_EQ(SmallClip("after.mp4"), undisturbed);
}

TEST_F(SignalsTest, KilledClientDoesNotHarmTheServer) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const std::string undisturbed = SmallClip("before.mp4");
  const auto client = StartClient(EndlessClipFlags(1), "stopped.mp4");
  client->Signal(SIGKILL);
  const auto exit = client->Wait(kLimit);
  ASSERT_TRUE(exit.ok()) << exit.status();
  EXPECT_EQ(exit->signal, SIGKILL);
  const v1::HealthResponse health = WaitUntilIdle(address());
  EXPECT_EQ(health.queue().cancelled_jobs(), 1u);
  EXPECT_EQ(server_->CountLogLines("stage1 8/8"), 1);
  EXPECT_EQ(SmallClip("after.mp4"), undisturbed);
}

TEST_F(SignalsTest, SlowClientHoldsUpNobody) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const auto slow = StartClient(LongClipFlags(1), "slow.mp4");
  slow->Signal(SIGSTOP);
  // Behind the other in the queue: it comes to its turn though nobody reads the other's events.
  EXPECT_NE(SmallClip("quick.mp4"), "");
  EXPECT_THAT(ListFolder(folder_), Contains("quick.mp4"));
  EXPECT_THAT(ListFolder(folder_), Not(Contains("slow.mp4")));
  slow->Signal(SIGCONT);
  const auto exit = slow->Wait(kLimit);
  ASSERT_TRUE(exit.ok()) << exit.status();
  EXPECT_EQ(exit->code, 0) << slow->Err();
  EXPECT_EQ(RunProgram({kClientProgram, "verify", File("slow.mp4")}).exit.code, 0);
}

TEST_F(SignalsTest, ClientOfAKilledServerLeavesNoFile) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const auto client = StartClient(EndlessClipFlags(1), "lost.mp4");
  server_->process().Signal(SIGKILL);
  const auto exit = client->Wait(kLimit);
  ASSERT_TRUE(exit.ok()) << exit.status();
  EXPECT_EQ(exit->code, 1);
  EXPECT_THAT(client->Err(), HasSubstr("ltx: UNAVAILABLE: "));
  EXPECT_THAT(ListFolder(folder_), IsEmpty());
}

TEST_F(SignalsTest, StoppedServerFinishesTheRunningJobOnly) {
  ASSERT_NO_FATAL_FAILURE(
      StartServer({"--drain-seconds", absl::StrCat(absl::ToInt64Seconds(kLimit))}));
  // The last one waits behind three that take a second each.
  std::vector<std::unique_ptr<BackgroundJob>> jobs;
  for (int i = 0; i < 4; ++i) {
    const std::string name = "clip" + std::to_string(i) + ".mp4";
    jobs.push_back(std::make_unique<BackgroundJob>(address(), LongRequest(i), File(name)));
    ASSERT_TRUE(jobs.back()->WaitForEvent([](const auto& event) { return event.has_queued(); }));
  }
  ASSERT_TRUE(jobs[0]->WaitForAdmission());
  server_->process().Signal(SIGTERM);
  std::vector<std::string> whole;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const absl::Status end = jobs[i]->Join().status();
    if (end.ok()) {
      whole.push_back("clip" + std::to_string(i) + ".mp4");
      continue;
    }
    EXPECT_EQ(end.code(), absl::StatusCode::kUnavailable) << end;
    EXPECT_THAT(std::string(end.message()), HasSubstr("DRAINING"));
  }
  // What had begun is finished, what had not is not; no job is left half done.
  EXPECT_THAT(whole, Contains("clip0.mp4"));
  EXPECT_THAT(whole, Not(Contains("clip3.mp4")));
  EXPECT_EQ(ListFolder(folder_), whole);
  ExpectCleanExit();
}

TEST_F(SignalsTest, AStoppingServerIsNotServing) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  BackgroundJob running(address(), EndlessRequest(1), File("running.mp4"));
  ASSERT_TRUE(running.WaitForAdmission());
  server_->process().Signal(SIGTERM);
  ASSERT_EQ(server_->process().WaitForErr("no new jobs", kLimit), absl::OkStatus());
  // The log line comes first.
  absl::StatusOr<int> serving = 1;
  const absl::Time limit = absl::Now() + kLimit;
  while (serving.ok() && *serving == 1 && absl::Now() < limit) {
    serving = CallHealthCheck(address(), "");
  }
  ASSERT_TRUE(serving.ok()) << serving.status();
  EXPECT_EQ(*serving, 2);
  running.Cancel();
  running.Join().IgnoreError();
  ExpectCleanExit();
}

TEST_F(SignalsTest, TheRunningJobEndsWhenItsGraceIsOver) {
  ASSERT_NO_FATAL_FAILURE(StartServer({"--drain-seconds", "0.1"}));
  BackgroundJob running(address(), EndlessRequest(1), File("running.mp4"));
  ASSERT_TRUE(running.WaitForAdmission());
  server_->process().Signal(SIGTERM);
  const absl::Status ended = running.Join().status();
  // Nobody asked for its cancellation: the client is told to come back, elsewhere or later.
  EXPECT_EQ(ended.code(), absl::StatusCode::kUnavailable) << ended;
  EXPECT_THAT(std::string(ended.message()), HasSubstr("DRAINING"));
  EXPECT_THAT(ListFolder(folder_), IsEmpty());
  ExpectCleanExit();
}

TEST_F(SignalsTest, IdleServerStopsAtOnce) {
  for (const int signal : {SIGTERM, SIGINT}) {
    ASSERT_NO_FATAL_FAILURE(StartServer());
    const absl::Time start = absl::Now();
    server_->process().Signal(signal);
    ExpectCleanExit();
    // Of the 30 s that a running job would get.
    EXPECT_LT(absl::Now() - start, absl::Seconds(10));
  }
}

}  // namespace
}  // namespace ltx::testing
