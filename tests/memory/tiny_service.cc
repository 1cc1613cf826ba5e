#include "tests/memory/tiny_service.h"

#include <cstdlib>
#include <utility>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "server/governor/rung_ladder.h"

namespace ltx::testing {
namespace {

/// Another task, and calls around each of its units.
class WatchedTask final : public server::Task {
 public:
  WatchedTask(std::string id, std::unique_ptr<server::Task> task, TinyService::OnUnit before_unit,
              TinyService::OnUnit after_unit)
      : id_(std::move(id)),
        task_(std::move(task)),
        before_unit_(std::move(before_unit)),
        after_unit_(std::move(after_unit)) {}

  absl::Status Start(int device) override { return task_->Start(device); }
  absl::StatusOr<server::UnitOutcome> AdvanceUnit() override {
    if (before_unit_) before_unit_(id_, units_done_);
    absl::StatusOr<server::UnitOutcome> outcome = task_->AdvanceUnit();
    ++units_done_;
    if (after_unit_) after_unit_(id_, units_done_);
    return outcome;
  }
  void OnSuspend() override { task_->OnSuspend(); }
  void OnResume() override { task_->OnResume(); }

 private:
  const std::string id_;
  const std::unique_ptr<server::Task> task_;
  const TinyService::OnUnit before_unit_;
  const TinyService::OnUnit after_unit_;
  int units_done_ = 0;
};

}  // namespace

TinyService::TinyService(std::function<void(const server::Job&)> on_over,
                         const TinyServiceSetup& setup)
    : scratch_(::testing::TempDir() + "/service-XXXXXX"), tiny_(setup.model) {
  EXPECT_NE(mkdtemp(scratch_.data()), nullptr);
  EXPECT_EQ(tiny_.Load(DType::kF32, setup.fused_cache_bytes), absl::OkStatus());
  // One rung for all that the tests make.
  server::Governor::Options limits;
  limits.ladder = server::RungLadder::Create({{"all", {256, 256, 49}, 0, 0}}).value();
  limits.device_bytes = setup.device_bytes;
  governor_ = server::Governor::Create(&tiny_.model(), tiny_.files(), limits).value();
  backend_ = std::make_unique<server::ModelBackend>(&tiny_.model(), governor_.get(),
                                                    server::ModelBackend::Options{}, &metrics_);
  server::JobManagerOptions options;
  options.scratch_dir = scratch_;
  options.artifact_quota_bytes = int64_t{1} << 30;
  options.on_over = std::move(on_over);
  jobs_ = server::JobManager::Create(std::move(options), {}).value();
  loaded_ = tiny_.live_bytes();
}

std::shared_ptr<server::Job> TinyService::Submit(const v1::GenerateVideoRequest& request,
                                                 OnUnit before_unit, OnUnit after_unit) {
  server::JobManager::Submission submission;
  submission.tenant = "t";
  submission.request = request;
  submission.make_task = [make = backend_->Prepare(request).value().make_task, before_unit,
                          after_unit](const std::string& id,
                                      std::shared_ptr<server::GenerationSink> sink) {
    return std::make_unique<WatchedTask>(id, make(id, std::move(sink)), before_unit, after_unit);
  };
  auto job = jobs_->Submit(std::move(submission));
  EXPECT_TRUE(job.ok()) << job.status();
  return *std::move(job);
}

void TinyService::Await(const server::Job& job) const {
  const absl::Time limit = absl::Now() + absl::Minutes(2);
  while (!job.over() && absl::Now() < limit) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_TRUE(job.over());
}

std::string TinyService::Clip(const server::Job& job) {
  const auto file = job.OpenClip();
  EXPECT_TRUE(file.ok()) << file.status();
  return file.ok() ? *(*file)->Read(0, job.Clip().total_bytes) : "";
}

}  // namespace ltx::testing
