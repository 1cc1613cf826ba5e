#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "tests/end_to_end/background_job.h"
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

/// Far above what any of these programs needs to end.
constexpr absl::Duration kExitLimit = absl::Seconds(60);

/// A server of its own for each test: most tests end it.
class SignalsTest : public ::testing::Test {
 protected:
  void StartServer(const std::vector<std::string>& flags = {}) {
    auto server = ServerProcess::Start(Join({"--work-dir", work_dir_}, flags));
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
  std::unique_ptr<Subprocess> StartLongClient(const std::string& name) {
    auto client =
        server_->StartClient("generate", Join(LongClipFlags(1), {"--output", File(name)}));
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }
  void ExpectCleanExit() {
    const auto exit = server_->process().Wait(kExitLimit);
    ASSERT_TRUE(exit.ok()) << exit.status();
    EXPECT_EQ(exit->code, 0) << "signal " << exit->signal << "\n" << server_->process().Err();
    EXPECT_THAT(ListFolder(work_dir_), IsEmpty());
  }

  std::unique_ptr<ServerProcess> server_;
  const std::string folder_ = MakeFolder();
  const std::string work_dir_ = MakeFolder();
};

TEST_F(SignalsTest, InterruptedClientCancelsItsJob) {
  StartServer();
  const std::string undisturbed = SmallClip("before.mp4");
  for (const int signal : {SIGINT, SIGTERM}) {
    const auto client = StartLongClient("stopped.mp4");
    // The decoding comes next: a unit long enough to be caught in.
    ASSERT_EQ(client->WaitForErr("stage 1 8/8", kExitLimit), absl::OkStatus());
    client->Signal(signal);
    const auto exit = client->Wait(kExitLimit);
    ASSERT_TRUE(exit.ok()) << exit.status();
    EXPECT_EQ(exit->code, 130);
    EXPECT_THAT(client->Err(), HasSubstr("ltx: CANCELLED: "));
    EXPECT_THAT(ListFolder(folder_), ElementsAre("before.mp4"));
  }
  const v1::HealthResponse health = WaitUntilIdle(address());
  EXPECT_EQ(health.queue().cancelled_jobs(), 2u);
  EXPECT_EQ(health.queue().finished_jobs(), 1u);
  EXPECT_EQ(health.queue().failed_jobs(), 0u);
  EXPECT_EQ(server_->CountLogLines("stage1 8/8"), 3);
  EXPECT_EQ(server_->CountLogLines("adecode"), 1);
  EXPECT_EQ(SmallClip("after.mp4"), undisturbed);
}

TEST_F(SignalsTest, KilledClientDoesNotHarmTheServer) {
  StartServer();
  const std::string undisturbed = SmallClip("before.mp4");
  const auto client = StartLongClient("stopped.mp4");
  ASSERT_EQ(client->WaitForErr("stage 1 8/8", kExitLimit), absl::OkStatus());
  client->Signal(SIGKILL);
  const auto exit = client->Wait(kExitLimit);
  ASSERT_TRUE(exit.ok()) << exit.status();
  EXPECT_EQ(exit->signal, SIGKILL);
  const v1::HealthResponse health = WaitUntilIdle(address());
  EXPECT_EQ(health.queue().cancelled_jobs(), 1u);
  EXPECT_EQ(server_->CountLogLines("adecode"), 1);
  EXPECT_EQ(SmallClip("after.mp4"), undisturbed);
}

TEST_F(SignalsTest, SlowClientHoldsUpNobody) {
  StartServer();
  const auto slow = StartLongClient("slow.mp4");
  ASSERT_EQ(slow->WaitForErr("text 1/1", kExitLimit), absl::OkStatus());
  slow->Signal(SIGSTOP);
  // Behind the other in the queue: it comes to its turn though nobody reads the other's events.
  EXPECT_NE(SmallClip("quick.mp4"), "");
  EXPECT_THAT(ListFolder(folder_), Contains("quick.mp4"));
  EXPECT_THAT(ListFolder(folder_), Not(Contains("slow.mp4")));
  slow->Signal(SIGCONT);
  const auto exit = slow->Wait(kExitLimit);
  ASSERT_TRUE(exit.ok()) << exit.status();
  EXPECT_EQ(exit->code, 0) << slow->Err();
  EXPECT_EQ(RunProgram({kClientProgram, "verify", File("slow.mp4")}).exit.code, 0);
}

TEST_F(SignalsTest, ClientOfAKilledServerLeavesNoFile) {
  StartServer();
  const auto client = StartLongClient("lost.mp4");
  ASSERT_EQ(client->WaitForErr("text 1/1", kExitLimit), absl::OkStatus());
  server_->process().Signal(SIGKILL);
  const auto exit = client->Wait(kExitLimit);
  ASSERT_TRUE(exit.ok()) << exit.status();
  EXPECT_EQ(exit->code, 1);
  EXPECT_THAT(client->Err(), HasSubstr("ltx: UNAVAILABLE: "));
  EXPECT_THAT(ListFolder(folder_), IsEmpty());
}

TEST_F(SignalsTest, StoppedServerFinishesTheRunningJobOnly) {
  StartServer();
  BackgroundJob running(address(), LongRequest(1), File("running.mp4"));
  ASSERT_TRUE(running.WaitForAdmission());
  BackgroundJob waiting(address(), SmallRequest(1), File("waiting.mp4"));
  ASSERT_TRUE(waiting.WaitForEvent([](const auto& event) { return event.has_queued(); }));
  server_->process().Signal(SIGTERM);

  const absl::Status refused = waiting.Join().status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("DRAINING"));
  ASSERT_FALSE(running.ended());
  // It still answers, and takes nothing new.
  EXPECT_EQ(ReadHealth(address()).state(), v1::HealthResponse::STATE_DRAINING);
  const auto serving = CallHealthCheck(address(), "");
  ASSERT_TRUE(serving.ok()) << serving.status();
  EXPECT_EQ(*serving, 2);
  const WireError late = CallGenerate(address(), SmallRequest(2)).error;
  EXPECT_EQ(late.code, absl::StatusCode::kUnavailable) << late.message;
  EXPECT_EQ(late.reason, "DRAINING");

  const auto report = running.Join();
  EXPECT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(ListFolder(folder_), ElementsAre("running.mp4"));
  ExpectCleanExit();
}

TEST_F(SignalsTest, TheRunningJobEndsWhenItsGraceIsOver) {
  StartServer({"--drain-seconds", "0.1"});
  BackgroundJob running(address(), LongRequest(1), File("running.mp4"));
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
    StartServer();
    const absl::Time start = absl::Now();
    server_->process().Signal(signal);
    ExpectCleanExit();
    // Of the 30 s that a running job would get.
    EXPECT_LT(absl::Now() - start, absl::Seconds(10));
  }
}

}  // namespace
}  // namespace ltx::testing
