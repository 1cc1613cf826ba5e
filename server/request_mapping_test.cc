#include "server/request_mapping.h"

#include <cmath>
#include <set>
#include <string>

#include "engine/pipeline/error_details.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"

namespace ltx::server {
namespace {

pipeline::GenerationRequest Defaults() {
  pipeline::GenerationRequest defaults;
  defaults.width = 256;
  defaults.height = 192;
  defaults.num_frames = 25;
  defaults.seed = 10;
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
  request.set_enhance_prompt(true);
  EXPECT_EQ(field_of(request), "enhance_prompt");
  request.Clear();
  request.set_noise_generator(static_cast<v1::NoiseGenerator>(17));
  EXPECT_EQ(field_of(request), "noise_generator");
}

/// Every field of the message must change the mapped request, or be refused: none may be ignored.
TEST(FromWireTest, NoFieldIsIgnored) {
  using google::protobuf::FieldDescriptor;
  // Looked at by the service itself: where a clip goes, how the job is queued, its lease, previews.
  const std::set<std::string> elsewhere = {
      "output_path", "preview_every_steps",   "request_id",  "job_class",
      "detach",      "queue_timeout_seconds", "max_seconds", "max_bytes"};
  const pipeline::GenerationRequest defaults = Defaults();
  const google::protobuf::Descriptor* descriptor = v1::GenerateVideoRequest::descriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    if (elsewhere.count(field->name()) > 0) continue;
    v1::GenerateVideoRequest request;
    const google::protobuf::Reflection* reflection = request.GetReflection();
    if (field->is_repeated() && field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      reflection->AddMessage(&request, field);
    } else if (field->is_repeated()) {
      reflection->AddInt32(&request, field, 3);
    } else {
      switch (field->cpp_type()) {
        case FieldDescriptor::CPPTYPE_STRING:
          reflection->SetString(&request, field,
                                field->name() == "recipe" ? "distilled_one_stage" : "text");
          break;
        case FieldDescriptor::CPPTYPE_INT32:
          reflection->SetInt32(&request, field, 3);
          break;
        case FieldDescriptor::CPPTYPE_INT64:
          reflection->SetInt64(&request, field, 3);
          break;
        case FieldDescriptor::CPPTYPE_DOUBLE:
          reflection->SetDouble(&request, field, 3.0);
          break;
        case FieldDescriptor::CPPTYPE_BOOL:
          reflection->SetBool(&request, field, true);
          break;
        case FieldDescriptor::CPPTYPE_ENUM:
          reflection->SetEnumValue(&request, field, 2);
          break;
        default:
          FAIL() << "a field of a new kind: " << field->name();
      }
    }
    const auto mapped = FromWire(request, defaults);
    if (!mapped.ok()) continue;
    const pipeline::RequestLimits limits;
    const bool refused = !pipeline::ValidateRequest(*mapped, limits).ok();
    const bool honoured = mapped->prompt != defaults.prompt || mapped->width != defaults.width ||
                          mapped->height != defaults.height ||
                          mapped->num_frames != defaults.num_frames ||
                          mapped->frame_rate != defaults.frame_rate ||
                          mapped->seed != defaults.seed || mapped->recipe != defaults.recipe ||
                          mapped->noise_generator.has_value() || mapped->noise_dtype.has_value();
    EXPECT_TRUE(refused || honoured) << field->name();
  }
}

}  // namespace
}  // namespace ltx::server
