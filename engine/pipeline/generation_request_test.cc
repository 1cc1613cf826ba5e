#include "engine/pipeline/generation_request.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "engine/pipeline/error_details.h"

namespace ltx::pipeline {
namespace {

constexpr RequestLimits kLimits = {17, 49, 96, 256, 100};

GenerationRequest Good() {
  GenerationRequest request;
  request.prompt = "a red circle";
  request.height = 192;
  request.width = 256;
  request.num_frames = 17;
  return request;
}

ErrorDetail DetailOf(const GenerationRequest& request) {
  const absl::Status status = ValidateRequest(request, kLimits);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return GetErrorDetail(status).value_or(ErrorDetail{});
}

TEST(GenerationRequestTest, AcceptsALegalRequest) {
  EXPECT_EQ(ValidateRequest(Good(), kLimits), absl::OkStatus());
}

TEST(GenerationRequestTest, NamesTheFrameCountsOnBothSides) {
  GenerationRequest request = Good();
  request.num_frames = 20;
  EXPECT_EQ(DetailOf(request).reason, kReasonFrameGrid);
  EXPECT_EQ(DetailOf(request).field, "num_frames");
  EXPECT_EQ(DetailOf(request).value, "20");
  EXPECT_EQ(DetailOf(request).legal, "17 or 25");
  for (const auto& [frames, legal] : {std::pair<int64_t, std::string>{0, "17"},
                                      {-7, "17"},
                                      {16, "17"},
                                      {50, "49"},
                                      {57, "49"},
                                      {std::numeric_limits<int64_t>::max(), "49"},
                                      {std::numeric_limits<int64_t>::min(), "17"}}) {
    request.num_frames = frames;
    EXPECT_EQ(DetailOf(request).reason, kReasonFrameLimit) << frames;
    EXPECT_EQ(DetailOf(request).legal, legal) << frames;
  }
}

TEST(GenerationRequestTest, BeyondTheLimitItStillTellsTheGrid) {
  GenerationRequest request = Good();
  for (const auto& [frames, grid] :
       {std::pair<int64_t, std::string>{117, "8k + 1, here 113 or 121"},
        {120, "8k + 1, here 113 or 121"},
        {72, "8k + 1, here 65 or 73"},
        {16, "8k + 1, here 9 or 17"}}) {
    request.num_frames = frames;
    const std::string message(ValidateRequest(request, kLimits).message());
    EXPECT_NE(message.find(grid), std::string::npos) << message;
    EXPECT_NE(message.find("17 to 49 frames"), std::string::npos) << message;
  }
  request.num_frames = 121;
  EXPECT_EQ(ValidateRequest(request, kLimits).message().find("8k + 1"), std::string::npos);
}

TEST(GenerationRequestTest, TooShortForSound) {
  GenerationRequest request = Good();
  request.num_frames = 1;
  request.frame_rate = *FrameRate::FromDouble(60);
  const absl::Status status = ValidateRequest(request, {1, 49, 96, 256, 100});
  const ErrorDetail detail = GetErrorDetail(status).value_or(ErrorDetail{});
  EXPECT_EQ(detail.reason, kReasonFrameLimit);
  EXPECT_EQ(detail.legal, "9");
  request.frame_rate = *FrameRate::FromDouble(24);
  EXPECT_EQ(ValidateRequest(request, {1, 49, 96, 256, 100}), absl::OkStatus());
}

TEST(GenerationRequestTest, SizesFollowTheRecipe) {
  GenerationRequest request = Good();
  request.width = 160;
  EXPECT_EQ(DetailOf(request).reason, kReasonSizeGrid);
  EXPECT_EQ(DetailOf(request).field, "width");
  EXPECT_EQ(DetailOf(request).legal, "128 or 192");
  request.recipe = Recipe::kDistilledOneStage;
  EXPECT_EQ(ValidateRequest(request, kLimits), absl::OkStatus());
  request.height = 100;
  EXPECT_EQ(DetailOf(request).field, "height");
  EXPECT_EQ(DetailOf(request).legal, "96 or 128");
  for (const int64_t size :
       {int64_t{0}, int64_t{-64}, int64_t{64}, int64_t{320}, std::numeric_limits<int64_t>::max()}) {
    request.height = size;
    EXPECT_EQ(DetailOf(request).reason, kReasonSizeLimit) << size;
    EXPECT_EQ(DetailOf(request).legal, "multiples of 32 from 96 to 256") << size;
  }
}

TEST(GenerationRequestTest, ChecksThePrompt) {
  GenerationRequest request = Good();
  request.prompt = "";
  EXPECT_EQ(ValidateRequest(request, kLimits), absl::OkStatus());
  request.prompt = std::string(101, 'a');
  EXPECT_EQ(DetailOf(request).reason, kReasonPromptLength);
  request.prompt = "caf\xc3\xa9 \xf0\x9f\x8c\x8a";
  EXPECT_EQ(ValidateRequest(request, kLimits), absl::OkStatus());
  for (const char* text : {"\xff", "caf\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80"}) {
    request.prompt = text;
    EXPECT_EQ(DetailOf(request).reason, kReasonPromptEncoding);
  }
}

TEST(GenerationRequestTest, RefusesEveryFieldTheRecipesCannotHonour) {
  using Setter = std::function<void(GenerationRequest*)>;
  const std::pair<std::string, Setter> fields[] = {
      {"negative_prompt", [](auto* r) { r->negative_prompt = ""; }},
      {"num_inference_steps", [](auto* r) { r->num_inference_steps = 8; }},
      {"video_cfg_guidance_scale", [](auto* r) { r->video_cfg_guidance_scale = 1.0; }},
      {"video_stg_guidance_scale", [](auto* r) { r->video_stg_guidance_scale = 0.0; }},
      {"video_rescale_scale", [](auto* r) { r->video_rescale_scale = 0.7; }},
      {"video_stg_blocks", [](auto* r) { r->video_stg_blocks = std::vector<int64_t>{28}; }},
      {"video_skip_step", [](auto* r) { r->video_skip_step = 1; }},
      {"a2v_guidance_scale", [](auto* r) { r->a2v_guidance_scale = 3.0; }},
      {"audio_cfg_guidance_scale", [](auto* r) { r->audio_cfg_guidance_scale = 7.0; }},
      {"audio_stg_guidance_scale", [](auto* r) { r->audio_stg_guidance_scale = 1.0; }},
      {"audio_rescale_scale", [](auto* r) { r->audio_rescale_scale = 0.7; }},
      {"audio_stg_blocks", [](auto* r) { r->audio_stg_blocks = std::vector<int64_t>{}; }},
      {"audio_skip_step", [](auto* r) { r->audio_skip_step = 1; }},
      {"v2a_guidance_scale", [](auto* r) { r->v2a_guidance_scale = 3.0; }},
      {"num_generated_keyframes", [](auto* r) { r->num_generated_keyframes = 1; }},
  };
  for (const Recipe recipe : {Recipe::kDistilled, Recipe::kDistilledOneStage}) {
    for (const auto& [name, set] : fields) {
      GenerationRequest request = Good();
      request.recipe = recipe;
      set(&request);
      EXPECT_EQ(DetailOf(request).reason, kReasonUnsupportedField) << name;
      EXPECT_EQ(DetailOf(request).field, name);
      const absl::Status status = ValidateRequest(request, kLimits);
      EXPECT_NE(status.message().find(std::string(RecipeName(recipe))), std::string::npos);
    }
  }
}

TEST(GenerationRequestTest, NoiseDtypeIsALatentDtype) {
  GenerationRequest request = Good();
  request.noise_dtype = DType::kBF16;
  EXPECT_EQ(ValidateRequest(request, kLimits), absl::OkStatus());
  request.noise_dtype = DType::kF64;
  EXPECT_EQ(DetailOf(request).field, "noise_dtype");
}

TEST(GenerationRequestTest, NamesRoundTrip) {
  EXPECT_EQ(*ParseRecipe("distilled"), Recipe::kDistilled);
  EXPECT_EQ(*ParseRecipe("distilled_one_stage"), Recipe::kDistilledOneStage);
  EXPECT_FALSE(ParseRecipe("two_stage").ok());
  EXPECT_EQ(*ParseNoiseGenerator("torch_cpu"), NoiseGenerator::kTorchCpu);
  EXPECT_EQ(*ParseNoiseGenerator("torch_cuda"), NoiseGenerator::kTorchCuda);
  EXPECT_FALSE(ParseNoiseGenerator("").ok());
}

}  // namespace
}  // namespace ltx::pipeline
