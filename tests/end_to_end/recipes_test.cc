#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "client/video_client.h"
#include "tests/end_to_end/background_job.h"
#include "tests/end_to_end/server_process.h"
#include "tests/end_to_end/subprocess.h"
#include "tests/end_to_end/wire_calls.h"
#include "tests/lora_model/lora_model.h"

namespace ltx::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kMemoryReason[] = "MEMORY_PROJECTION_EXCEEDS_BUDGET";

v1::GenerateVideoRequest Request(const std::string& recipe, int64_t seed = 3) {
  v1::GenerateVideoRequest request = SmallRequest(seed);
  request.set_recipe(recipe);
  request.set_num_inference_steps(2);
  return request;
}

/// The guided recipes of a full model, with a distilled LoRA, on a server of their own.
class RecipesTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto server =
        ServerProcess::StartModel(MakeLoraModel(MakeFolder()), {"--calibration-seconds", "0"});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    client_ = client::VideoClient::Connect(server_->address(), absl::Seconds(10)).value();
  }
  static void TearDownTestSuite() {
    client_.reset();
    server_.reset();
  }

  struct Run {
    v1::Admitted admitted;
    std::vector<v1::Progress> progress;
    std::string media;
    v1::GenerationReport report;
  };
  static Run Generate(const v1::GenerateVideoRequest& request) {
    const WireStream stream = CallGenerate(server_->address(), request);
    EXPECT_EQ(stream.error.code, absl::StatusCode::kOk) << stream.error.message;
    Run run;
    for (const v1::GenerateVideoEvent& event : stream.events) {
      if (event.has_admitted()) run.admitted = event.admitted();
      if (event.has_progress()) run.progress.push_back(event.progress());
      if (event.has_media_chunk()) run.media += event.media_chunk().data();
      if (event.has_finished()) run.report = event.finished().report();
    }
    return run;
  }

  /// "PHASE step/steps passes" of each unit in the stages and of each fusion, in order.
  static std::vector<std::string> Units(const Run& run) {
    std::vector<std::string> units;
    for (const v1::Progress& progress : run.progress) {
      std::string unit = v1::Phase_Name(progress.phase());
      if (progress.phase() == v1::PHASE_STAGE_1 || progress.phase() == v1::PHASE_STAGE_2) {
        unit += " " + std::to_string(progress.step()) + "/" + std::to_string(progress.steps()) +
                " " + progress.passes();
      } else if (progress.phase() != v1::PHASE_LORA_FUSION) {
        continue;
      }
      units.push_back(std::move(unit));
    }
    return units;
  }
  static void ExpectTimed(const Run& run, std::vector<v1::Phase> phases) {
    std::vector<v1::Phase> timed;
    for (const v1::PhaseTiming& timing : run.report.timings()) timed.push_back(timing.phase());
    EXPECT_EQ(timed, phases);
  }

  static std::unique_ptr<ServerProcess> server_;
  static std::unique_ptr<client::VideoClient> client_;
};
std::unique_ptr<ServerProcess> RecipesTest::server_;
std::unique_ptr<client::VideoClient> RecipesTest::client_;

TEST_F(RecipesTest, TheSetOffersEveryRecipeOfAFullModel) {
  const v1::HealthResponse health = ReadHealth(server_->address());
  EXPECT_EQ(health.model().kind(), "dev");
  EXPECT_THAT(health.model().recipes(),
              ElementsAre("one_stage", "two_stage", "two_stage_hq", "t2a"));
}

TEST_F(RecipesTest, SoundAloneIsNotWrittenAsAClip) {
  // Known from the recipe: nothing is sent, and so the impossible number of steps is not noticed.
  v1::GenerateVideoRequest request = Request("t2a");
  request.clear_num_frames();
  request.set_num_inference_steps(-1);
  const auto refused = client_->Generate(request, ::testing::TempDir() + "sound.mp4", {});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("sound alone is written as .wav, not as .mp4"));
}

