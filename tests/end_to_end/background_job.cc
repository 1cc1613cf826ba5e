#include "tests/end_to_end/background_job.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/end_to_end/limit.h"

namespace ltx::testing {

BackgroundJob::BackgroundJob(const std::string& address, v1::GenerateVideoRequest request,
                             std::string output_path, absl::Time deadline)
    : client_(client::VideoClient::Connect(address, kLimit).value()),
      thread_([this, request = std::move(request), path = std::move(output_path), deadline] {
        client::VideoClient::GenerateOptions options;
        options.deadline = deadline;
        options.on_event = [this](const v1::GenerateVideoEvent& event) {
          absl::MutexLock lock(&mutex_);
          events_.push_back(event);
        };
        auto report = client_->Generate(request, path, options);
        absl::MutexLock lock(&mutex_);
        result_ = std::move(report);
      }) {}

BackgroundJob::~BackgroundJob() {
  if (!thread_.joinable()) return;
  client_->Cancel();
  thread_.join();
}

bool BackgroundJob::WaitForEvent(const std::function<bool(const v1::GenerateVideoEvent&)>& wanted,
                                 absl::Duration limit) {
  absl::MutexLock lock(&mutex_);
  const auto found = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return std::any_of(events_.begin(), events_.end(), wanted);
  };
  const auto found_or_over = [&]()
                                 ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return result_ || found(); };
  mutex_.AwaitWithTimeout(absl::Condition(&found_or_over), limit);
  return found();
}

bool BackgroundJob::WaitForAdmission() {
  return WaitForEvent([](const v1::GenerateVideoEvent& event) { return event.has_admitted(); });
}

std::string BackgroundJob::id() const {
  absl::MutexLock lock(&mutex_);
  return events_.empty() ? "" : events_.front().queued().job_id();
}

BackgroundJob::Events BackgroundJob::events() const {
  absl::MutexLock lock(&mutex_);
  return events_;
}

bool BackgroundJob::ended() const {
  absl::MutexLock lock(&mutex_);
  return result_.has_value();
}

absl::StatusOr<v1::GenerationReport> BackgroundJob::Join() {
  thread_.join();
  absl::MutexLock lock(&mutex_);
  return *std::move(result_);
}

v1::GenerateVideoRequest SmallRequest(int64_t seed) {
  v1::GenerateVideoRequest request;
  request.set_prompt("a red circle moves up, a low hum");
  request.set_width(128);
  request.set_height(128);
  request.set_num_frames(17);
  request.set_seed(seed);
  return request;
}

v1::GenerateVideoRequest LongRequest(int64_t seed) {
  v1::GenerateVideoRequest request = SmallRequest(seed);
  request.set_width(256);
  request.set_height(256);
  request.set_num_frames(49);
  request.set_recipe("distilled_one_stage");
  return request;
}

v1::GenerateVideoRequest EndlessRequest(int64_t seed) {
  v1::GenerateVideoRequest request = LongRequest(seed);
  request.set_width(512);
  request.set_height(512);
  request.set_num_frames(97);
  return request;
}

v1::HealthResponse ReadHealth(const std::string& address) {
  const auto client = client::VideoClient::Connect(address, kLimit);
  if (!client.ok()) {
    ADD_FAILURE() << client.status();
    return {};
  }
  const auto health = (*client)->Health(kLimit);
  if (!health.ok()) {
    ADD_FAILURE() << health.status();
    return {};
  }
  return *health;
}

v1::HealthResponse WaitUntilIdle(const std::string& address) {
  const absl::Time deadline = absl::Now() + kLimit;
  while (true) {
    v1::HealthResponse health = ReadHealth(address);
    const bool idle = health.queue().running_job_id().empty() && health.queue().waiting() == 0;
    if (idle) return health;
    if (absl::Now() > deadline) {
      ADD_FAILURE() << "still busy: " << health.queue().ShortDebugString();
      return health;
    }
    absl::SleepFor(absl::Milliseconds(10));
  }
}

}  // namespace ltx::testing
