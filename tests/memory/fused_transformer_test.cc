#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "engine/checkpoint/test_files.h"
#include "engine/pipeline/fused_cache.h"
#include "tests/lora_model/lora_model.h"
#include "tests/memory/tiny_service.h"

namespace ltx::testing {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kPlenty = int64_t{1} << 40;

/// A clip whose second stage runs with the LoRA.
v1::GenerateVideoRequest TwoStages(double strength) {
  v1::GenerateVideoRequest request;
  request.set_prompt("a red circle moves up, a low hum");
  request.set_recipe("two_stage");
  request.set_width(128);
  request.set_height(128);
  request.set_num_frames(17);
  request.set_num_inference_steps(2);
  request.set_seed(7);
  request.set_distilled_lora_strength_stage_2(strength);
  return request;
}

/// The stage's own transformer was kept from another job.
bool Kept(const server::Job& job) {
  return job.Describe(/*brief=*/false).report().parameters().stages(1).distilled_lora_kept();
}

std::shared_ptr<server::Job> Generate(TinyService& service,
                                      const v1::GenerateVideoRequest& request) {
  const std::shared_ptr<server::Job> job = service.Submit(request);
  service.Await(*job);
  return job;
}
absl::StatusOr<v1::PlanResponse> Plan(TinyService& service,
                                      const v1::GenerateVideoRequest& request) {
  return service.backend().Plan(request, absl::InfiniteFuture(), {});
}
absl::Status Admission(TinyService& service, const v1::GenerateVideoRequest& request) {
  return service.backend().Prepare(request).status();
}

TEST(FusedTransformerTest, IsKeptBetweenJobsWithTheSameBits) {
  TinyServiceSetup options;
  options.model = MakeLoraModel(checkpoint::MakeTestFolder("kept"));
  std::string fresh;
  {
    TinyService service(nullptr, options);
    for (int i = 0; i < 2; ++i) {
      const auto job = Generate(service, TwoStages(1.0));
      ASSERT_EQ(job->state(), v1::JOB_STATE_SUCCEEDED) << job->EndStatus().error_message();
      EXPECT_FALSE(Kept(*job));
      fresh = TinyService::Clip(*job);
      EXPECT_EQ(service.tiny().live_bytes(), service.loaded());
    }
  }
  options.fused_cache_bytes = kPlenty;
  TinyService service(nullptr, options);
  const pipeline::FusedCache& cache = *service.tiny().model().fused_cache();
  for (int i = 0; i < 2; ++i) {
    const auto job = Generate(service, TwoStages(1.0));
    ASSERT_EQ(job->state(), v1::JOB_STATE_SUCCEEDED) << job->EndStatus().error_message();
    EXPECT_EQ(Kept(*job), i > 0);
    EXPECT_TRUE(TinyService::Clip(*job) == fresh);
    EXPECT_EQ(service.tiny().live_bytes(), service.loaded() + cache.copy_bytes());
  }
  EXPECT_EQ(cache.stats().fusions, 1u);
  // Another strength is another transformer, and another clip.
  const auto weaker = Generate(service, TwoStages(0.5));
  EXPECT_FALSE(Kept(*weaker));
  EXPECT_FALSE(TinyService::Clip(*weaker) == fresh);
}

TEST(FusedTransformerTest, GoesWhereAJobNeedsItsMemory) {
  TinyServiceSetup options;
  options.model = MakeLoraModel(checkpoint::MakeTestFolder("evicted"));
  options.fused_cache_bytes = kPlenty;
  v1::GenerateVideoRequest large = TwoStages(0);
  large.set_recipe("one_stage");
  large.clear_distilled_lora_strength_stage_2();
  large.set_width(256);
  large.set_height(256);
  int64_t small_bytes = 0;
  int64_t large_bytes = 0;
  {
    TinyService unlimited(nullptr, options);
    small_bytes = Plan(unlimited, TwoStages(1.0))->projected_bytes();
    large_bytes = Plan(unlimited, large)->projected_bytes();
  }
  // Either job fits, but the larger one not beside a kept transformer.
  options.device_bytes = std::max(small_bytes, large_bytes);
  TinyService service(nullptr, options);
  const pipeline::FusedCache& cache = *service.tiny().model().fused_cache();
  ASSERT_EQ(Generate(service, TwoStages(1.0))->state(), v1::JOB_STATE_SUCCEEDED);
  ASSERT_EQ(cache.stats().entries, 1);
  const auto job = Generate(service, large);
  ASSERT_EQ(job->state(), v1::JOB_STATE_SUCCEEDED) << job->EndStatus().error_message();
  EXPECT_EQ(cache.stats().entries, 0);
  EXPECT_EQ(service.tiny().live_bytes(), service.loaded());
  int64_t peak = 0;
  const v1::Job described = job->Describe(/*brief=*/false);
  for (const v1::MemoryAmounts& amounts : described.report().memory()) {
    if (amounts.owner() == "total") peak = amounts.peak_bytes();
  }
  // Within what projections are held to.
  EXPECT_LT(static_cast<double>(peak), 1.01 * static_cast<double>(options.device_bytes));
}

TEST(FusedTransformerTest, IsRefusedByNameWhereItDoesNotFit) {
  TinyServiceSetup options;
  options.model = MakeWideLoraModel(checkpoint::MakeTestFolder("refused"));
  {
    TinyService unlimited(nullptr, options);
    const v1::PlanResponse plan = Plan(unlimited, TwoStages(1.0)).value();
    ASSERT_GT(plan.parameters().fused_transformer_bytes(), 1000000);
    options.device_bytes = plan.projected_bytes() - plan.parameters().fused_transformer_bytes() / 2;
  }
  TinyService service(nullptr, options);
  const absl::Status refused = Admission(service, TwoStages(1.0));
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("the device allows"));
  // Without the LoRA the same clip is no problem.
  EXPECT_TRUE(Admission(service, TwoStages(0)).ok());
}

}  // namespace
}  // namespace ltx::testing
