#include "engine/pipeline/guidance_defaults.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/pipeline/error_details.h"
#include "engine/sampling/latent_state.h"
#include "kernels/status_macros.h"

namespace ltx::pipeline {
namespace {

using sampling::Modality;

// A pass of some 6000 tokens (768 x 512 x 121) keeps every unit of a large GPU busy by itself; a
// batch above that costs memory and gains nothing.
constexpr int64_t kBatchedTokens = 6000;

std::string FieldName(Modality modality, absl::string_view tail) {
  return absl::StrCat(sampling::ModalityName(modality), tail);
}

template <typename T>
void Override(const std::optional<T>& value, T* target) {
  if (value.has_value()) *target = *value;
}

absl::Status NoEffect(const std::string& field, const std::string& value, const std::string& why,
                      const std::string& legal) {
  return WithDetail(
      absl::InvalidArgumentError(absl::StrCat(field, " ", value, " has no effect: ", why)),
      {std::string(kReasonUnsupportedField), field, value, legal});
}

absl::Status CheckBlocks(Modality modality, const GuidanceFields& fields,
                         const sampling::GuiderParams& settings, int64_t num_blocks) {
  if (!fields.stg_blocks.has_value()) return absl::OkStatus();
  const std::string field = FieldName(modality, "_stg_blocks");
  for (const int64_t block : *fields.stg_blocks) {
    if (block < num_blocks) continue;
    const std::string legal = absl::StrCat("from 0 to ", num_blocks - 1);
    return WithDetail(
        absl::InvalidArgumentError(absl::StrCat(field, " names block ", block,
                                                ", which this model does not have: ", legal)),
        {std::string(kReasonUnknownValue), field, absl::StrCat(block), legal});
  }
  if (settings.NeedsPerturbed()) return absl::OkStatus();
  const std::string scale = FieldName(modality, "_stg_guidance_scale");
  return NoEffect(field, "", absl::StrCat(scale, " is 0"), absl::StrCat(scale, " other than 0"));
}

}  // namespace

absl::StatusOr<EffectiveParameters::Guidance> ResolveGuidance(const GenerationRequest& request,
                                                              const ParameterSet& set,
                                                              int64_t num_blocks) {
  const RecipeTraits& traits = TraitsOf(request.recipe);
  const sampling::PerModality<bool> present = {traits.video, !request.video_only};
  EffectiveParameters::Guidance guidance;
  guidance.num_inference_steps = request.num_inference_steps.value_or(set.num_inference_steps);
  bool uses_negative = false;
  for (const Modality m : sampling::kModalities) {
    if (!present[m]) continue;
    const GuidanceFields& fields = request.guidance[m];
    sampling::GuiderParams& settings = guidance.settings[m];
    settings = set.guidance[m];
    settings.stg_blocks = BlocksFor(*settings.stg_blocks, num_blocks);
    if (!present.video || !present.audio) settings.modality_scale = 1.0;
    Override(fields.cfg_scale, &settings.cfg_scale);
    Override(fields.stg_scale, &settings.stg_scale);
    Override(fields.rescale_scale, &settings.rescale_scale);
    Override(fields.modality_scale, &settings.modality_scale);
    Override(fields.skip_step, &settings.skip_step);
    if (fields.stg_blocks.has_value()) settings.stg_blocks = fields.stg_blocks;
    LTX_RETURN_IF_ERROR(CheckBlocks(m, fields, settings, num_blocks));
    uses_negative = uses_negative || settings.NeedsUnconditioned();
  }
  if (request.negative_prompt.has_value() && !uses_negative) {
    return NoEffect("negative_prompt",
                    absl::StrCat("of ", request.negative_prompt->size(), " bytes"),
                    "every CFG scale is 1", "a CFG scale other than 1");
  }
  if (uses_negative) {
    guidance.negative_prompt =
        request.negative_prompt.value_or(std::string(DefaultNegativePrompt()));
  }
  return guidance;
}

bool ChooseBatched(GuidanceBatching choice, const StageSpec& stage) {
  switch (choice) {
    case GuidanceBatching::kBatched:
      return true;
    case GuidanceBatching::kSequential:
      return false;
    case GuidanceBatching::kAuto:
      break;
  }
  return stage.tokens(Modality::kVideo) + stage.tokens(Modality::kAudio) < kBatchedTokens;
}

bool NeedsNegative(const EffectiveParameters& parameters) {
  if (!parameters.guidance.has_value()) return false;
  const auto& settings = parameters.guidance->settings;
  return settings.video.NeedsUnconditioned() || settings.audio.NeedsUnconditioned();
}

}  // namespace ltx::pipeline
