#include "bench/command.h"

#include <csignal>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(SecondsInOutput, TakesEveryMatch) {
  const auto seconds = SecondsInOutput("clip: 2.5 s\nother 9\nclip: 3 s\n", "clip: ([0-9.]+) s");
  ASSERT_TRUE(seconds.ok()) << seconds.status();
  EXPECT_THAT(*seconds, ElementsAre(2.5, 3.0));
}

TEST(SecondsInOutput, NamesWhatIsWrongWithThePattern) {
  EXPECT_EQ(SecondsInOutput("1", "(").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(SecondsInOutput("1", "[0-9]+").status().message()), HasSubstr("group"));
  EXPECT_EQ(SecondsInOutput("none", "best ([0-9.]+)").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(SecondsInOutput("best x", "best ([a-z]+)").status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(SecondsInOutput, EmptyMatchIsAnErrorAndNotALoop) {
  EXPECT_EQ(SecondsInOutput("abc", "(x*)").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(TimeCommand, ByTheClockWithoutAPattern) {
  const auto seconds = TimeCommand("sleep 0.2", "");
  ASSERT_TRUE(seconds.ok()) << seconds.status();
  ASSERT_EQ(seconds->size(), 1);
  EXPECT_GE(seconds->front(), 0.2);
}

TEST(TimeCommand, ByItsOutputWithOne) {
  const auto seconds = TimeCommand("echo took 7.25 s", "took ([0-9.]+)");
  ASSERT_TRUE(seconds.ok()) << seconds.status();
  EXPECT_THAT(*seconds, ElementsAre(7.25));
}

TEST(TimeCommand, FailingCommandGivesNoFigure) {
  EXPECT_EQ(TimeCommand("echo took 1; exit 3", "took ([0-9.]+)").status().code(),
            absl::StatusCode::kAborted);
}

TEST(ServerProcess, ReadsTheAddressAndEndsWithItsOwner) {
  pid_t pid = 0;
  const std::string note = testing::TempDir() + "/server_pid";
  {
    const auto server = ServerProcess::Start(
        "sh -c 'echo $$ > " + note + "; echo listening on 127.0.0.1:77; exec sleep 600'",
        absl::Seconds(60));
    ASSERT_TRUE(server.ok()) << server.status();
    EXPECT_EQ((*server)->address(), "127.0.0.1:77");
    EXPECT_GT((*server)->start_seconds(), 0);
    std::ifstream(note) >> pid;
    ASSERT_GT(pid, 0);
    EXPECT_EQ(kill(pid, 0), 0);
  }
  EXPECT_NE(kill(pid, 0), 0);
}

TEST(ServerProcess, DeathBeforeReadinessIsTold) {
  EXPECT_EQ(ServerProcess::Start("true", absl::Seconds(60)).status().code(),
            absl::StatusCode::kAborted);
}

TEST(ServerProcess, SilenceEndsWithTheDeadline) {
  EXPECT_EQ(ServerProcess::Start("sleep 600", absl::Milliseconds(200)).status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace ltx::bench
