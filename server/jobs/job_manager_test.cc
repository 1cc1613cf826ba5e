#include "server/jobs/job_manager.h"

#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "engine/pipeline/error_details.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/jobs/fake_generation.h"
#include "server/jobs/job_state.h"
#include "server/reasons.h"

namespace ltx::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr absl::Duration kLimit = absl::Minutes(1);

std::string MakeFolder() {
  std::string pattern = ::testing::TempDir() + "/manager-XXXXXX";
  return mkdtemp(pattern.data());
}

std::vector<std::string> ListFolder(const std::string& path) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

std::string ReasonOf(const absl::Status& status) {
  const auto detail = pipeline::GetErrorDetail(status);
  return detail.has_value() ? detail->reason : "";
}

v1::GenerateVideoRequest Request(const std::string& prompt = "p",
                                 const std::string& request_id = "") {
  v1::GenerateVideoRequest request;
  request.set_prompt(prompt);
  request.set_request_id(request_id);
  return request;
}

class JobManagerTest : public ::testing::Test {
 protected:
  ~JobManagerTest() override {
    if (!release_.HasBeenNotified()) release_.Notify();
  }
  JobManagerOptions Options() const {
    JobManagerOptions options;
    options.state_dir = state_dir_;
    options.scratch_dir = scratch_dir_;
    options.artifact_quota_bytes = 1 << 20;
    return options;
  }
  void Open(const JobManagerOptions& options) {
    manager_.reset();
    auto manager = JobManager::Create(options, {});
    ASSERT_TRUE(manager.ok()) << manager.status();
    manager_ = *std::move(manager);
  }
  void SetUp() override { Open(Options()); }

  absl::StatusOr<std::shared_ptr<Job>> Submit(const v1::GenerateVideoRequest& request,
                                              const FakeGeneration::Options& work = {},
                                              const std::string& tenant = "t") {
    JobManager::Submission submission;
    submission.request = request;
    submission.tenant = tenant;
    submission.make_task = [this, work](const std::string& id,
                                        std::shared_ptr<GenerationSink> sink) {
      ++made_;
      return std::make_unique<FakeGeneration>(id, work, std::move(sink));
    };
    return manager_->Submit(std::move(submission));
  }
  std::shared_ptr<Job> MustSubmit(const v1::GenerateVideoRequest& request,
                                  const FakeGeneration::Options& work = {}) {
    auto job = Submit(request, work);
    EXPECT_TRUE(job.ok()) << job.status();
    return job.ok() ? *job : nullptr;
  }
  /// Stays in each unit until Release().
  FakeGeneration::Options Held() {
    FakeGeneration::Options work;
    work.run = [this](int) {
      release_.WaitForNotification();
      return absl::OkStatus();
    };
    return work;
  }
  void Release() { release_.Notify(); }

  static void WaitFor(const Job& job, v1::JobState state) {
    const absl::Time limit = absl::Now() + kLimit;
    while (job.state() != state && !job.over() && absl::Now() < limit) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    ASSERT_EQ(v1::JobState_Name(job.state()), v1::JobState_Name(state));
  }
  static std::vector<std::string> Events(const Job& job) {
    std::vector<std::string> events;
    for (auto event = job.EventFrom(1); event; event = job.EventFrom(event->number() + 1)) {
      switch (event->event_case()) {
        case v1::GenerateVideoEvent::kQueued:
          events.push_back(absl::StrCat("queued ", event->queued().position()));
          break;
        case v1::GenerateVideoEvent::kProgress:
          events.push_back(absl::StrCat("unit ", event->progress().unit()));
          break;
        default:
          events.push_back(event->has_admitted() ? "admitted" : "finished");
      }
    }
    return events;
  }
  static std::string ReadClip(const Job& job) {
    const auto file = job.OpenClip();
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? *(*file)->Read(0, 1 << 20) : "";
  }
  std::vector<std::string> Ids(const v1::ListJobsRequest& request) const {
    std::vector<std::string> ids;
    const auto page = manager_->List(request);
    EXPECT_TRUE(page.ok()) << page.status();
    for (const v1::Job& job : page->jobs()) ids.push_back(job.job_id());
    return ids;
  }

