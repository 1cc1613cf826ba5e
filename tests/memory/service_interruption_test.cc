#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "tests/memory/tiny_service.h"

ABSL_FLAG(int, size, 128, "Width and height of the clips");
ABSL_FLAG(int, frames, 17, "Frames of the clips");

namespace ltx::testing {
namespace {

using ::testing::ElementsAre;

v1::GenerateVideoRequest Request(int64_t seed) {
  v1::GenerateVideoRequest request;
  request.set_prompt("a red circle moves up, a low hum");
  request.set_recipe("distilled");
  request.set_width(absl::GetFlag(FLAGS_size));
  request.set_height(absl::GetFlag(FLAGS_size));
  request.set_num_frames(absl::GetFlag(FLAGS_frames));
  request.set_seed(seed);
  return request;
}

/// The phase of each of the job's events of progress.
std::vector<v1::Phase> PhasesOf(const server::Job& job) {
  std::vector<v1::Phase> phases;
  for (auto event = job.EventFrom(1); event; event = job.EventFrom(event->number() + 1)) {
    if (event->has_progress()) phases.push_back(event->progress().phase());
  }
  return phases;
}

/// When jobs were over, as whoever watches them hears.
class EndTimes {
 public:
  void Add(const std::string& job_id) {
    absl::MutexLock lock(&mutex_);
    times_[job_id] = absl::Now();
  }
  /// Waits for it.
  absl::Time Of(const std::string& job_id) const {
    absl::MutexLock lock(&mutex_);
    const auto known = [&]()
                           ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return times_.count(job_id) > 0; };
    mutex_.Await(absl::Condition(&known));
    return times_.at(job_id);
  }

 private:
  mutable absl::Mutex mutex_;
  std::map<std::string, absl::Time> times_ ABSL_GUARDED_BY(mutex_);
};

class ServiceInterruptionTest : public ::testing::Test {
 protected:
  /// A whole job, as the others have to be.
  void RunUndisturbed() {
    const auto job = service_.Submit(Request(1), nullptr,
                                     [this](const std::string&, int done) { units_ = done; });
    service_.Await(*job);
    ASSERT_EQ(job->state(), v1::JOB_STATE_SUCCEEDED) << job->EndStatus().error_message();
    expected_ = TinyService::Clip(*job);
    phases_ = PhasesOf(*job);
    idle_bytes_ = service_.tiny().live_bytes();
    // One more than are told of: between decoding and encoding the clip is taken off the device
    // and judged.
    ASSERT_EQ(units_, static_cast<int>(phases_.size()) + 1);
    const auto first_mux = std::find(phases_.begin(), phases_.end(), v1::PHASE_MUX);
    phases_.insert(first_mux, v1::PHASE_MUX);
  }

