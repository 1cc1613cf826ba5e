#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "tests/end_to_end/background_job.h"
#include "tests/end_to_end/limit.h"
#include "tests/end_to_end/server_process.h"
#include "tests/end_to_end/subprocess.h"
#include "tests/end_to_end/wire_calls.h"

namespace ltx::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// What the client library is told while jobs wait, run, end and are cancelled.
class StreamTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto server = ServerProcess::StartModel(LargeModel());
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  static void TearDownTestSuite() { server_.reset(); }
  void TearDown() override { EXPECT_TRUE(server_->process().running()); }
  static const std::string& address() { return server_->address(); }
  std::string File(const std::string& name) const { return folder_ + "/" + name; }

  static std::unique_ptr<ServerProcess> server_;
  const std::string folder_ = MakeFolder();
};
std::unique_ptr<ServerProcess> StreamTest::server_;

/// Without repetitions, which keep a quiet stream alive.
BackgroundJob::Events WithoutHeartbeats(const BackgroundJob::Events& events) {
  BackgroundJob::Events kept;
  for (const v1::GenerateVideoEvent& event : events) {
    if (kept.empty() || kept.back().SerializeAsString() != event.SerializeAsString()) {
      kept.push_back(event);
    }
  }
  return kept;
}

TEST_F(StreamTest, EveryUnitIsToldOnceAndInOrder) {
  for (const char* recipe : {"distilled", "distilled_one_stage"}) {
    SCOPED_TRACE(recipe);
    v1::GenerateVideoRequest request = SmallRequest(1);
    request.set_recipe(recipe);
    BackgroundJob job(address(), request, File("clip.mp4"));
    const auto report = job.Join();
    ASSERT_TRUE(report.ok()) << report.status();
    const BackgroundJob::Events events = WithoutHeartbeats(job.events());
    ASSERT_GE(events.size(), 5u);
    ASSERT_TRUE(events[0].has_queued());
    EXPECT_EQ(events[0].queued().position(), 0);
    // Running is told of only after admission.
    ASSERT_TRUE(events[1].has_admitted());
    const v1::Admitted& admitted = events[1].admitted();
    EXPECT_EQ(admitted.job_id(), report->job_id());
    EXPECT_EQ(admitted.parameters().seed(), 1u);
    std::vector<std::pair<int, int>> planned;
    for (const v1::PhasePlan& phase : admitted.phases()) {
      for (int unit = 1; unit <= phase.units(); ++unit) planned.emplace_back(phase.phase(), unit);
    }
    const int total = static_cast<int>(planned.size());
    EXPECT_TRUE(std::is_sorted(planned.begin(), planned.end()));

    int done = 0;
    double elapsed = 0;
    for (size_t i = 2; i < events.size(); ++i) {
      if (!events[i].has_progress()) continue;
      const v1::Progress& progress = events[i].progress();
      ASSERT_LT(done, total);
      EXPECT_EQ(progress.phase(), planned[done].first);
      EXPECT_EQ(progress.unit(), planned[done].second);
      ++done;
      EXPECT_EQ(progress.units_done(), done);
      EXPECT_EQ(progress.units_total(), total);
      EXPECT_GE(progress.elapsed_seconds(), elapsed);
      EXPECT_GE(progress.eta_seconds(), 0.0);
      elapsed = progress.elapsed_seconds();
      // Nothing but progress until all is done.
      if (done < total) {
        EXPECT_TRUE(events[i + 1].has_progress());
      } else {
        EXPECT_EQ(progress.eta_seconds(), 0.0);
      }
    }
    EXPECT_EQ(done, total);
    EXPECT_LE(elapsed, report->run_seconds());
    EXPECT_TRUE(events.back().has_finished());
  }
}

TEST_F(StreamTest, MediaAreWhatTheHeaderAnnounces) {
  const WireStream stream = CallGenerate(address(), SmallRequest(1));
  ASSERT_EQ(stream.error.code, absl::StatusCode::kOk) << stream.error.message;
  const v1::MediaHeader* header = nullptr;
  int64_t bytes = 0;
  int sequence = 0;
  for (const v1::GenerateVideoEvent& event : stream.events) {
    if (event.has_media_header()) {
      EXPECT_EQ(header, nullptr);
      header = &event.media_header();
    }
    if (!event.has_media_chunk()) continue;
    ASSERT_NE(header, nullptr);
    EXPECT_EQ(event.media_chunk().sequence(), sequence++);
    EXPECT_NE(event.media_chunk().crc32(), 0u);
    bytes += static_cast<int64_t>(event.media_chunk().data().size());
  }
  ASSERT_NE(header, nullptr);
  EXPECT_EQ(header->mime_type(), "video/mp4");
  EXPECT_EQ(header->total_bytes(), bytes);
  EXPECT_EQ(header->sha256().size(), 32u);
  ASSERT_TRUE(stream.events.back().has_finished());
  EXPECT_EQ(stream.events.back().finished().report().media_bytes(), bytes);
}

TEST_F(StreamTest, ACancelledJobLeavesNothingAndTheClientGoesOn) {
  const uint64_t cancelled = ReadHealth(address()).queue().cancelled_jobs();
  auto connected = client::VideoClient::Connect(address(), kLimit);
  ASSERT_TRUE(connected.ok()) << connected.status();
  client::VideoClient& client = **connected;
  std::string id;
  client::VideoClient::GenerateOptions options;
  options.on_event = [&](const v1::GenerateVideoEvent& event) {
    if (event.has_queued()) id = event.queued().job_id();
    if (event.has_progress()) client.Cancel();
  };
  const auto stopped = client.Generate(EndlessRequest(1), File("stopped.mp4"), options);
  EXPECT_EQ(stopped.status().code(), absl::StatusCode::kCancelled) << stopped.status();
  EXPECT_THAT(ListFolder(folder_), IsEmpty());
  EXPECT_EQ(server_->process().WaitForErr("job " + id + ": ended JOB_STATE_CANCELLED", kLimit),
            absl::OkStatus());
  const v1::HealthResponse health = ReadHealth(address());
  EXPECT_EQ(health.queue().cancelled_jobs(), cancelled + 1);
  EXPECT_EQ(server_->CountLogLines("job " + id + ": stage1 8/8"), 0);
  // Its memory is gone with it.
  for (const v1::MemoryAmounts& memory : health.memory()) {
    if (memory.owner() == "activations" || memory.owner() == "media") {
      EXPECT_EQ(memory.live_bytes(), 0) << memory.owner();
    }
  }

  const auto next = client.Generate(SmallRequest(1), File("next.mp4"), {});
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_THAT(ListFolder(folder_), ElementsAre("next.mp4"));
}

TEST_F(StreamTest, PassedDeadlineDoesNothing) {
  const v1::QueueInfo before = ReadHealth(address()).queue();
  BackgroundJob late(address(), SmallRequest(1), File("late.mp4"), absl::Now() - absl::Seconds(1));
  EXPECT_EQ(late.Join().status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(ListFolder(folder_), IsEmpty());
  EXPECT_EQ(ReadHealth(address()).queue().SerializeAsString(), before.SerializeAsString());
}

}  // namespace
}  // namespace ltx::testing
