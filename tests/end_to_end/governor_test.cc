#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "client/video_client.h"
#include "engine/checkpoint/safetensors.h"
#include "tests/end_to_end/limit.h"
#include "tests/end_to_end/server_process.h"
#include "tests/end_to_end/subprocess.h"
#include "tests/end_to_end/wire_calls.h"

namespace ltx::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::GenerateVideoRequest Clip(int width, int height, int num_frames) {
  v1::GenerateVideoRequest request;
  request.set_prompt("a red circle moves up, a low hum");
  request.set_recipe("distilled_one_stage");
  request.set_width(width);
  request.set_height(height);
  request.set_num_frames(num_frames);
  return request;
}

/// Two rungs, of which the larger one has no room: its clips need some 100 MB.
std::string ConfigFile() {
  std::string path = MakeFolder() + "/config.json";
  std::ofstream(path) << R"({"rungs": [
      {"name": "small", "width": 128, "height": 128, "num_frames": 25, "max_seconds": 600},
      {"name": "large", "width": 256, "height": 192, "num_frames": 49, "max_bytes": 40000000}]})";
  return path;
}

class GovernorTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto server = ServerProcess::Start(
        {"--config", ConfigFile(), "--calibration-seconds", "0", "--state-dir", MakeFolder()});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    client_ = client::VideoClient::Connect(server_->address(), kLimit).value();
  }
  static void TearDownTestSuite() {
    client_.reset();
    server_.reset();
  }

  static std::unique_ptr<ServerProcess> server_;
  static std::unique_ptr<client::VideoClient> client_;
};
std::unique_ptr<ServerProcess> GovernorTest::server_;
std::unique_ptr<client::VideoClient> GovernorTest::client_;

TEST_F(GovernorTest, PlansBeforeItRuns) {
  const auto plan = client_->Plan(Clip(96, 96, 17));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->decision(), v1::PlanResponse::DECISION_ADMIT);
  EXPECT_EQ(plan->rung().name(), "small");
  EXPECT_EQ(plan->parameters().num_frames(), 17);
  EXPECT_EQ(plan->allowed_seconds(), 600);
  EXPECT_GT(plan->resident_bytes(), 0);
  EXPECT_GT(plan->projected_bytes(), plan->resident_bytes());
  ASSERT_EQ(plan->phases_size(), 5);
  EXPECT_EQ(plan->phases(0).phase(), v1::PHASE_TEXT);
  EXPECT_EQ(plan->phases(1).units(), 8);
  EXPECT_EQ(plan->phases(4).phase(), v1::PHASE_MUX);

  // The job that follows says the same, and its memory is what was projected.
  const WireStream stream = CallGenerate(server_->address(), Clip(96, 96, 17));
  ASSERT_EQ(stream.error.code, absl::StatusCode::kOk) << stream.error.message;
  bool admitted = false;
  int64_t peak = 0;
  for (const v1::GenerateVideoEvent& event : stream.events) {
    if (event.has_admitted()) {
      admitted = true;
      EXPECT_EQ(event.admitted().plan().rung().name(), "small");
      EXPECT_EQ(event.admitted().plan().projected_bytes(), plan->projected_bytes());
    }
    if (!event.has_finished()) continue;
    for (const v1::MemoryAmounts& amounts : event.finished().report().memory()) {
      if (amounts.owner() == "total") peak = amounts.peak_bytes();
    }
  }
  EXPECT_TRUE(admitted);
  EXPECT_NEAR(static_cast<double>(plan->projected_bytes()), static_cast<double>(peak),
              0.05 * static_cast<double>(peak));

  // By now the server has measured every kind of work once.
  const auto second = client_->Plan(Clip(96, 96, 17));
  ASSERT_TRUE(second.ok());
  EXPECT_TRUE(second->seconds_known());
  EXPECT_GT(second->projected_seconds(), 0);
}

TEST_F(GovernorTest, RefusesMemoryByNameBeforeAnythingIsQueued) {
  const WireStream stream = CallGenerate(server_->address(), Clip(256, 192, 49));
  EXPECT_EQ(stream.error.code, absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(stream.error.reason, "MEMORY_PROJECTION_EXCEEDS_BUDGET");
  EXPECT_THAT(stream.error.message, HasSubstr("rung large allows 40.0 MB"));
  EXPECT_THAT(stream.error.legal, HasSubstr("rung small"));
  EXPECT_EQ(stream.error.retry_seconds, 0);
  EXPECT_TRUE(stream.events.empty());
  const auto plan = client_->Plan(Clip(256, 192, 49));
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->decision(), v1::PlanResponse::DECISION_REFUSE);
  EXPECT_EQ(plan->largest_fitting_rung(), "small");
}

