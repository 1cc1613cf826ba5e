#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint/model_set.h"
#include "engine/pipeline/error_details.h"
#include "engine/pipeline/generation_job.h"
#include "engine/pipeline/job_options.h"
#include "engine/pipeline/model.h"
#include "engine/pipeline/model_parts.h"
#include "engine/pipeline/plan_projector.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/host_copy.h"
#include "tests/enhancement/writing_model.h"

namespace ltx::testing {
namespace {

using pipeline::GenerationJob;
using pipeline::GenerationRequest;
using pipeline::Model;
using pipeline::Phase;
using ::testing::HasSubstr;

constexpr char kSystemPrompt[] = "Describe the film in one paragraph.\n";
constexpr int kMostTokens = 512;

/// One writing model, loaded once for all tests.
class EnhancementTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    device_ = cpu::CpuDevice::Create({}).value().release();
    files_ = new checkpoint::ModelSet(
        checkpoint::ModelSet::Open(WriteWritingModel("writing").value()).value());
    model_ = Load(*files_, kSystemPrompt).release();
  }
  static void TearDownTestSuite() {
    delete model_;
    delete files_;
    EXPECT_EQ(device_->ledger().Read().total.live_bytes, 0);
    delete device_;
  }
  static std::unique_ptr<Model> Load(const checkpoint::ModelSet& files,
                                     const std::string& system_prompt) {
    pipeline::ModelOptions options;
    options.compute_dtype = DType::kF32;
    options.prompt_cache_bytes = 64 << 20;
    options.enhancement_system_prompt = system_prompt;
    auto model = Model::Load(device_, files, options);
    EXPECT_TRUE(model.ok()) << model.status();
    return *std::move(model);
  }
  static GenerationRequest Request(uint64_t seed) {
    GenerationRequest request = model_->defaults().For(pipeline::Recipe::kDistilledOneStage);
    request.prompt = "a red circle";
    request.width = request.height = 96;
    request.num_frames = 17;
    request.seed = seed;
    request.enhance_prompt = true;
    return request;
  }
  static int UnitsOf(const GenerationJob& job, Phase phase) {
    return static_cast<int>(std::count_if(job.plan().begin(), job.plan().end(),
                                          [phase](const auto& u) { return u.phase == phase; }));
  }
  /// Runs the job up to a phase.
  static void AdvanceTo(Phase phase, GenerationJob* job) {
    while (!job->done() && job->plan()[job->completed()].phase != phase) {
      const auto report = job->Advance();
      ASSERT_TRUE(report.ok()) << report.status();
    }
  }
  static std::string Written(uint64_t seed) {
    const auto job = GenerationJob::Create(model_, Request(seed)).value();
    AdvanceTo(Phase::kText, job.get());
    return job->parameters().enhancement->prompt;
  }

  static cpu::CpuDevice* device_;
  static checkpoint::ModelSet* files_;
  static Model* model_;
};
cpu::CpuDevice* EnhancementTest::device_ = nullptr;
checkpoint::ModelSet* EnhancementTest::files_ = nullptr;
Model* EnhancementTest::model_ = nullptr;

TEST_F(EnhancementTest, WritesAPromptAndEncodesIt) {
  std::vector<float> context;
  pipeline::JobOptions options;
  options.observer = [&](absl::string_view name, const Tensor& tensor) {
    if (name == "context.video") context = *ToFloats(*device_, tensor);
  };
  const auto job = GenerationJob::Create(model_, Request(3), options).value();
  EXPECT_EQ(UnitsOf(*job, Phase::kEnhance), kMostTokens);
  ASSERT_TRUE(job->parameters().enhancement.has_value());
  EXPECT_EQ(job->parameters().enhancement->max_new_tokens, kMostTokens);
  EXPECT_EQ(job->parameters().enhancement->prompt, "");

  AdvanceTo(Phase::kText, job.get());
  const std::string written = job->parameters().enhancement->prompt;
  const int64_t tokens = job->parameters().enhancement->tokens;
  EXPECT_NE(written, "");
  EXPECT_NE(written, "a red circle");
  // The random tower stops by chance, long before the limit for this seed.
  EXPECT_GT(tokens, 1);
  EXPECT_LT(tokens, kMostTokens);
  EXPECT_EQ(UnitsOf(*job, Phase::kEnhance), tokens);
  EXPECT_EQ(job->completed(), tokens);
  EXPECT_EQ(job->plan()[job->completed() - 1].count, tokens);
  EXPECT_EQ(job->plan()[0].count, tokens);

  AdvanceTo(Phase::kStage1, job.get());
  const auto expected = model_->parts().prompt_encoder->Encode(written);
  ASSERT_TRUE(expected.ok()) << expected.status();
  EXPECT_EQ(context, *ToFloats(*device_, expected->video));
  EXPECT_EQ(job->parameters().prompt_tokens, expected->num_tokens);

  // The contexts are kept under what was written.
  const uint64_t hits = model_->prompt_cache_stats().hits;
  GenerationRequest again = Request(3);
  again.enhance_prompt = false;
  again.prompt = written;
  AdvanceTo(Phase::kStage1, GenerationJob::Create(model_, again).value().get());
  EXPECT_EQ(model_->prompt_cache_stats().hits, hits + 1);

  AdvanceTo(Phase::kFuse, job.get());
  EXPECT_TRUE(job->done());
  const auto result = job->TakeResult();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->phases.front().phase, Phase::kEnhance);
  EXPECT_EQ(result->phases.front().units, tokens);
  EXPECT_EQ(result->parameters.enhancement->prompt, written);
}