TEST_F(RecipesTest, TwoStagesEndToEnd) {
  v1::GenerateVideoRequest request = Request("two_stage");
  request.set_distilled_lora_strength_stage_2(0.75);
  const Run run = Generate(request);
  const std::string all = "cond+uncond+ptb+mod";
  EXPECT_THAT(Units(run), ElementsAre("PHASE_STAGE_1 1/2 " + all, "PHASE_STAGE_1 2/2 " + all,
                                      "PHASE_LORA_FUSION", "PHASE_STAGE_2 1/3 cond",
                                      "PHASE_STAGE_2 2/3 cond", "PHASE_STAGE_2 3/3 cond"));
  ExpectTimed(run,
              {v1::PHASE_TEXT, v1::PHASE_STAGE_1, v1::PHASE_UPSAMPLE, v1::PHASE_LORA_FUSION,
               v1::PHASE_STAGE_2, v1::PHASE_VIDEO_DECODE, v1::PHASE_AUDIO_DECODE, v1::PHASE_MUX});

  const v1::EffectiveParameters& parameters = run.report.parameters();
  EXPECT_EQ(parameters.recipe(), "two_stage");
  EXPECT_EQ(parameters.parameter_set(), "ltx-2.4");
  EXPECT_EQ(parameters.num_inference_steps(), 2);
  EXPECT_TRUE(parameters.guidance_batched());
  EXPECT_EQ(parameters.video_guidance().cfg_scale(), 3);
  EXPECT_EQ(parameters.audio_guidance().cfg_scale(), 7);
  EXPECT_GT(parameters.fused_transformer_bytes(), 0);
  ASSERT_EQ(parameters.stages_size(), 2);
  const v1::StageParameters& first = parameters.stages(0);
  EXPECT_EQ(first.width(), 64);
  EXPECT_EQ(first.video_tokens(), 2 * 2 * 3);
  EXPECT_EQ(first.sampler(), "euler");
  ASSERT_EQ(first.sigmas_size(), 3);
  EXPECT_NEAR(first.sigmas(0), 1, 1e-6);
  EXPECT_EQ(first.sigmas(2), 0.0f);
  EXPECT_EQ(first.distilled_lora(), "");
  const v1::StageParameters& second = parameters.stages(1);
  EXPECT_EQ(second.width(), 128);
  EXPECT_EQ(second.video_tokens(), 4 * 4 * 3);
  EXPECT_THAT(second.sigmas(), ElementsAre(0.909375f, 0.725f, 0.421875f, 0.0f));
  EXPECT_EQ(second.noise_scale(), 0.909375f);
  EXPECT_EQ(second.distilled_lora(), kLoraName);
  EXPECT_EQ(second.distilled_lora_strength(), 0.75);
  EXPECT_FALSE(second.distilled_lora_kept());
  EXPECT_EQ(run.admitted.parameters().stages(1).distilled_lora(), kLoraName);

  // The transformer of stage 2 is there the second time, and the clip is the same to the byte.
  const Run again = Generate(request);
  EXPECT_TRUE(again.report.parameters().stages(1).distilled_lora_kept());
  EXPECT_FALSE(run.media.empty());
  EXPECT_TRUE(again.media == run.media);
  // Another strength is another clip.
  request.set_distilled_lora_strength_stage_2(0);
  const Run clean = Generate(request);
  EXPECT_FALSE(clean.media == run.media);
  EXPECT_EQ(clean.report.parameters().fused_transformer_bytes(), 0);
}

TEST_F(RecipesTest, HqEndToEnd) {
  const Run run = Generate(Request("two_stage_hq"));
  const std::string three = "cond+uncond+mod";
  // Two evaluations a step, and one after the last.
  std::vector<std::string> expected = {"PHASE_LORA_FUSION"};
  for (const char* step : {"1", "1", "2", "2", "3"}) {
    expected.push_back(std::string("PHASE_STAGE_1 ") + step + "/2 " + three);
  }
  expected.push_back("PHASE_LORA_FUSION");
  for (const char* step : {"1", "1", "2", "2", "3", "3", "4"}) {
    expected.push_back(std::string("PHASE_STAGE_2 ") + step + "/3 cond");
  }
  EXPECT_EQ(Units(run), expected);
  const v1::EffectiveParameters& parameters = run.report.parameters();
  EXPECT_EQ(parameters.parameter_set(), "hq");
  ASSERT_EQ(parameters.stages_size(), 2);
  for (const int stage : {0, 1}) {
    EXPECT_THAT(parameters.stages(stage).sampler(), HasSubstr("res_2s"));
    EXPECT_EQ(parameters.stages(stage).distilled_lora(), kLoraName);
    EXPECT_EQ(parameters.stages(stage).distilled_lora_strength(), stage == 0 ? 0.25 : 0.5);
  }
  EXPECT_NEAR(parameters.stages(0).sigmas(0), 1, 1e-6);
}

TEST_F(RecipesTest, CancelledInTheSecondStage) {
  v1::GenerateVideoRequest request = Request("two_stage");
  request.set_width(256);
  request.set_height(256);
  request.set_num_frames(49);
  BackgroundJob job(server_->address(), request, MakeFolder() + "/clip.mp4");
  ASSERT_TRUE(job.WaitForEvent([](const v1::GenerateVideoEvent& event) {
    return event.has_progress() && event.progress().phase() == v1::PHASE_LORA_FUSION;
  }));
  job.Cancel();
  EXPECT_TRUE(absl::IsCancelled(job.Join().status()));
  WaitUntilIdle(server_->address());
  // What it left behind serves the next.
  const Run next = Generate(Request("two_stage"));
  EXPECT_TRUE(next.report.parameters().stages(1).distilled_lora_kept());
}

