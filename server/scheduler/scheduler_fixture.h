#ifndef LTX_SERVER_SCHEDULER_SCHEDULER_FIXTURE_H_
#define LTX_SERVER_SCHEDULER_SCHEDULER_FIXTURE_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "server/scheduler/fake_task.h"
#include "server/scheduler/scheduler.h"

namespace ltx::server {

inline FakeTask::Options Units(int units) {
  FakeTask::Options options;
  options.units = units;
  return options;
}

inline SchedulerOptions Capacity(int capacity) {
  SchedulerOptions options;
  options.capacity = capacity;
  return options;
}

inline JobSpec Spec(const std::string& id, JobClass job_class = JobClass::kBatch,
                    const std::string& tenant = "t") {
  JobSpec spec;
  spec.id = id;
  spec.tenant = tenant;
  spec.job_class = job_class;
  return spec;
}

/// A scheduler of fake tasks, and what happens to them as lines of a journal.
class SchedulerTest : public ::testing::Test {
 protected:
  void Make(const SchedulerOptions& options, SchedulerHooks hooks = {}) {
    scheduler_ = std::make_unique<Scheduler>(options, std::move(hooks));
  }
  void SetUp() override { Make(Capacity(100)); }

  absl::Status Submit(const JobSpec& spec, FakeTask::Options options = {}) {
    return scheduler_->Submit(spec,
                              std::make_unique<FakeTask>(spec.id, std::move(options), &journal_),
                              std::make_shared<JournalListener>(spec.id, &journal_));
  }
  void MustSubmit(const JobSpec& spec, FakeTask::Options options = {}) {
    const absl::Status status = Submit(spec, std::move(options));
    ASSERT_TRUE(status.ok()) << status;
  }
  /// A task that stays in each of its units until told to go on.
  FakeTask::Options Held(int units, absl::Notification* go_on) {
    return {units, 1, [go_on](int) {
              go_on->WaitForNotification();
              return absl::OkStatus();
            }};
  }
  /// Occupies the device until Release().
  void HoldDevice(JobClass job_class = JobClass::kInteractive) {
    MustSubmit(Spec("holder", job_class), Held(1, &release_));
    journal_.WaitFor("holder unit 1");
  }
  void Release() { release_.Notify(); }
  void WaitIdle() { scheduler_->Drain(absl::InfiniteDuration()); }

  Journal journal_;
  absl::Notification release_;
  std::unique_ptr<Scheduler> scheduler_;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_SCHEDULER_SCHEDULER_FIXTURE_H_
