#include "server/request_mapping.h"

#include <cmath>
#include <set>
#include <string>

#include "engine/pipeline/error_details.h"
#include "engine/pipeline/recipe.h"
#include "engine/pipeline/recipe_plan.h"
#include "engine/pipeline/request_defaults.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"
#include "kernels/status_macros.h"

namespace ltx::server {
namespace {

pipeline::RequestDefaults Defaults() {
  pipeline::RequestDefaults defaults;
  defaults.version = {2, 5};
  defaults.width = 256;
  defaults.height = 192;
  defaults.num_frames = 25;
  return defaults;
}

TEST(FromWireTest, AnEmptyRequestIsTheDefaults) {
  const auto mapped = FromWire({}, Defaults());
  ASSERT_TRUE(mapped.ok()) << mapped.status();
  EXPECT_EQ(mapped->width, 256);
  EXPECT_EQ(mapped->seed, 10);
  EXPECT_EQ(mapped->prompt, "");
  EXPECT_FALSE(mapped->negative_prompt.has_value());
}

TEST(FromWireTest, NegativeSeedsCountModulo2To64) {
  v1::GenerateVideoRequest request;
  request.set_seed(-1);
  EXPECT_EQ(FromWire(request, Defaults())->seed, ~uint64_t{0});
}

TEST(FromWireTest, KeepsNtscRatesExact) {
  v1::GenerateVideoRequest request;
  request.set_frame_rate(23.976);
  EXPECT_EQ(FromWire(request, Defaults())->frame_rate.ToString(), "24000/1001");
}

TEST(FromWireTest, RefusesByName) {
  const auto field_of = [](const v1::GenerateVideoRequest& request) {
    const auto mapped = FromWire(request, Defaults());
    const auto detail = pipeline::GetErrorDetail(mapped.status());
    return detail.has_value() ? detail->field : "";
  };
  v1::GenerateVideoRequest request;
  request.set_frame_rate(std::nan(""));
  EXPECT_EQ(field_of(request), "frame_rate");
  request.Clear();
  request.set_recipe("no_such");
  EXPECT_EQ(field_of(request), "recipe");
  request.Clear();
  request.set_noise_generator(static_cast<v1::NoiseGenerator>(17));
  EXPECT_EQ(field_of(request), "noise_generator");
}

TEST(FromWireTest, OpenFieldsComeFromTheRecipesSet) {
  v1::GenerateVideoRequest request;
  request.set_recipe("two_stage_hq");
  EXPECT_EQ(FromWire(request, Defaults())->width, 256);
  EXPECT_EQ(FromWire(request, {})->width, 1920);
  EXPECT_EQ(FromWire(request, {})->height, 1088);
  EXPECT_EQ(FromWire(request, {})->num_frames, 121);
  request.set_recipe("t2a");
  EXPECT_EQ(FromWire(request, Defaults())->width, 0);
}

TEST(FromWireTest, ALengthHasOneSource) {
  v1::GenerateVideoRequest request;
  request.mutable_auto_duration()->set_max_seconds(1.5);
  const auto mapped = FromWire(request, Defaults());
  ASSERT_TRUE(mapped->auto_duration.has_value());
  EXPECT_EQ(mapped->auto_duration->min_seconds, 1.0);
  EXPECT_EQ(mapped->auto_duration->max_seconds, 1.5);
  request.set_num_frames(25);
  EXPECT_EQ(pipeline::GetErrorDetail(FromWire(request, Defaults()).status())->field,
            "auto_duration");
}

/// A value that no default has.
void SetField(const google::protobuf::FieldDescriptor* field, v1::GenerateVideoRequest* request) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection* reflection = request->GetReflection();
  if (field->is_repeated()) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      return reflection->AddInt32(request, field, 1);
    }
    reflection->AddMessage(request, field);
    return;
  }
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection->SetString(request, field, "text");
    case FieldDescriptor::CPPTYPE_INT32:
      // Legal as a frame count, a step count and a size.
      return reflection->SetInt32(request, field,
                                  field->name() == "num_frames"                           ? 17
                                  : field->name() == "width" || field->name() == "height" ? 128
                                                                                          : 3);
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection->SetInt64(request, field, 3);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection->SetDouble(request, field, field->name() == "frame_rate" ? 25.0 : 0.625);
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection->SetBool(request, field, true);
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection->SetEnumValue(request, field, 2);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      reflection->MutableMessage(request, field);
      return;
    default:
      FAIL() << "a field of a new kind: " << field->name();
  }
}

/// What a request comes to: all that the engine is told, as text.
absl::StatusOr<std::string> Outcome(const v1::GenerateVideoRequest& request) {
  LTX_ASSIGN_OR_RETURN(const pipeline::GenerationRequest mapped, FromWire(request, Defaults()));
  LTX_RETURN_IF_ERROR(pipeline::ValidateRequest(mapped, pipeline::RequestLimits()));
  pipeline::PlanInputs inputs;
  inputs.model_version = {2, 5};
  inputs.num_blocks = 48;
  inputs.max_enhancement_tokens = 512;
  LTX_ASSIGN_OR_RETURN(const pipeline::RecipePlan plan, pipeline::MakePlan(mapped, inputs));
  return mapped.prompt + (mapped.auto_duration.has_value() ? " predicted " : " ") +
         ToWire(plan.parameters).DebugString();
}

/// Every field of the message, in every recipe, must change what is run, or be refused by name:
/// none may be ignored.
TEST(FromWireTest, EachFieldIsHonouredOrRefusedInEachRecipe) {
  // Looked at by the service itself: a clip's place, a prompt that was uploaded, previews. And the
  // axis of this table.
  const std::set<std::string> elsewhere = {"output_path", "prompt_handle", "preview_every_steps",
                                           "recipe"};
  const google::protobuf::Descriptor* descriptor = v1::GenerateVideoRequest::descriptor();
  for (const pipeline::RecipeTraits& recipe : pipeline::AllRecipes()) {
    int honoured = 0;
    for (int i = 0; i < descriptor->field_count(); ++i) {
      const google::protobuf::FieldDescriptor* field = descriptor->field(i);
      // From 40 to 59 a field is about the job, not about the clip.
      const bool of_the_job = field->number() >= 40 && field->number() < 60;
      if (of_the_job || elsewhere.count(field->name()) > 0) continue;
      SCOPED_TRACE(std::string(recipe.name) + " " + field->name());
      v1::GenerateVideoRequest request;
      request.set_recipe(std::string(recipe.name));
      // Blocks mean something only while the perturbed pass runs, which one preset leaves out.
      if (recipe.hq_preset && field->name() == "video_stg_blocks") {
        request.set_video_stg_guidance_scale(1.0);
      }
      if (recipe.hq_preset && field->name() == "audio_stg_blocks") {
        request.set_audio_stg_guidance_scale(1.0);
      }
      const absl::StatusOr<std::string> before = Outcome(request);
      ASSERT_TRUE(before.ok()) << before.status();
      SetField(field, &request);
      const absl::StatusOr<std::string> after = Outcome(request);
      if (after.ok()) {
        EXPECT_NE(*after, *before) << "ignored";
        ++honoured;
        continue;
      }
      const auto detail = pipeline::GetErrorDetail(after.status());
      ASSERT_TRUE(detail.has_value()) << after.status();
      EXPECT_EQ(detail->field, field->name());
      EXPECT_EQ(detail->reason, pipeline::kReasonUnsupportedField) << after.status();
    }
    // prompt, num_frames, frame_rate, seed, the noise and the automatic length, at least.
    EXPECT_GE(honoured, 7) << recipe.name;
  }
}

}  // namespace
}  // namespace ltx::server