  const std::string state_dir_ = MakeFolder();
  const std::string scratch_dir_ = MakeFolder();
  absl::Notification release_;
  std::atomic<int> made_{0};
  std::unique_ptr<JobManager> manager_;
};

TEST_F(JobManagerTest, AJobIsRunToldAndKept) {
  const std::shared_ptr<Job> job = MustSubmit(Request("a prompt"));
  WaitFor(*job, v1::JOB_STATE_SUCCEEDED);
  EXPECT_THAT(Events(*job),
              ElementsAre("queued 0", "admitted", "unit 1", "unit 2", "unit 3", "finished"));
  const v1::Job told = job->Describe(/*brief=*/false);
  EXPECT_EQ(told.request().prompt(), "a prompt");
  EXPECT_EQ(told.tenant(), "t");
  EXPECT_EQ(told.job_class(), v1::JOB_CLASS_INTERACTIVE);
  EXPECT_EQ(told.progress().units_done(), 3);
  EXPECT_EQ(told.report().job_id(), job->id());
  EXPECT_EQ(told.last_event(), 6);
  EXPECT_TRUE(told.artifact().available());
  EXPECT_EQ(told.artifact().total_bytes(), 100);
  EXPECT_TRUE(job->EndStatus().ok());
  EXPECT_EQ(ReadClip(*job), FakeGeneration::Clip(job->id(), 100));
  EXPECT_FALSE(job->Describe(/*brief=*/true).has_request());
}

TEST_F(JobManagerTest, FinishedJobsSurviveAStart) {
  const std::shared_ptr<Job> job = MustSubmit(Request("a prompt", "key"));
  WaitFor(*job, v1::JOB_STATE_SUCCEEDED);
  const std::string before = job->Describe(/*brief=*/false).SerializeAsString();
  const std::vector<std::string> events = Events(*job);
  Open(Options());
  const auto found = manager_->Find(job->id());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ((*found)->Describe(/*brief=*/false).SerializeAsString(), before);
  EXPECT_EQ(Events(**found), events);
  EXPECT_EQ(ReadClip(**found), FakeGeneration::Clip(job->id(), 100));
  // Its key still stands for it, and the numbers of new jobs go on.
  EXPECT_EQ(MustSubmit(Request("a prompt", "key")), *found);
  EXPECT_GT(MustSubmit(Request("a prompt", "other"))->sequence(), job->sequence());
}