TEST_F(GovernorTest, RefusesWhatBelongsToNoRung) {
  const WireStream stream = CallGenerate(server_->address(), Clip(256, 256, 49));
  EXPECT_EQ(stream.error.code, absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(stream.error.reason, "RUNG_EXCEEDED");
  EXPECT_EQ(stream.error.legal, "large; rung small");
}

TEST_F(GovernorTest, HoldsTheLease) {
  v1::GenerateVideoRequest request = Clip(96, 96, 17);
  request.set_max_seconds(-1);
  WireStream stream = CallGenerate(server_->address(), request);
  EXPECT_EQ(stream.error.reason, "LEASE");
  EXPECT_EQ(stream.error.field, "max_seconds");

  request.clear_max_seconds();
  request.set_max_bytes(1000);
  stream = CallGenerate(server_->address(), request);
  EXPECT_EQ(stream.error.reason, "MEMORY_PROJECTION_EXCEEDS_BUDGET");
  EXPECT_THAT(stream.error.message, HasSubstr("the request's max_bytes allows 1.0 KB"));
  EXPECT_THAT(stream.error.message, Not(HasSubstr("time:")));

  // Refused at once, or stopped after its first unit if nothing has been measured yet.
  request.clear_max_bytes();
  request.set_max_seconds(1e-6);
  stream = CallGenerate(server_->address(), request);
  EXPECT_EQ(stream.error.code, absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(stream.error.reason, "TIME_PROJECTION_EXCEEDS_LEASE");
}

TEST_F(GovernorTest, RefusesADeadlineThatCannotBeMet) {
  ASSERT_EQ(CallGenerate(server_->address(), Clip(96, 96, 17)).error.code, absl::StatusCode::kOk);
  ASSERT_EQ(CallGenerate(server_->address(), Clip(96, 96, 17)).error.code, absl::StatusCode::kOk);
  const auto plan = client_->Plan(Clip(128, 128, 25), absl::Now() + absl::Milliseconds(50));
  // 50 ms are enough for the answer but not for a clip; on a slow machine not even for that.
  if (!plan.ok()) {
    EXPECT_TRUE(absl::IsDeadlineExceeded(plan.status())) << plan.status();
    return;
  }
  EXPECT_EQ(plan->decision(), v1::PlanResponse::DECISION_REFUSE);
  EXPECT_EQ(plan->reason(), "DEADLINE_CANNOT_BE_MET");
}

TEST_F(GovernorTest, ListsItsRungs) {
  const auto rungs = client_->Rungs(Clip(96, 96, 17));
  ASSERT_TRUE(rungs.ok()) << rungs.status();
  ASSERT_EQ(rungs->plans_size(), 2);
  EXPECT_EQ(rungs->plans(0).rung().name(), "small");
  EXPECT_EQ(rungs->plans(0).decision(), v1::PlanResponse::DECISION_ADMIT);
  EXPECT_EQ(rungs->plans(1).rung().name(), "large");
  EXPECT_EQ(rungs->plans(1).decision(), v1::PlanResponse::DECISION_REFUSE);
}

TEST_F(GovernorTest, HealthShowsTheBaselineApart) {
  const auto health = client_->Health(kLimit);
  ASSERT_TRUE(health.ok());
  EXPECT_GT(health->device().baseline_available_bytes(), 0);
  EXPECT_GT(health->device().budget_bytes(), 0);
  EXPECT_LT(health->device().budget_bytes(), health->device().baseline_available_bytes());
}

/// The stream of a job that its lease stops between two denoising steps. Whether a lease ends there
/// is a matter of the machine: it is tried on fresh servers, of which none knows what work costs
/// and so lets the job begin.
class PartialResultTest : public ::testing::Test {
 protected:
  void Start() {
    auto server = ServerProcess::Start(
        {"--calibration-seconds", "0", "--output-root", root_, "--state-dir", MakeFolder()});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    client_ = client::VideoClient::Connect(server_->address(), kLimit).value();
    // Encodes the prompt, which is kept, and stops before anything else.
    v1::GenerateVideoRequest text = LargeClip();
    text.set_max_seconds(1e-6);
    text.set_keep_partial_results(true);
    const WireStream stream = CallGenerate(server_->address(), text);
    ASSERT_EQ(stream.error.reason, "TIME_PROJECTION_EXCEEDS_LEASE") << stream.error.message;
    EXPECT_THAT(stream.error.message, HasSubstr("nothing is kept: the job has made no latents"));
  }
  /// A step of it takes longer than what comes before the first one.
  static v1::GenerateVideoRequest LargeClip() { return Clip(256, 256, 49); }
  static v1::GenerateVideoRequest Leased() {
    v1::GenerateVideoRequest request = LargeClip();
    request.set_max_seconds(0.02);
    request.set_keep_partial_results(true);
    return request;
  }

  const std::string root_ = MakeFolder();
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<client::VideoClient> client_;
};

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void ExpectLatents(const std::string& path) {
  const auto file = checkpoint::SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->metadata().at("phase"), "stage1");
  EXPECT_THAT((*file)->metadata().at("parameters"), HasSubstr("distilled_one_stage"));
  ASSERT_EQ((*file)->entries().count("video_latent"), 1);
  const Shape& video = (*file)->entries().at("video_latent").shape;
  EXPECT_EQ(video.dim(1), 7);
  EXPECT_EQ(video.dim(2), 8);
  EXPECT_EQ((*file)->entries().count("audio_latent"), 1);
}

TEST_F(PartialResultTest, TheClientGetsWhatThereIs) {
  const std::string clip = root_ + "/clip.mp4";
  v1::PartialResult partial;
  std::string job_id;
  client::VideoClient::GenerateOptions options;
  options.on_event = [&](const v1::GenerateVideoEvent& event) {
    if (event.has_admitted()) job_id = event.admitted().job_id();
    if (event.has_partial()) partial = event.partial();
  };
  absl::Status ended;
  for (int attempt = 0; attempt < 5 && partial.tensors_size() == 0; ++attempt) {
    ASSERT_NO_FATAL_FAILURE(Start());
    ended = client_->Generate(Leased(), clip, options).status();
    ASSERT_EQ(ended.code(), absl::StatusCode::kResourceExhausted) << ended;
  }
  ASSERT_GT(partial.tensors_size(), 0) << ended;
  EXPECT_EQ(partial.phase(), v1::PHASE_STAGE_1);
  EXPECT_EQ(partial.step(), partial.unit());
  EXPECT_EQ(partial.steps(), 8);
  EXPECT_GT(partial.sigma(), 0);
  const std::string kept = clip + ".partial.safetensors";
  EXPECT_THAT(std::string(ended.message()), HasSubstr("what there is: " + kept));
  ExpectLatents(kept);
  EXPECT_EQ(static_cast<int64_t>(ReadFile(kept).size()), partial.total_bytes());
  EXPECT_TRUE(ReadFile(clip).empty()) << "there is no clip";

  // The job has failed and still has it.
  const auto job = client_->GetJob(job_id);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(job->partial_result().tensors_size(), partial.tensors_size());
  EXPECT_FALSE(job->rung().empty());
  EXPECT_TRUE(job->artifact().available());
  EXPECT_EQ(job->artifact().total_bytes(), partial.total_bytes());
  v1::WatchJobRequest watch;
  watch.set_job_id(job_id);
  const std::string again = root_ + "/again";
  EXPECT_EQ(client_->Watch(watch, again, {}).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReadFile(again + ".partial.safetensors"), ReadFile(kept));
}

TEST_F(PartialResultTest, LiesBesideAPathOfTheServers) {
  v1::GenerateVideoRequest request = Leased();
  request.set_output_path(root_ + "/clip.mp4");
  std::string path;
  WireStream stream;
  for (int attempt = 0; attempt < 5 && path.empty(); ++attempt) {
    ASSERT_NO_FATAL_FAILURE(Start());
    stream = CallGenerate(server_->address(), request);
    ASSERT_EQ(stream.error.reason, "TIME_PROJECTION_EXCEEDS_LEASE") << stream.error.message;
    for (const v1::GenerateVideoEvent& event : stream.events) {
      EXPECT_FALSE(event.has_media_header());
      if (event.has_partial()) path = event.partial().path();
    }
  }
  // The server tidies paths up.
  const std::filesystem::path beside = root_ + "/clip.mp4.partial.safetensors";
  EXPECT_EQ(path, beside.lexically_normal().string());
  ExpectLatents(path);
}

TEST_F(PartialResultTest, NobodyAskedNothingIsKept) {
  ASSERT_NO_FATAL_FAILURE(Start());
  v1::GenerateVideoRequest request = Leased();
  request.clear_keep_partial_results();
  const WireStream stream = CallGenerate(server_->address(), request);
  EXPECT_EQ(stream.error.reason, "TIME_PROJECTION_EXCEEDS_LEASE");
  for (const v1::GenerateVideoEvent& event : stream.events) {
    EXPECT_FALSE(event.has_partial() || event.has_media_header());
  }
}

TEST(GovernorStartTest, CalibratesOnceAndRemembers) {
  const std::string state = MakeFolder();
  const std::vector<std::string> flags = {
      "--config", ConfigFile(), "--state-dir", state, "--calibration-seconds", "60"};
  {
    auto server = ServerProcess::Start(flags);
    ASSERT_TRUE(server.ok()) << server.status();
    EXPECT_EQ((*server)->CountLogLines(" clips in ") + (*server)->CountLogLines("ends after"), 1);
    // A quarter of the default length, or the shortest that there is.
    EXPECT_GE((*server)->CountLogLines("starts: distilled 256x192x17,"), 1);
    const auto client = client::VideoClient::Connect((*server)->address(), kLimit).value();
    const auto plan = client->Plan(Clip(96, 96, 17));
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_TRUE(plan->seconds_known());
    EXPECT_GT(plan->projected_seconds(), 0);
  }
  auto server = ServerProcess::Start(flags);
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ((*server)->CountLogLines("calibration: "), 0);
  EXPECT_EQ((*server)->CountLogLines("measured costs from "), 1);
}

}  // namespace
}  // namespace ltx::testing