TEST_F(EnhancementTest, TheSeedDecidesWhatIsWritten) {
  const std::string text = Written(3);
  EXPECT_EQ(Written(3), text);
  EXPECT_NE(Written(4), text);
}

TEST_F(EnhancementTest, GivesItsMemoryBackWheneverItEnds) {
  const int64_t before = device_->ledger().Read().total.live_bytes;
  auto job = GenerationJob::Create(model_, Request(5)).value();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(job->Advance().ok());
  EXPECT_GT(device_->ledger().Read().total.live_bytes, before);
  job.reset();
  EXPECT_EQ(device_->ledger().Read().total.live_bytes, before);
  job = GenerationJob::Create(model_, Request(3)).value();
  AdvanceTo(Phase::kText, job.get());
  EXPECT_EQ(device_->ledger().Read().total.live_bytes, before);
}

TEST_F(EnhancementTest, IsProjectedToItsLimit) {
  const auto projector = pipeline::PlanProjector::Create(model_, *files_).value();
  const auto projection = projector->Project(Request(3));
  ASSERT_TRUE(projection.ok()) << projection.status();
  ASSERT_FALSE(projection->phases.empty());
  EXPECT_EQ(projection->phases[0].phase, Phase::kEnhance);
  EXPECT_EQ(std::count_if(projection->units.begin(), projection->units.end(),
                          [](const auto& u) { return u.unit.phase == Phase::kEnhance; }),
            kMostTokens);
  EXPECT_TRUE(projection->parameters.warnings.empty());
  // A token costs little beside reading the prompt, and not more than the one before but for whole
  // blocks of the cache.
  EXPECT_LT(projection->units[1].work.products * 20, projection->units[0].work.products);
  EXPECT_EQ(projection->units[511].work.products, projection->units[1].work.products);
  EXPECT_GT(projection->units[511].work.attention, projection->units[1].work.attention);

  MemoryLedger& ledger = device_->ledger();
  const int64_t resident = ledger.Read().total.live_bytes;
  ledger.ResetPeaks();
  const auto job = GenerationJob::Create(model_, Request(3)).value();
  AdvanceTo(Phase::kText, job.get());
  const auto measured = static_cast<double>(ledger.Read().total.peak_bytes);
  EXPECT_NEAR(static_cast<double>(resident + projection->phases[0].peak_bytes), measured,
              0.01 * measured);

  // The text phase reads the longest answer, which is more than the prompt that was given.
  GenerationRequest plain = Request(3);
  plain.enhance_prompt = false;
  EXPECT_GT(projection->units[kMostTokens].work.products,
            projector->Project(plain)->units[0].work.products);
}

TEST_F(EnhancementTest, ALengthMayBePredictedFromIt) {
  GenerationRequest request = Request(3);
  request.auto_duration.emplace();
  const auto job = GenerationJob::Create(model_, request).value();
  AdvanceTo(Phase::kStage1, job.get());
  EXPECT_TRUE(job->parameters().predicted_seconds.has_value());
  EXPECT_NE(job->parameters().enhancement->prompt, "");
  EXPECT_EQ(UnitsOf(*job, Phase::kEnhance), job->parameters().enhancement->tokens);
  EXPECT_EQ(job->plan()[job->completed()].phase, Phase::kStage1);
  EXPECT_EQ(job->plan()[job->completed()].index, 1);
}

void ExpectRefused(const Model& model, absl::string_view reason, const std::string& words) {
  GenerationRequest request = model.DefaultRequest();
  request.enhance_prompt = true;
  const absl::Status status = GenerationJob::Create(&model, request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  const auto detail = pipeline::GetErrorDetail(status);
  ASSERT_TRUE(detail.has_value());
  EXPECT_EQ(detail->reason, reason);
  EXPECT_EQ(detail->field, "enhance_prompt");
  EXPECT_THAT(std::string(status.message()), HasSubstr(words));
}

TEST_F(EnhancementTest, IsRefusedByNameWhereItCannotBe) {
  ExpectRefused(*Load(*files_, ""), pipeline::kReasonComponentMissing,
                "prompt_enhancement_system_prompt_file");
  const auto tuned = checkpoint::ModelSet::Open("models/ltx-tiny").value();
  ExpectRefused(*Load(tuned, kSystemPrompt), pipeline::kReasonModelKind, "Gemma 4");
  ExpectRefused(*Load(tuned, ""), pipeline::kReasonModelKind, "Gemma 4");
}

}  // namespace
}  // namespace ltx::testing