TEST_F(JobManagerTest, AfterACrashUnfinishedJobsAreLostNotForgotten) {
  const std::shared_ptr<Job> done = MustSubmit(Request());
  WaitFor(*done, v1::JOB_STATE_SUCCEEDED);
  const std::string outputs = MakeFolder();
  v1::GenerateVideoRequest writing = Request("running", "key");
  writing.set_output_path(outputs + "/clip.mp4");
  const std::shared_ptr<Job> running = MustSubmit(writing, Held());
  WaitFor(*running, v1::JOB_STATE_RUNNING);
  const std::shared_ptr<Job> waiting = MustSubmit(Request("waiting"));
  // What a kill leaves, with a clip that was being written and one whose record was not.
  const std::string crashed = MakeFolder() + "/state";
  std::filesystem::copy(state_dir_, crashed, std::filesystem::copy_options::recursive);
  std::ofstream(crashed + "/artifacts/" + running->id() + ".mp4") << "whole, but not told of";
  std::ofstream(crashed + "/artifacts/x.mp4.part-1-2") << "half";
  std::ofstream(crashed + "/jobs/x.json.part-1-2") << "{";
  std::ofstream(outputs + "/clip.mp4.part-1-2") << "half";
  std::ofstream(outputs + "/other.mp4.part-1-2") << "not ours";
  Release();
  WaitFor(*waiting, v1::JOB_STATE_SUCCEEDED);

  JobManagerOptions options = Options();
  options.state_dir = crashed;
  Open(options);
  EXPECT_EQ(manager_->size(), 3);
  EXPECT_EQ((*manager_->Find(done->id()))->state(), v1::JOB_STATE_SUCCEEDED);
  for (const std::string& id : {running->id(), waiting->id()}) {
    const auto lost = manager_->Find(id);
    ASSERT_TRUE(lost.ok()) << lost.status();
    const v1::Job told = (*lost)->Describe(/*brief=*/false);
    EXPECT_EQ(told.state(), v1::JOB_STATE_FAILED);
    EXPECT_EQ(told.error().reason(), kReasonLost);
    EXPECT_EQ((*lost)->EndStatus().error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_FALSE(told.has_artifact());
    EXPECT_GE(Events(**lost).size(), 1u);
  }
  EXPECT_THAT(ListFolder(crashed + "/artifacts"), ElementsAre(done->id() + ".mp4"));
  EXPECT_THAT(
      ListFolder(crashed + "/jobs"),
      UnorderedElementsAre(done->id() + ".json", running->id() + ".json", waiting->id() + ".json"));
  EXPECT_THAT(ListFolder(outputs), ElementsAre("other.mp4.part-1-2"));
  // Its client was told to come back: the key makes a new job.
  EXPECT_NE(MustSubmit(writing)->id(), running->id());
  // Told once: the next start does not lose them again.
  Open(options);
  EXPECT_EQ((*manager_->Find(running->id()))->state(), v1::JOB_STATE_FAILED);
}

TEST_F(JobManagerTest, WhatAClientHearsOfIsOnDisk) {
  const auto record_of = [this](const Job& job) {
    std::ifstream file(absl::StrCat(state_dir_, "/jobs/", job.id(), ".json"));
    return std::string((std::istreambuf_iterator<char>(file)), {});
  };
  const std::shared_ptr<Job> running = MustSubmit(Request(), Held());
  WaitFor(*running, v1::JOB_STATE_RUNNING);
  // More than one, as only a race would let a client hear too early.
  constexpr int kJobs = 5;
  std::vector<std::shared_ptr<Job>> jobs(kJobs);
  for (int i = 0; i < kJobs; ++i) {
    const v1::GenerateVideoRequest request = Request("p", absl::StrCat("key", i));
    std::thread submit([&] { jobs[i] = MustSubmit(request); });
    std::shared_ptr<Job> joined;
    while (joined == nullptr) joined = *manager_->Join(request, "t");
    EXPECT_THAT(record_of(*joined), HasSubstr("JOB_STATE_QUEUED"));
    submit.join();
  }
  Release();
  for (const std::shared_ptr<Job>& job : jobs) {
    while (!job->over()) std::this_thread::yield();
    EXPECT_THAT(record_of(*job), HasSubstr("JOB_STATE_SUCCEEDED"));
  }
}

TEST_F(JobManagerTest, OneServerAFolder) {
  const auto second = JobManager::Create(Options(), {});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  manager_.reset();
  EXPECT_TRUE(JobManager::Create(Options(), {}).ok());
}

TEST_F(JobManagerTest, WithoutAFolderNothingStays) {
  JobManagerOptions options = Options();
  options.state_dir.clear();
  Open(options);
  const std::shared_ptr<Job> job = MustSubmit(Request());
  WaitFor(*job, v1::JOB_STATE_SUCCEEDED);
  EXPECT_THAT(ListFolder(scratch_dir_), IsEmpty());
  EXPECT_EQ(ReadClip(*job), FakeGeneration::Clip(job->id(), 100));
}

TEST_F(JobManagerTest, StatesTellHowItEnded) {
  FakeGeneration::Options broken;
  broken.run = [](int unit) {
    return unit == 2
               ? pipeline::WithDetail(absl::InternalError("broken"), {"SOME_REASON", "", "", ""})
               : absl::OkStatus();
  };
  const std::shared_ptr<Job> failed = MustSubmit(Request(), broken);
  WaitFor(*failed, v1::JOB_STATE_FAILED);
  EXPECT_EQ(failed->Describe(true).error().message(), "broken");
  EXPECT_EQ(failed->Describe(true).error().reason(), "SOME_REASON");
  EXPECT_EQ(failed->EndStatus().error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_NE(failed->EndStatus().error_details(), "");

  const std::shared_ptr<Job> running = MustSubmit(Request(), Held());
  WaitFor(*running, v1::JOB_STATE_RUNNING);
  const std::shared_ptr<Job> waiting = MustSubmit(Request());
  // Not running before it has the device.
  EXPECT_EQ(waiting->state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(waiting->Describe(true).jobs_ahead(), 1);
  EXPECT_FALSE(waiting->Describe(true).has_start_time());
  v1::GenerateVideoRequest impatient = Request();
  impatient.set_queue_timeout_seconds(0.02);
  const std::shared_ptr<Job> refused = MustSubmit(impatient);
  WaitFor(*refused, v1::JOB_STATE_REFUSED);
  EXPECT_EQ(refused->Describe(true).error().reason(), kReasonQueueTimeout);
  ASSERT_TRUE(manager_->Cancel(waiting->id()).ok());
  EXPECT_EQ(waiting->state(), v1::JOB_STATE_CANCELLED);
  ASSERT_TRUE(manager_->Cancel(running->id()).ok());
  EXPECT_EQ(running->state(), v1::JOB_STATE_RUNNING);
  Release();
  WaitFor(*running, v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(running->Describe(true).progress().units_done(), 1);
}

TEST_F(JobManagerTest, AKeyStandsForOneJob) {
  const std::shared_ptr<Job> job = MustSubmit(Request("p", "key"));
  v1::GenerateVideoRequest detached = Request("p", "key");
  detached.set_detach(true);
  EXPECT_EQ(MustSubmit(detached), job);
  EXPECT_EQ(*manager_->Join(Request("p", "key"), "t"), job);
  EXPECT_EQ(*manager_->Join(Request("p", "key"), "other"), nullptr);
  EXPECT_EQ(*manager_->Join(Request("p"), "t"), nullptr);
  EXPECT_EQ(made_, 1);
  for (const absl::Status& status :
       {Submit(Request("q", "key")).status(), manager_->Join(Request("q", "key"), "t").status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
    EXPECT_EQ(ReasonOf(status), kReasonRequestIdReused);
  }
  const auto others = Submit(Request("q", "key"), {}, "other");
  ASSERT_TRUE(others.ok()) << others.status();
  EXPECT_NE(*others, job);
  // Of finished jobs too, until they are forgotten.
  WaitFor(*job, v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(MustSubmit(Request("p", "key")), job);
  ASSERT_TRUE(manager_->Delete(job->id()).ok());
  EXPECT_NE(MustSubmit(Request("p", "key")), job);
}

TEST_F(JobManagerTest, ManyCallsWithOneKeyMakeOneJob) {
  std::vector<std::shared_ptr<Job>> jobs(16);
  std::vector<std::thread> calls;
  calls.reserve(jobs.size());
  for (std::shared_ptr<Job>& job : jobs) {
    calls.emplace_back([this, &job] { job = MustSubmit(Request("p", "key")); });
  }
  for (std::thread& call : calls) call.join();
  EXPECT_EQ(made_, 1);
  EXPECT_EQ(std::set<std::shared_ptr<Job>>(jobs.begin(), jobs.end()).size(), 1u);
}

TEST_F(JobManagerTest, TheLastOwnerTakesTheJobAlong) {
  const std::shared_ptr<Job> running = MustSubmit(Request(), Held());
  const std::shared_ptr<Job> shared = MustSubmit(Request("p", "key"));
  MustSubmit(Request("p", "key"));
  manager_->Leave(shared);
  EXPECT_EQ(shared->state(), v1::JOB_STATE_QUEUED);
  manager_->Leave(shared);
  EXPECT_EQ(shared->state(), v1::JOB_STATE_CANCELLED);

  // Who joins a job is an owner as much as who made it, and may detach it.
  const std::shared_ptr<Job> joined = MustSubmit(Request("p", "joined"));
  EXPECT_EQ(*manager_->Join(Request("p", "joined"), "t"), joined);
  manager_->Leave(joined);
  EXPECT_EQ(joined->state(), v1::JOB_STATE_QUEUED);
  manager_->Leave(joined);
  EXPECT_EQ(joined->state(), v1::JOB_STATE_CANCELLED);

  v1::GenerateVideoRequest request = Request();
  request.set_detach(true);
  const std::shared_ptr<Job> detached = MustSubmit(request);
  manager_->Leave(detached);
  EXPECT_EQ(detached->state(), v1::JOB_STATE_QUEUED);
  const std::shared_ptr<Job> detached_later = MustSubmit(Request("p", "later"));
  request = Request("p", "later");
  request.set_detach(true);
  EXPECT_EQ(*manager_->Join(request, "t"), detached_later);
  manager_->Leave(detached_later);
  manager_->Leave(detached_later);
  EXPECT_EQ(detached_later->state(), v1::JOB_STATE_QUEUED);
  Release();
  for (const auto& job : {detached, detached_later}) WaitFor(*job, v1::JOB_STATE_SUCCEEDED);
}

TEST_F(JobManagerTest, ADetachedJobOutlivesTheDeadlineOfItsCall) {
  const auto submit = [this](bool detach) {
    JobManager::Submission submission;
    submission.request = Request();
    submission.request.set_detach(detach);
    submission.tenant = "t";
    submission.deadline = absl::Now() + absl::Milliseconds(500);
    submission.make_task = [work = Held()](const std::string& id,
                                           std::shared_ptr<GenerationSink> sink) {
      return std::make_unique<FakeGeneration>(id, work, std::move(sink));
    };
    return manager_->Submit(std::move(submission)).value();
  };
  const std::shared_ptr<Job> detached = submit(true);
  WaitFor(*detached, v1::JOB_STATE_RUNNING);
  const std::shared_ptr<Job> waiting = submit(false);
  // By then the deadline of the first has passed, too.
  WaitFor(*waiting, v1::JOB_STATE_REFUSED);
  Release();
  WaitFor(*detached, v1::JOB_STATE_SUCCEEDED);
}

TEST_F(JobManagerTest, NoJobMayAskToWaitLongerThanTheServerLets) {
  JobManagerOptions options = Options();
  options.queue_timeout = absl::Milliseconds(500);
  Open(options);
  const std::shared_ptr<Job> running = MustSubmit(Request(), Held());
  WaitFor(*running, v1::JOB_STATE_RUNNING);
  v1::GenerateVideoRequest patient = Request();
  patient.set_queue_timeout_seconds(3600);
  const std::shared_ptr<Job> refused = MustSubmit(patient);
  WaitFor(*refused, v1::JOB_STATE_REFUSED);
  EXPECT_EQ(refused->Describe(true).error().reason(), kReasonQueueTimeout);
  Release();
}

TEST_F(JobManagerTest, ListsInPagesNewestFirst) {
  std::vector<std::string> ids;
  for (int i = 0; i < 5; ++i) {
    const auto job = Submit(Request(), {}, i % 2 == 0 ? "even" : "odd");
    ASSERT_TRUE(job.ok()) << job.status();
    WaitFor(**job, v1::JOB_STATE_SUCCEEDED);
    ids.insert(ids.begin(), (*job)->id());
  }
  v1::ListJobsRequest request;
  EXPECT_EQ(Ids(request), ids);
  request.set_page_size(2);
  std::vector<std::string> paged;
  do {
    const auto page = manager_->List(request);
    ASSERT_TRUE(page.ok()) << page.status();
    ASSERT_LE(page->jobs_size(), 2);
    for (const v1::Job& job : page->jobs()) paged.push_back(job.job_id());
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  EXPECT_EQ(paged, ids);
  request.Clear();
  request.set_tenant("odd");
  EXPECT_THAT(Ids(request), ElementsAre(ids[1], ids[3]));
  request.add_states(v1::JOB_STATE_RUNNING);
  EXPECT_THAT(Ids(request), IsEmpty());
  request.add_states(v1::JOB_STATE_SUCCEEDED);
  EXPECT_THAT(Ids(request), ElementsAre(ids[1], ids[3]));
  request.set_page_token("nonsense");
  EXPECT_EQ(manager_->List(request).status().code(), absl::StatusCode::kInvalidArgument);
  request.Clear();
  request.set_page_size(201);
  EXPECT_EQ(manager_->List(request).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(JobManagerTest, DeletedJobsAreGoneAndStopped) {
  const std::shared_ptr<Job> done = MustSubmit(Request());
  WaitFor(*done, v1::JOB_STATE_SUCCEEDED);
  ASSERT_TRUE(manager_->Delete(done->id()).ok());
  EXPECT_EQ(ReasonOf(manager_->Find(done->id()).status()), kReasonJobUnknown);
  EXPECT_EQ(ReasonOf(manager_->Delete(done->id())), kReasonJobUnknown);
  EXPECT_THAT(ListFolder(state_dir_ + "/artifacts"), IsEmpty());
  EXPECT_THAT(ListFolder(state_dir_ + "/jobs"), IsEmpty());

  const std::shared_ptr<Job> running = MustSubmit(Request(), Held());
  WaitFor(*running, v1::JOB_STATE_RUNNING);
  ASSERT_TRUE(manager_->Delete(running->id()).ok());
  // Until it has ended it is there to be seen.
  EXPECT_TRUE(manager_->Find(running->id()).ok());
  Release();
  WaitFor(*running, v1::JOB_STATE_CANCELLED);
  const absl::Time limit = absl::Now() + kLimit;
  // The record goes right after the job, so that both are waited for.
  const auto is_there = [&] {
    return manager_->size() > 0 || !ListFolder(state_dir_ + "/jobs").empty();
  };
  while (is_there() && absl::Now() < limit) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(manager_->size(), 0);
  EXPECT_THAT(ListFolder(state_dir_ + "/jobs"), IsEmpty());
}

TEST_F(JobManagerTest, OldJobsAreForgotten) {
  JobManagerOptions options = Options();
  options.history = 3;
  options.ttl = absl::Hours(1);
  Open(options);
  std::vector<std::string> ids;
  for (int i = 0; i < 5; ++i) {
    const std::shared_ptr<Job> job = MustSubmit(Request());
    WaitFor(*job, v1::JOB_STATE_SUCCEEDED);
    ids.push_back(job->id());
    EXPECT_TRUE(job->Describe(true).has_expire_time());
  }
  // Files go after the books.
  const absl::Time limit = absl::Now() + kLimit;
  while (ListFolder(state_dir_ + "/artifacts").size() > 3 && absl::Now() < limit) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_THAT(Ids({}), ElementsAre(ids[4], ids[3], ids[2]));
  EXPECT_EQ(ListFolder(state_dir_ + "/artifacts").size(), 3u);
  manager_->Sweep(absl::Now() + absl::Minutes(59));
  EXPECT_EQ(manager_->size(), 3);
  manager_->Sweep(absl::Now() + absl::Minutes(61));
  EXPECT_EQ(manager_->size(), 0);
  EXPECT_THAT(ListFolder(state_dir_ + "/jobs"), IsEmpty());
  EXPECT_EQ(manager_->artifact_bytes(), 0);
}

TEST_F(JobManagerTest, OldClipsMakeRoomAndTheirJobsSaySo) {
  JobManagerOptions options = Options();
  options.artifact_quota_bytes = 250;
  Open(options);
  std::vector<std::shared_ptr<Job>> jobs;
  for (int i = 0; i < 3; ++i) {
    jobs.push_back(MustSubmit(Request()));
    WaitFor(*jobs.back(), v1::JOB_STATE_SUCCEEDED);
  }
  EXPECT_FALSE(jobs[0]->Describe(true).artifact().available());
  EXPECT_EQ(ReasonOf(jobs[0]->OpenClip().status()), kReasonArtifactGone);
  EXPECT_TRUE(jobs[1]->Describe(true).artifact().available());
  EXPECT_TRUE(jobs[2]->Describe(true).artifact().available());
  FakeGeneration::Options large;
  large.clip_bytes = 251;
  const std::shared_ptr<Job> failed = MustSubmit(Request(), large);
  WaitFor(*failed, v1::JOB_STATE_FAILED);
  EXPECT_EQ(failed->Describe(true).error().reason(), kReasonArtifactQuota);
}

TEST_F(JobManagerTest, BadFieldsAreRefusedByName) {
  const auto field_of = [this](const v1::GenerateVideoRequest& request) {
    const absl::Status status = Submit(request).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    const auto detail = pipeline::GetErrorDetail(status);
    return detail.has_value() ? detail->field : "";
  };
  EXPECT_EQ(field_of(Request("p", std::string(129, 'x'))), "request_id");
  EXPECT_EQ(field_of(Request("p", "a b")), "request_id");
  v1::GenerateVideoRequest request = Request();
  request.set_job_class(static_cast<v1::JobClass>(7));
  EXPECT_EQ(field_of(request), "job_class");
  for (const double seconds : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    request = Request();
    request.set_queue_timeout_seconds(seconds);
    EXPECT_EQ(field_of(request), "queue_timeout_seconds");
  }
  EXPECT_EQ(manager_->size(), 0);
}

TEST_F(JobManagerTest, WhatCannotBeWrittenDownIsNotAccepted) {
  std::filesystem::remove_all(state_dir_ + "/jobs");
  const absl::Status status = Submit(Request("p", "key"), Held()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
  EXPECT_EQ(manager_->size(), 0);
  Release();
  std::filesystem::create_directory(state_dir_ + "/jobs");
  WaitFor(*MustSubmit(Request("p", "key")), v1::JOB_STATE_SUCCEEDED);
}

TEST(JobStateTest, WaysBetweenStates) {
  EXPECT_TRUE(MayFollow(v1::JOB_STATE_UNSPECIFIED, v1::JOB_STATE_QUEUED));
  EXPECT_TRUE(MayFollow(v1::JOB_STATE_QUEUED, v1::JOB_STATE_RUNNING));
  EXPECT_FALSE(MayFollow(v1::JOB_STATE_QUEUED, v1::JOB_STATE_SUCCEEDED));
  EXPECT_FALSE(MayFollow(v1::JOB_STATE_RUNNING, v1::JOB_STATE_QUEUED));
  EXPECT_FALSE(MayFollow(v1::JOB_STATE_RUNNING, v1::JOB_STATE_REFUSED));
  for (const v1::JobState end : {v1::JOB_STATE_SUCCEEDED, v1::JOB_STATE_FAILED,
                                 v1::JOB_STATE_CANCELLED, v1::JOB_STATE_REFUSED}) {
    EXPECT_TRUE(IsOver(end));
    for (int next = v1::JobState_MIN; next <= v1::JobState_MAX; ++next) {
      EXPECT_FALSE(MayFollow(end, static_cast<v1::JobState>(next)));
    }
  }
  EXPECT_FALSE(IsOver(v1::JOB_STATE_QUEUED));
  EXPECT_FALSE(IsOver(v1::JOB_STATE_RUNNING));
}

}  // namespace
}  // namespace ltx::server
