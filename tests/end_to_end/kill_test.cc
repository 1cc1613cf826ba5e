#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/video_client.h"
#include "tests/end_to_end/background_job.h"
#include "tests/end_to_end/limit.h"
#include "tests/end_to_end/server_process.h"
#include "tests/end_to_end/subprocess.h"

ABSL_FLAG(int, kills, 3, "How often the server is killed");
ABSL_FLAG(int, seed, 1, "Decides the moments");

namespace ltx::testing {
namespace {

using ::testing::IsEmpty;

/// Some clips of the smallest size take about this long, so that kills meet every phase.
constexpr double kLongestSeconds = 2.0;

struct Expectations {
  /// Acknowledged jobs, and the seeds of their clips.
  std::map<std::string, int> jobs;
  /// Those that a client knew to be over.
  std::set<std::string> succeeded;
  /// Bytes of the clip of each seed.
  std::map<int, std::string> clips;
};

v1::GenerateVideoRequest TinyRequest(int seed) {
  v1::GenerateVideoRequest request = SmallRequest(seed);
  request.set_width(96);
  request.set_height(96);
  request.set_recipe("distilled_one_stage");
  return request;
}

class KillTest : public ::testing::Test {
 protected:
  void StartServer() {
    client_.reset();
    server_.reset();
    auto server = ServerProcess::Start({"--state-dir", state_dir_, "--output-root", root_});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    client_ = client::VideoClient::Connect(server_->address(), kLimit).value();
  }

  /// Submits jobs until the server is killed from another thread; some write below the root.
  void SubmitUntilKilled(double seconds) {
    const absl::Time kill_at = absl::Now() + absl::Seconds(seconds);
    std::thread killer([this, kill_at] {
      absl::SleepFor(kill_at - absl::Now());
      server_->process().Signal(SIGKILL);
    });
    while (absl::Now() < kill_at + absl::Seconds(1)) {
      const int seed = static_cast<int>(expected_.jobs.size() % 2);
      v1::GenerateVideoRequest request = TinyRequest(seed);
      if (expected_.jobs.size() % 3 == 2) {
        request.set_output_path(absl::StrCat(root_, "/", expected_.jobs.size(), ".mp4"));
      }
      const auto id = client_->Submit(request, absl::Seconds(5));
      if (!id.ok()) break;
      expected_.jobs[*id] = seed;
      v1::ListJobsRequest over;
      over.add_states(v1::JOB_STATE_SUCCEEDED);
      over.set_page_size(200);
      const auto page = client_->ListJobs(over);
      if (!page.ok()) break;
      for (const v1::Job& job : page->jobs()) expected_.succeeded.insert(job.job_id());
      absl::SleepFor(absl::Milliseconds(50));
    }
    killer.join();
    ASSERT_TRUE(server_->process().Wait(kLimit).ok());
  }

  void ExpectTheTruth() {
    for (const auto& [id, seed] : expected_.jobs) {
      const auto job = client_->GetJob(id);
      ASSERT_TRUE(job.ok()) << id << ": " << job.status();
      const bool lost = job->state() == v1::JOB_STATE_FAILED && job->error().reason() == "LOST";
      EXPECT_TRUE(lost || job->state() == v1::JOB_STATE_SUCCEEDED) << job->ShortDebugString();
      if (expected_.succeeded.count(id) > 0) {
        EXPECT_FALSE(lost) << id;
      }
      if (lost) continue;
      expected_.succeeded.insert(id);
      const std::string path = MakeFolder() + "/clip.mp4";
      std::string bytes;
      if (job->has_artifact()) {
        v1::WatchJobRequest request;
        request.set_job_id(id);
        const auto report = client_->Watch(request, path, {});
        ASSERT_TRUE(report.ok()) << report.status();
        bytes = ReadWholeFile(path);
      } else {
        bytes = ReadWholeFile(job->report().output_path());
      }
      EXPECT_TRUE(bytes == expected_.clips[seed]) << id;
    }
  }

  /// Whole files only, and clips of jobs that succeeded.
  void ExpectNoHalfFiles() {
    std::vector<std::string> strangers;
    for (const std::string& folder : {state_dir_ + "/jobs", state_dir_ + "/artifacts", root_}) {
      for (const std::string& name : ListFolder(folder)) {
        if (absl::StrContains(name, ".part-")) strangers.push_back(name);
      }
    }
    for (const std::string& name : ListFolder(state_dir_ + "/artifacts")) {
      if (expected_.succeeded.count(name.substr(0, name.find('.'))) == 0) strangers.push_back(name);
    }
    EXPECT_THAT(strangers, IsEmpty());
  }

  const std::string state_dir_ = MakeFolder();
  const std::string root_ = MakeFolder();
  Expectations expected_;
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<client::VideoClient> client_;
};

TEST_F(KillTest, AKilledServerForgetsNothingAndLeavesNothingHalf) {
  StartServer();
  for (const int seed : {0, 1}) {
    const std::string path = MakeFolder() + "/clip.mp4";
    const auto report = client_->Generate(TinyRequest(seed), path, {});
    ASSERT_TRUE(report.ok()) << report.status();
    expected_.clips[seed] = ReadWholeFile(path);
  }
  std::mt19937 random(absl::GetFlag(FLAGS_seed));
  std::uniform_real_distribution<double> moments(0.0, kLongestSeconds);
  for (int kill = 0; kill < absl::GetFlag(FLAGS_kills); ++kill) {
    const double seconds = moments(random);
    SCOPED_TRACE(absl::StrCat("kill ", kill, " after ", seconds, " s"));
    SubmitUntilKilled(seconds);
    if (HasFatalFailure()) return;
    StartServer();
    if (HasFatalFailure()) return;
    ExpectTheTruth();
    ExpectNoHalfFiles();
  }
  std::printf("%zu jobs acknowledged, %zu of them succeeded\n", expected_.jobs.size(),
              expected_.succeeded.size());
  EXPECT_GT(expected_.jobs.size(), 0u);
}

}  // namespace
}  // namespace ltx::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  absl::ParseCommandLine(argc, argv);
  return RUN_ALL_TESTS();
}
