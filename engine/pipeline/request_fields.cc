#include "engine/pipeline/request_fields.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/pipeline/error_details.h"

namespace ltx::pipeline {
namespace {

using Text = std::optional<std::string>;

template <typename T>
Text TextOf(const std::optional<T>& value) {
  return value.has_value() ? Text(absl::StrCat(*value)) : std::nullopt;
}
Text TextOf(const std::optional<std::vector<int64_t>>& values) {
  return values.has_value() ? Text(absl::StrCat("[", absl::StrJoin(*values, ", "), "]"))
                            : std::nullopt;
}
// Prompts may be long and private: say how long, not what.
Text TextOf(const std::optional<std::string>& text) {
  return text.has_value() ? Text(absl::StrCat("of ", text->size(), " bytes")) : std::nullopt;
}

bool Guided(const RecipeTraits& t, const GenerationRequest&) { return t.guided(); }
bool GuidedVideo(const RecipeTraits& t, const GenerationRequest&) { return t.guided() && t.video; }
bool GuidedAudio(const RecipeTraits& t, const GenerationRequest& r) {
  return t.guided() && !r.video_only;
}
// There is something to isolate only where both modalities are present.
bool GuidedPair(const RecipeTraits& t, const GenerationRequest& r) {
  return t.guided() && t.video && !r.video_only;
}
bool HasVideo(const RecipeTraits& t, const GenerationRequest&) { return t.video; }
bool FreeSchedule(const RecipeTraits& t, const GenerationRequest&) { return t.free_schedule(); }
template <int kStage>
bool LoraInStage(const RecipeTraits& t, const GenerationRequest&) {
  return kStage <= t.num_stages && t.stages[kStage - 1].distilled_lora_strength != 0.0;
}
bool Never(const RecipeTraits&, const GenerationRequest&) { return false; }

using R = GenerationRequest;
constexpr RequestField kFields[] = {
    {"width", [](const R& r) { return r.width == 0 ? Text() : Text(absl::StrCat(r.width)); },
     HasVideo},
    {"height", [](const R& r) { return r.height == 0 ? Text() : Text(absl::StrCat(r.height)); },
     HasVideo},
    {"video_only", [](const R& r) { return r.video_only ? Text("true") : Text(); }, HasVideo},
    {"negative_prompt", [](const R& r) { return TextOf(r.negative_prompt); }, Guided},
    {"num_inference_steps", [](const R& r) { return TextOf(r.num_inference_steps); }, FreeSchedule},
    {"video_cfg_guidance_scale", [](const R& r) { return TextOf(r.guidance.video.cfg_scale); },
     GuidedVideo},
    {"video_stg_guidance_scale", [](const R& r) { return TextOf(r.guidance.video.stg_scale); },
     GuidedVideo},
    {"video_rescale_scale", [](const R& r) { return TextOf(r.guidance.video.rescale_scale); },
     GuidedVideo},
    {"video_stg_blocks", [](const R& r) { return TextOf(r.guidance.video.stg_blocks); },
     GuidedVideo},
    {"video_skip_step", [](const R& r) { return TextOf(r.guidance.video.skip_step); }, GuidedVideo},
    {"a2v_guidance_scale", [](const R& r) { return TextOf(r.guidance.video.modality_scale); },
     GuidedPair},
    {"audio_cfg_guidance_scale", [](const R& r) { return TextOf(r.guidance.audio.cfg_scale); },
     GuidedAudio},
    {"audio_stg_guidance_scale", [](const R& r) { return TextOf(r.guidance.audio.stg_scale); },
     GuidedAudio},
    {"audio_rescale_scale", [](const R& r) { return TextOf(r.guidance.audio.rescale_scale); },
     GuidedAudio},
    {"audio_stg_blocks", [](const R& r) { return TextOf(r.guidance.audio.stg_blocks); },
     GuidedAudio},
    {"audio_skip_step", [](const R& r) { return TextOf(r.guidance.audio.skip_step); }, GuidedAudio},
    {"v2a_guidance_scale", [](const R& r) { return TextOf(r.guidance.audio.modality_scale); },
     GuidedPair},
    {"guidance_batching",
     [](const R& r) {
       return r.guidance_batching == GuidanceBatching::kAuto
                  ? Text()
                  : Text(std::string(GuidanceBatchingName(r.guidance_batching)));
     },
     Guided},
    {"distilled_lora_strength_stage_1",
     [](const R& r) { return TextOf(r.distilled_lora_strength_stage_1); }, LoraInStage<1>},
    {"distilled_lora_strength_stage_2",
     [](const R& r) { return TextOf(r.distilled_lora_strength_stage_2); }, LoraInStage<2>},
    {"num_generated_keyframes", [](const R& r) { return TextOf(r.num_generated_keyframes); },
     Never},
};

}  // namespace

absl::Span<const RequestField> RecipeDependentFields() { return kFields; }

absl::Status CheckRecipeFields(const GenerationRequest& request) {
  const RecipeTraits& traits = TraitsOf(request.recipe);
  for (const RequestField& field : kFields) {
    const Text value = field.value(request);
    if (!value.has_value() || field.honoured(traits, request)) continue;
    const bool for_sound = request.video_only && field.honoured(traits, GenerationRequest{});
    const std::string why =
        for_sound ? "has no effect with video_only"
                  : absl::StrCat("cannot be honoured by recipe ", RecipeName(request.recipe));
    return WithDetail(
        absl::InvalidArgumentError(
            absl::StrCat(field.name, " ", *value, " ", why, ": leave it unset")),
        {std::string(kReasonUnsupportedField), std::string(field.name), *value, "unset"});
  }
  return absl::OkStatus();
}

}  // namespace ltx::pipeline
