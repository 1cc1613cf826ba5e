#include "engine/pipeline/generation_request.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "engine/pipeline/error_details.h"
#include "engine/pipeline/recipe.h"
#include "engine/pipeline/request_fields.h"

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

using Setter = std::function<void(GenerationRequest*)>;

/// A value for each field that not every recipe honours.
const std::map<std::string, Setter>& Setters() {
  static const auto* const setters = new std::map<std::string, Setter>{
      {"width", [](auto* r) { r->width = 192; }},
      {"height", [](auto* r) { r->height = 128; }},
      {"video_only", [](auto* r) { r->video_only = true; }},
      {"negative_prompt", [](auto* r) { r->negative_prompt = ""; }},
      {"num_inference_steps", [](auto* r) { r->num_inference_steps = 8; }},
      {"video_cfg_guidance_scale", [](auto* r) { r->guidance.video.cfg_scale = 1.0; }},
      {"video_stg_guidance_scale", [](auto* r) { r->guidance.video.stg_scale = 0.0; }},
      {"video_rescale_scale", [](auto* r) { r->guidance.video.rescale_scale = 0.7; }},
      {"video_stg_blocks",
       [](auto* r) { r->guidance.video.stg_blocks = std::vector<int64_t>{28}; }},
      {"video_skip_step", [](auto* r) { r->guidance.video.skip_step = 1; }},
      {"a2v_guidance_scale", [](auto* r) { r->guidance.video.modality_scale = 3.0; }},
      {"audio_cfg_guidance_scale", [](auto* r) { r->guidance.audio.cfg_scale = 7.0; }},
      {"audio_stg_guidance_scale", [](auto* r) { r->guidance.audio.stg_scale = 1.0; }},
      {"audio_rescale_scale", [](auto* r) { r->guidance.audio.rescale_scale = 0.7; }},
      {"audio_stg_blocks", [](auto* r) { r->guidance.audio.stg_blocks = std::vector<int64_t>{}; }},
      {"audio_skip_step", [](auto* r) { r->guidance.audio.skip_step = 1; }},
      {"v2a_guidance_scale", [](auto* r) { r->guidance.audio.modality_scale = 3.0; }},
      {"guidance_batching", [](auto* r) { r->guidance_batching = GuidanceBatching::kBatched; }},
      {"distilled_lora_strength_stage_1",
       [](auto* r) { r->distilled_lora_strength_stage_1 = 0.5; }},
      {"distilled_lora_strength_stage_2",
       [](auto* r) { r->distilled_lora_strength_stage_2 = 0.5; }},
      {"num_generated_keyframes", [](auto* r) { r->num_generated_keyframes = 1; }},
  };
  return *setters;
}