  EndTimes ends_;
  TinyService service_{[this](const server::Job& job) { ends_.Add(job.id()); }};
  std::string expected_;
  int units_ = 0;
  std::vector<v1::Phase> phases_;
  int64_t idle_bytes_ = 0;
};

/// Cancelled at the start of each unit of every phase in turn: that unit is the last one.
TEST_F(ServiceInterruptionTest, CancelledInAnyUnitItIsTheLast) {
  RunUndisturbed();
  ASSERT_FALSE(HasFatalFailure());
  /// The longest from the request to the end, and from the end of the unit that ran to the end.
  struct Latency {
    absl::Duration all;
    absl::Duration beyond_unit;
  };
  std::map<v1::Phase, Latency> latencies;
  for (int unit = 0; unit + 1 < units_; ++unit) {
    SCOPED_TRACE(unit);
    absl::Time asked;
    absl::Time unit_end;
    int begun = 0;
    const auto job = service_.Submit(
        Request(1),
        [&](const std::string& id, int done) {
          begun = done + 1;
          if (done != unit) return;
          asked = absl::Now();
          EXPECT_TRUE(service_.jobs().Cancel(id).ok());
        },
        [&](const std::string&, int) { unit_end = absl::Now(); });
    service_.Await(*job);
    EXPECT_EQ(job->state(), v1::JOB_STATE_CANCELLED);
    EXPECT_EQ(begun, unit + 1);
    EXPECT_FALSE(job->Describe(/*brief=*/true).has_artifact());
    EXPECT_EQ(service_.tiny().live_bytes(), idle_bytes_);
    const absl::Time end = ends_.Of(job->id());
    Latency& latency = latencies[phases_[unit]];
    latency.all = std::max(latency.all, end - asked);
    latency.beyond_unit = std::max(latency.beyond_unit, end - unit_end);
  }
  for (const auto& [phase, latency] : latencies) {
    std::printf("cancelled in %s: %.2f ms, of which %.2f ms after the unit\n",
                v1::Phase_Name(phase).c_str(), absl::ToDoubleMilliseconds(latency.all),
                absl::ToDoubleMilliseconds(latency.beyond_unit));
  }
  EXPECT_EQ(latencies.size(), 7u);
  // Nothing stays behind that the next clip would show.
  const auto next = service_.Submit(Request(1));
  service_.Await(*next);
  EXPECT_TRUE(TinyService::Clip(*next) == expected_);
}

/// A job that waits is over before CancelJob answers, whatever the device does.
TEST_F(ServiceInterruptionTest, CancelledWhileItWaitsItEndsAtOnce) {
  std::shared_ptr<server::Job> waiting;
  absl::Duration latency;
  const auto running = service_.Submit(Request(1), [&](const std::string&, int done) {
    if (done != 3) return;
    waiting = service_.Submit(Request(2));
    EXPECT_EQ(waiting->state(), v1::JOB_STATE_QUEUED);
    const absl::Time asked = absl::Now();
    EXPECT_TRUE(service_.jobs().Cancel(waiting->id()).ok());
    latency = absl::Now() - asked;
    EXPECT_EQ(waiting->state(), v1::JOB_STATE_CANCELLED);
  });
  service_.Await(*running);
  EXPECT_EQ(running->state(), v1::JOB_STATE_SUCCEEDED);
  std::printf("cancelled in the queue: %.3f ms\n", absl::ToDoubleMilliseconds(latency));
}

/// A batch job that gives way at any place, to a job that uses all of the device, makes
/// the same clip.
TEST_F(ServiceInterruptionTest, SuspendedAfterAnyUnitItEndsTheSame) {
  RunUndisturbed();
  ASSERT_FALSE(HasFatalFailure());
  v1::GenerateVideoRequest batch = Request(1);
  batch.set_job_class(v1::JOB_CLASS_BATCH);
  std::string urgent_clip;
  for (int unit = 0; unit + 1 < units_; ++unit) {
    // The units of a phase are alike: its first and its last one.
    const bool first = unit == 0 || phases_[unit - 1] != phases_[unit];
    if (!first && phases_[unit + 1] == phases_[unit]) continue;
    SCOPED_TRACE(unit);
    std::shared_ptr<server::Job> urgent;
    const auto job = service_.Submit(batch, [&](const std::string&, int done) {
      if (done == unit) urgent = service_.Submit(Request(2));
    });
    service_.Await(*job);
    ASSERT_EQ(job->state(), v1::JOB_STATE_SUCCEEDED) << job->EndStatus().error_message();
    EXPECT_TRUE(TinyService::Clip(*job) == expected_);
    EXPECT_GT(job->Describe(/*brief=*/false).report().suspended_seconds(), 0.0);
    ASSERT_EQ(urgent->state(), v1::JOB_STATE_SUCCEEDED);
    if (unit == 0) urgent_clip = TinyService::Clip(*urgent);
    EXPECT_TRUE(TinyService::Clip(*urgent) == urgent_clip);
    std::vector<std::string> pauses;
    int done = 0;
    for (auto event = job->EventFrom(1); event; event = job->EventFrom(event->number() + 1)) {
      if (event->has_suspended()) pauses.push_back("suspended");
      if (event->has_resumed()) pauses.push_back("resumed");
      if (!event->has_progress()) continue;
      EXPECT_EQ(event->progress().units_done(), ++done);
    }
    EXPECT_THAT(pauses, ElementsAre("suspended", "resumed"));
  }
  EXPECT_EQ(service_.tiny().live_bytes(), idle_bytes_);
}

}  // namespace
}  // namespace ltx::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  absl::ParseCommandLine(argc, argv);
  return RUN_ALL_TESTS();
}
