#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "server/governor/governor.h"
#include "server/governor/rung_ladder.h"
#include "server/jobs/job_manager.h"
#include "server/jobs/job_state.h"
#include "server/metrics/server_metrics.h"
#include "server/model_backend.h"
#include "tests/memory/counting_memory.h"
#include "tests/memory/tiny_model.h"

namespace ltx::testing {
namespace {

using ::testing::HasSubstr;

/// Jobs of the service over a device that runs out of memory on demand.
class Service {
 public:
  Service() : scratch_(::testing::TempDir() + "/service-XXXXXX") {
    EXPECT_NE(mkdtemp(scratch_.data()), nullptr);
    EXPECT_EQ(tiny_.Load(), absl::OkStatus());
    // One rung for all that the tests make.
    server::Governor::Options limits;
    limits.ladder = server::RungLadder::Create({{"all", {96, 96, 25}, 0, 0}}).value();
    governor_ = server::Governor::Create(&tiny_.model(), tiny_.files(), limits).value();
    backend_ = std::make_unique<server::ModelBackend>(&tiny_.model(), governor_.get(),
                                                      server::ModelBackend::Options{}, &metrics_);
    server::JobManagerOptions options;
    options.scratch_dir = scratch_;
    options.artifact_quota_bytes = int64_t{1} << 30;
    jobs_ = server::JobManager::Create(std::move(options), {}).value();
    loaded_ = tiny_.live_bytes();
  }

  TinyModel& tiny() { return tiny_; }
  int64_t loaded() const { return loaded_; }

  /// Runs a job to its end.
  std::shared_ptr<server::Job> Run(int64_t seed, int frames) {
    v1::GenerateVideoRequest request;
    request.set_prompt("a red circle moves up, a low hum");
    request.set_recipe("distilled_one_stage");
    request.set_width(96);
    request.set_height(96);
    request.set_num_frames(frames);
    request.set_seed(seed);
    server::JobManager::Submission submission;
    submission.tenant = "t";
    submission.make_task = backend_->Prepare(request).value().make_task;
    submission.request = std::move(request);
    const std::shared_ptr<server::Job> job = jobs_->Submit(std::move(submission)).value();
    const absl::Time limit = absl::Now() + absl::Minutes(2);
    while (!job->over() && absl::Now() < limit) absl::SleepFor(absl::Milliseconds(2));
    EXPECT_TRUE(job->over());
    return job;
  }

  static std::string Clip(const server::Job& job) {
    const auto file = job.OpenClip();
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? *(*file)->Read(0, job.Clip().total_bytes) : "";
  }

 private:
  std::string scratch_;
  TinyModel tiny_;
  server::ServerMetrics metrics_;
  std::unique_ptr<server::Governor> governor_;
  std::unique_ptr<server::ModelBackend> backend_;
  std::unique_ptr<server::JobManager> jobs_;
  int64_t loaded_ = 0;
};

TEST(ServiceMemoryTest, AJobThatRunsOutOfMemoryHarmsNoOther) {
  std::string expected;
  {
    Service fresh;
    const auto job = fresh.Run(7, 17);
    ASSERT_EQ(job->state(), v1::JOB_STATE_SUCCEEDED);
    expected = Service::Clip(*job);
    ASSERT_NE(expected, "");
  }
  Service service;
  // Early, amid the denoising, and late: a job makes a few thousand requests.
  for (const int64_t request : {3, 300, 1200}) {
    const int64_t refused = service.tiny().memory().Read().refused;
    service.tiny().memory().RefuseRequest(request);
    const auto failed = service.Run(1, 25);
    service.tiny().memory().RefuseRequest(0);
    ASSERT_EQ(service.tiny().memory().Read().refused, refused + 1) << request;
    EXPECT_EQ(failed->state(), v1::JOB_STATE_FAILED);
    const v1::JobError error = failed->Describe(/*brief=*/true).error();
    EXPECT_EQ(error.code(), static_cast<int>(absl::StatusCode::kResourceExhausted));
    EXPECT_EQ(error.reason(), "DEVICE_OOM");
    // What was needed, for whom, and what is held.
    EXPECT_THAT(error.message(), ::testing::ContainsRegex("no memory for [0-9]+ bytes of [a-z/]+"));
    EXPECT_THAT(error.message(), HasSubstr("bytes live"));
    EXPECT_EQ(service.tiny().live_bytes(), service.loaded()) << request;

    const auto next = service.Run(7, 17);
    ASSERT_EQ(next->state(), v1::JOB_STATE_SUCCEEDED) << next->EndStatus().error_message();
    EXPECT_TRUE(Service::Clip(*next) == expected) << request;
  }
}

}  // namespace
}  // namespace ltx::testing