std::set<std::string> HonouredBy(Recipe recipe, bool video_only) {
  std::set<std::string> honoured;
  for (const auto& [name, set] : Setters()) {
    GenerationRequest request = Good();
    request.recipe = recipe;
    if (!TraitsOf(recipe).video) request.width = request.height = 0;
    request.video_only = video_only;
    set(&request);
    const absl::Status status = CheckRecipeFields(request);
    if (status.ok()) {
      honoured.insert(name);
      continue;
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_EQ(GetErrorDetail(status)->reason, kReasonUnsupportedField) << name;
    EXPECT_EQ(GetErrorDetail(status)->field, name);
  }
  return honoured;
}

TEST(RequestFieldsTest, EachRecipeHonoursItsFieldsAndRefusesTheOthersByName) {
  for (const RequestField& field : RecipeDependentFields()) {
    EXPECT_EQ(Setters().count(std::string(field.name)), 1u) << field.name;
  }
  EXPECT_EQ(Setters().size(), RecipeDependentFields().size());

  const std::set<std::string> picture = {"width", "height", "video_only"};
  const std::set<std::string> shared = {"negative_prompt", "num_inference_steps",
                                        "guidance_batching"};
  const std::set<std::string> video = {"video_cfg_guidance_scale", "video_stg_guidance_scale",
                                       "video_rescale_scale", "video_stg_blocks",
                                       "video_skip_step"};
  const std::set<std::string> audio = {"audio_cfg_guidance_scale", "audio_stg_guidance_scale",
                                       "audio_rescale_scale", "audio_stg_blocks",
                                       "audio_skip_step"};
  const std::set<std::string> both = {"a2v_guidance_scale", "v2a_guidance_scale"};
  const auto join = [](std::initializer_list<std::set<std::string>> sets) {
    std::set<std::string> all;
    for (const auto& set : sets) all.insert(set.begin(), set.end());
    return all;
  };
  const std::set<std::string> guided = join({picture, shared, video, audio, both});
  EXPECT_EQ(HonouredBy(Recipe::kDistilled, false), picture);
  EXPECT_EQ(HonouredBy(Recipe::kDistilledOneStage, false), picture);
  EXPECT_EQ(HonouredBy(Recipe::kOneStage, false), guided);
  EXPECT_EQ(HonouredBy(Recipe::kTwoStage, false),
            join({guided, {"distilled_lora_strength_stage_2"}}));
  EXPECT_EQ(HonouredBy(Recipe::kTwoStageHq, false),
            join({guided, {"distilled_lora_strength_stage_1", "distilled_lora_strength_stage_2"}}));
  EXPECT_EQ(HonouredBy(Recipe::kT2a, false), join({shared, audio}));
  EXPECT_EQ(HonouredBy(Recipe::kOneStage, true), join({picture, shared, video}));
}

TEST(GenerationRequestTest, ChecksNumbersOfGuidance) {
  const double nan = std::nan("");
  const std::tuple<std::string, std::string, Setter> broken[] = {
      {"video_cfg_guidance_scale", "nan", [&](auto* r) { r->guidance.video.cfg_scale = nan; }},
      {"audio_stg_guidance_scale", "inf", [](auto* r) { r->guidance.audio.stg_scale = HUGE_VAL; }},
      {"v2a_guidance_scale", "nan", [&](auto* r) { r->guidance.audio.modality_scale = nan; }},
      {"video_rescale_scale", "1.5", [](auto* r) { r->guidance.video.rescale_scale = 1.5; }},
      {"audio_skip_step", "-1", [](auto* r) { r->guidance.audio.skip_step = -1; }},
      {"video_stg_blocks", "-3",
       [](auto* r) {
         r->guidance.video.stg_blocks = std::vector<int64_t>{1, -3};
       }},
      {"num_inference_steps", "1", [](auto* r) { r->num_inference_steps = 1; }},
      {"num_inference_steps", "1001", [](auto* r) { r->num_inference_steps = 1001; }},
      {"distilled_lora_strength_stage_2", "2.5",
       [](auto* r) { r->distilled_lora_strength_stage_2 = 2.5; }},
      {"negative_prompt", "of 101 bytes",
       [](auto* r) { r->negative_prompt = std::string(101, 'a'); }},
  };
  for (const auto& [field, value, set] : broken) {
    GenerationRequest request = Good();
    request.recipe = Recipe::kTwoStage;
    request.width = 128;
    set(&request);
    EXPECT_EQ(DetailOf(request).field, field);
    EXPECT_EQ(DetailOf(request).value, value);
    EXPECT_FALSE(DetailOf(request).legal.empty()) << field;
  }
}

TEST(GenerationRequestTest, AutomaticDurationStaysInTheModelsRange) {
  GenerationRequest request = Good();
  request.auto_duration.emplace();
  EXPECT_EQ(ValidateRequest(request, kLimits), absl::OkStatus());
  const FrameRange range = *AutoDurationRange({}, FrameRate(), kLimits);
  EXPECT_EQ(range.min_frames, 24);
  EXPECT_EQ(range.max_frames, 49);
  for (const auto& [low, high, field] :
       {std::tuple<double, double, std::string>{0.0, 1.5, "auto_duration.min_seconds"},
        {std::nan(""), 1.5, "auto_duration.min_seconds"},
        {1.5, 1.0, "auto_duration.max_seconds"},
        {1.0, std::nan(""), "auto_duration.max_seconds"},
        {1.0, 20.0, "auto_duration.max_seconds"},
        // 27 to 30 frames: between two counts of the grid.
        {27.0 / 24, 30.0 / 24, "auto_duration.max_seconds"}}) {
    request.auto_duration->min_seconds = low;
    request.auto_duration->max_seconds = high;
    EXPECT_EQ(DetailOf(request).field, field) << low << " " << high;
    EXPECT_EQ(DetailOf(request).reason, kReasonFrameLimit);
  }
}

TEST(GenerationRequestTest, WithoutSoundAShortClipIsLegal) {
  GenerationRequest request = Good();
  request.num_frames = 1;
  request.frame_rate = *FrameRate::FromDouble(60);
  request.video_only = true;
  EXPECT_EQ(ValidateRequest(request, {1, 49, 96, 256, 100}), absl::OkStatus());
}

TEST(GenerationRequestTest, NoiseDtypeIsALatentDtype) {
  GenerationRequest request = Good();
  request.noise_dtype = DType::kBF16;
  EXPECT_EQ(ValidateRequest(request, kLimits), absl::OkStatus());
  request.noise_dtype = DType::kF64;
  EXPECT_EQ(DetailOf(request).field, "noise_dtype");
}

TEST(GenerationRequestTest, NamesRoundTrip) {
  EXPECT_EQ(*ParseNoiseGenerator("torch_cpu"), NoiseGenerator::kTorchCpu);
  EXPECT_EQ(*ParseNoiseGenerator("torch_cuda"), NoiseGenerator::kTorchCuda);
  EXPECT_FALSE(ParseNoiseGenerator("").ok());
}

}  // namespace
}  // namespace ltx::pipeline
