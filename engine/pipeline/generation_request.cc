#include "engine/pipeline/generation_request.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/pipeline/error_details.h"
#include "engine/sampling/latent_geometry.h"
#include "engine/text/utf8.h"
#include "kernels/status_macros.h"

namespace ltx::pipeline {
namespace {

// The video VAE compresses time by 8 and keeps the first frame apart.
constexpr int64_t kFrameStep = 8;
// The video VAE compresses space by 32.
constexpr int64_t kSpaceStep = 32;

absl::Status Refuse(absl::string_view reason, absl::string_view field, const std::string& value,
                    const std::string& legal, absl::string_view why) {
  return WithDetail(absl::InvalidArgumentError(absl::StrCat(
                        field, " ", value, " is not legal: ", why, "; legal: ", legal)),
                    {std::string(reason), std::string(field), value, legal});
}

template <typename T>
std::string ToText(const T& value) {
  return absl::StrCat(value);
}
std::string ToText(const std::vector<int64_t>& values) {
  return absl::StrCat("[", absl::StrJoin(values, ", "), "]");
}
// Prompts may be long and private: say how long, not what.
std::string ToText(const std::string& text) { return absl::StrCat("of ", text.size(), " bytes"); }

template <typename T>
absl::Status RefuseIfSet(absl::string_view field, const std::optional<T>& value, Recipe recipe) {
  return value.has_value() ? UnsupportedFieldError(field, ToText(*value), recipe)
                           : absl::OkStatus();
}

absl::Status CheckUnsupportedFields(const GenerationRequest& r) {
  for (const absl::Status& status : {
           RefuseIfSet("negative_prompt", r.negative_prompt, r.recipe),
           RefuseIfSet("num_inference_steps", r.num_inference_steps, r.recipe),
           RefuseIfSet("video_cfg_guidance_scale", r.video_cfg_guidance_scale, r.recipe),
           RefuseIfSet("video_stg_guidance_scale", r.video_stg_guidance_scale, r.recipe),
           RefuseIfSet("video_rescale_scale", r.video_rescale_scale, r.recipe),
           RefuseIfSet("video_stg_blocks", r.video_stg_blocks, r.recipe),
           RefuseIfSet("video_skip_step", r.video_skip_step, r.recipe),
           RefuseIfSet("a2v_guidance_scale", r.a2v_guidance_scale, r.recipe),
           RefuseIfSet("audio_cfg_guidance_scale", r.audio_cfg_guidance_scale, r.recipe),
           RefuseIfSet("audio_stg_guidance_scale", r.audio_stg_guidance_scale, r.recipe),
           RefuseIfSet("audio_rescale_scale", r.audio_rescale_scale, r.recipe),
           RefuseIfSet("audio_stg_blocks", r.audio_stg_blocks, r.recipe),
           RefuseIfSet("audio_skip_step", r.audio_skip_step, r.recipe),
           RefuseIfSet("v2a_guidance_scale", r.v2a_guidance_scale, r.recipe),
           RefuseIfSet("num_generated_keyframes", r.num_generated_keyframes, r.recipe),
       }) {
    LTX_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

absl::Status CheckPrompt(const GenerationRequest& request, const RequestLimits& limits) {
  const std::string length = absl::StrCat("of ", request.prompt.size(), " bytes");
  const std::string legal = absl::StrCat("at most ", limits.max_prompt_bytes, " bytes of UTF-8");
  if (static_cast<int64_t>(request.prompt.size()) > limits.max_prompt_bytes) {
    return Refuse(kReasonPromptLength, "prompt", length, legal, "it is too long");
  }
  if (const auto offset = text::FindInvalidUtf8(request.prompt); offset.has_value()) {
    return Refuse(kReasonPromptEncoding, "prompt", length, legal,
                  absl::StrCat("byte ", *offset, " is not UTF-8"));
  }
  return absl::OkStatus();
}

std::string Describe(const std::optional<int64_t>& below, const std::optional<int64_t>& above) {
  if (below.has_value() && above.has_value()) return absl::StrCat(*below, " or ", *above);
  if (below.has_value()) return absl::StrCat(*below);
  if (above.has_value()) return absl::StrCat(*above);
  return "none";
}

absl::Status CheckFrames(int64_t num_frames, const RequestLimits& limits) {
  const std::string value = absl::StrCat(num_frames);
  const FrameNeighbours nearest = NearestFrameCounts(num_frames, limits);
  const std::string legal = Describe(nearest.below, nearest.above);
  const bool on_grid = num_frames > 0 && (num_frames - 1) % kFrameStep == 0;
  if (num_frames < limits.min_frames || num_frames > limits.max_frames) {
    std::string why =
        absl::StrCat("this model takes ", limits.min_frames, " to ", limits.max_frames, " frames");
    // Said at once, or the next larger model would refuse the same number for the other reason.
    if (!on_grid && num_frames > 0) {
      RequestLimits any;
      any.max_frames = std::numeric_limits<int64_t>::max();
      const FrameNeighbours grid = NearestFrameCounts(num_frames, any);
      absl::StrAppend(&why, ", and frame counts are 8k + 1, here ",
                      Describe(grid.below, grid.above));
    }
    return Refuse(kReasonFrameLimit, "num_frames", value, legal, why);
  }
  if (!on_grid) {
    return Refuse(kReasonFrameGrid, "num_frames", value, legal,
                  "frame counts are 8k + 1, and nothing is rounded silently");
  }
  return absl::OkStatus();
}

// Sound is as long as the picture and has at least one latent frame.
absl::Status CheckSound(const GenerationRequest& request, const RequestLimits& limits) {
  const auto has_sound = [&request](int64_t frames) {
    return sampling::AudioLatentFrames(static_cast<double>(frames) / request.frame_rate.value()) >=
           1;
  };
  if (has_sound(request.num_frames)) return absl::OkStatus();
  int64_t longer = request.num_frames;
  while (longer <= limits.max_frames && !has_sound(longer)) longer += kFrameStep;
  return Refuse(kReasonFrameLimit, "num_frames", absl::StrCat(request.num_frames),
                longer <= limits.max_frames ? absl::StrCat(longer) : "none",
                absl::StrCat("at frame_rate ", request.frame_rate.ToString(),
                             " it is too short to have sound"));
}

absl::Status CheckSize(absl::string_view field, int64_t size, Recipe recipe,
                       const RequestLimits& limits) {
  const int64_t multiple = SizeMultiple(recipe);
  const int64_t smallest =
      std::max<int64_t>((limits.min_size + multiple - 1) / multiple, 1) * multiple;
  const int64_t largest = limits.max_size / multiple * multiple;
  const std::string value = absl::StrCat(size);
  if (size < limits.min_size || size > limits.max_size || size <= 0) {
    const std::string legal = smallest > largest ? "none"
                                                 : absl::StrCat("multiples of ", multiple, " from ",
                                                                smallest, " to ", largest);
    return Refuse(
        kReasonSizeLimit, field, value, legal,
        absl::StrCat("this model takes ", limits.min_size, " to ", limits.max_size, " pixels"));
  }
  if (size % multiple != 0) {
    const int64_t floor = size / multiple * multiple;
    const std::string legal = Describe(
        floor >= smallest ? std::optional<int64_t>(floor) : std::nullopt,
        floor + multiple <= largest ? std::optional<int64_t>(floor + multiple) : std::nullopt);
    return Refuse(kReasonSizeGrid, field, value, legal,
                  absl::StrCat("recipe ", RecipeName(recipe), " needs multiples of ", multiple));
  }
  return absl::OkStatus();
}

absl::Status UnknownName(absl::string_view field, absl::string_view name,
                         const std::string& legal) {
  return WithDetail(
      absl::InvalidArgumentError(absl::StrCat("unknown ", field, " '", name, "'; known: ", legal)),
      {std::string(kReasonUnknownValue), std::string(field), std::string(name), legal});
}

}  // namespace

absl::string_view RecipeName(Recipe recipe) {
  switch (recipe) {
    case Recipe::kDistilled:
      return "distilled";
    case Recipe::kDistilledOneStage:
      return "distilled_one_stage";
  }
  return "unknown";
}

absl::StatusOr<Recipe> ParseRecipe(absl::string_view name) {
  for (const Recipe recipe : {Recipe::kDistilled, Recipe::kDistilledOneStage}) {
    if (name == RecipeName(recipe)) return recipe;
  }
  return UnknownName("recipe", name, "distilled, distilled_one_stage");
}

absl::string_view NoiseGeneratorName(NoiseGenerator generator) {
  switch (generator) {
    case NoiseGenerator::kTorchCpu:
      return "torch_cpu";
    case NoiseGenerator::kTorchCuda:
      return "torch_cuda";
  }
  return "unknown";
}

absl::StatusOr<NoiseGenerator> ParseNoiseGenerator(absl::string_view name) {
  for (const NoiseGenerator generator : {NoiseGenerator::kTorchCpu, NoiseGenerator::kTorchCuda}) {
    if (name == NoiseGeneratorName(generator)) return generator;
  }
  return UnknownName("noise_generator", name, "torch_cpu, torch_cuda");
}

int64_t SizeMultiple(Recipe recipe) {
  return recipe == Recipe::kDistilled ? 2 * kSpaceStep : kSpaceStep;
}

FrameNeighbours NearestFrameCounts(int64_t num_frames, const RequestLimits& limits) {
  const int64_t low = std::max<int64_t>(limits.min_frames, 1);
  const int64_t smallest = (low - 1 + kFrameStep - 1) / kFrameStep * kFrameStep + 1;
  const int64_t largest = (limits.max_frames - 1) / kFrameStep * kFrameStep + 1;
  if (smallest > largest) return {};
  if (num_frames < smallest) return {std::nullopt, smallest};
  if (num_frames > largest) return {largest, std::nullopt};
  const int64_t below = (num_frames - 1) / kFrameStep * kFrameStep + 1;
  if (below == num_frames) return {below, below};
  return {below, below + kFrameStep};
}

absl::Status UnsupportedFieldError(absl::string_view field, absl::string_view value,
                                   Recipe recipe) {
  return WithDetail(
      absl::InvalidArgumentError(absl::StrCat(field, " ", value, " cannot be honoured by recipe ",
                                              RecipeName(recipe), ": leave it unset")),
      {std::string(kReasonUnsupportedField), std::string(field), std::string(value), "unset"});
}

absl::Status ValidateRequest(const GenerationRequest& request, const RequestLimits& limits) {
  LTX_RETURN_IF_ERROR(CheckUnsupportedFields(request));
  LTX_RETURN_IF_ERROR(CheckPrompt(request, limits));
  LTX_RETURN_IF_ERROR(CheckFrames(request.num_frames, limits));
  LTX_RETURN_IF_ERROR(CheckSound(request, limits));
  LTX_RETURN_IF_ERROR(CheckSize("height", request.height, request.recipe, limits));
  LTX_RETURN_IF_ERROR(CheckSize("width", request.width, request.recipe, limits));
  const DType noise_dtype = request.noise_dtype.value_or(DType::kF32);
  if (noise_dtype != DType::kF32 && noise_dtype != DType::kBF16) {
    return Refuse(kReasonUnknownValue, "noise_dtype", std::string(DTypeName(noise_dtype)),
                  "F32, BF16", "noise is drawn in the dtype of a latent");
  }
  return absl::OkStatus();
}

}  // namespace ltx::pipeline