/// The recipes on a model whose memory goes to the transformer.
class RecipeMemoryTest : public ::testing::Test {
 protected:
  static std::unique_ptr<ServerProcess> Start(const std::string& model,
                                              std::vector<std::string> flags = {}) {
    flags.insert(flags.end(), {"--calibration-seconds", "0"});
    auto server = ServerProcess::StartModel(model, flags);
    EXPECT_TRUE(server.ok()) << server.status();
    return *std::move(server);
  }
  static v1::PlanResponse Plan(const ServerProcess& server,
                               const v1::GenerateVideoRequest& request) {
    return client::VideoClient::Connect(server.address(), absl::Seconds(10))
        .value()
        ->Plan(request)
        .value();
  }

  const std::string model_ = MakeWideLoraModel(MakeFolder());
};

TEST_F(RecipeMemoryTest, PassesFollowEachOtherWhereABatchDoesNotFit) {
  // So small that nothing but the stage counts.
  v1::GenerateVideoRequest open = Request("one_stage");
  open.set_width(64);
  open.set_height(64);
  open.set_num_frames(9);
  v1::GenerateVideoRequest batched = open;
  batched.set_guidance_batching(v1::GUIDANCE_BATCHING_BATCHED);
  v1::GenerateVideoRequest sequential = batched;
  sequential.set_guidance_batching(v1::GUIDANCE_BATCHING_SEQUENTIAL);
  int64_t budget = 0;
  int64_t expected = 0;
  {
    const auto roomy = Start(model_);
    const int64_t whole = Plan(*roomy, batched).projected_bytes();
    expected = Plan(*roomy, sequential).projected_bytes();
    ASSERT_LT(expected, whole);
    budget = (whole + expected) / 2;
    // Where both fit, nothing is said.
    const v1::PlanResponse free = Plan(*roomy, open);
    EXPECT_TRUE(free.parameters().guidance_batched());
    EXPECT_EQ(free.warnings_size(), 0);
  }
  const auto tight = Start(model_, {"--memory-budget-bytes", std::to_string(budget)});
  const v1::PlanResponse plan = Plan(*tight, open);
  EXPECT_EQ(plan.decision(), v1::PlanResponse::DECISION_ADMIT) << plan.message();
  EXPECT_EQ(plan.projected_bytes(), expected);
  EXPECT_FALSE(plan.parameters().guidance_batched());
  EXPECT_THAT(plan.warnings(), ElementsAre(HasSubstr("passes follow each other")));
  const WireStream stream = CallGenerate(tight->address(), open);
  ASSERT_EQ(stream.error.code, absl::StatusCode::kOk) << stream.error.message;
  const v1::GenerationReport& report = stream.events.back().finished().report();
  EXPECT_FALSE(report.parameters().guidance_batched());
  EXPECT_THAT(report.warnings(), Contains(HasSubstr("passes follow each other")));
  int forwards = 0;
  for (const v1::GenerateVideoEvent& event : stream.events) {
    if (event.progress().phase() == v1::PHASE_STAGE_1) ++forwards;
  }
  EXPECT_EQ(forwards, 2 * 4);

  // Who insists on the batch is refused.
  const WireStream refused = CallGenerate(tight->address(), batched);
  EXPECT_EQ(refused.error.reason, kMemoryReason);
  EXPECT_THAT(refused.error.message, HasSubstr("the device allows"));
}

TEST_F(RecipeMemoryTest, TheSecondTransformerIsPartOfWhatIsWeighed) {
  const auto server = Start(model_);
  v1::GenerateVideoRequest request = Request("two_stage");
  request.set_distilled_lora_strength_stage_2(0);
  request.set_max_bytes(Plan(*server, request).projected_bytes());
  EXPECT_EQ(Plan(*server, request).decision(), v1::PlanResponse::DECISION_ADMIT);
  request.set_distilled_lora_strength_stage_2(1);
  const WireStream stream = CallGenerate(server->address(), request);
  EXPECT_EQ(stream.error.reason, kMemoryReason);
  EXPECT_THAT(stream.error.message, HasSubstr("the request's max_bytes"));
}

TEST(RecipesStartTest, ALoraOfAnotherModelIsRefusedWithWhatIsMissing) {
  const std::string model = MakeLoraModel(MakeFolder(), "speech_blocks.0.attn.to_q");
  const ProgramResult result =
      RunProgram({kServerProgram, "--model", model, "--listen", "127.0.0.1:0"});
  EXPECT_GT(result.exit.code, 0);
  const std::string line = result.LastErrorLine();
  EXPECT_THAT(line, HasSubstr(kLoraName));
  EXPECT_THAT(line, HasSubstr("1 modules are not in the transformer: speech_blocks.0.attn.to_q"));
}

}  // namespace
}  // namespace ltx::testing
