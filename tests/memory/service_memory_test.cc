#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/memory/tiny_service.h"

namespace ltx::testing {
namespace {

using ::testing::HasSubstr;

v1::GenerateVideoRequest Request(int64_t seed, int frames) {
  v1::GenerateVideoRequest request;
  request.set_prompt("a red circle moves up, a low hum");
  request.set_recipe("distilled_one_stage");
  request.set_width(96);
  request.set_height(96);
  request.set_num_frames(frames);
  request.set_seed(seed);
  return request;
}

/// Runs a job to its end.
std::shared_ptr<server::Job> RunJob(TinyService* service, int64_t seed, int frames) {
  const std::shared_ptr<server::Job> job = service->Submit(Request(seed, frames));
  service->Await(*job);
  return job;
}

TEST(ServiceMemoryTest, AJobThatRunsOutOfMemoryHarmsNoOther) {
  std::string expected;
  {
    TinyService fresh;
    const auto job = RunJob(&fresh, 7, 17);
    ASSERT_EQ(job->state(), v1::JOB_STATE_SUCCEEDED);
    expected = TinyService::Clip(*job);
    ASSERT_NE(expected, "");
  }
  TinyService service;
  // Early, amid the denoising, and late: a job makes a few thousand requests.
  for (const int64_t request : {3, 300, 1200}) {
    const int64_t refused = service.tiny().memory().Read().refused;
    service.tiny().memory().RefuseRequest(request);
    const auto failed = RunJob(&service, 1, 25);
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

    const auto next = RunJob(&service, 7, 17);
    ASSERT_EQ(next->state(), v1::JOB_STATE_SUCCEEDED) << next->EndStatus().error_message();
    EXPECT_TRUE(TinyService::Clip(*next) == expected) << request;
  }
}

}  // namespace
}  // namespace ltx::testing
