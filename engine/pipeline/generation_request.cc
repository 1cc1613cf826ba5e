#include "engine/pipeline/generation_request.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "engine/pipeline/error_details.h"
#include "engine/pipeline/request_fields.h"
#include "engine/sampling/latent_geometry.h"
#include "engine/text/utf8.h"
#include "kernels/status_macros.h"

namespace ltx::pipeline {
namespace {

// The video VAE compresses time by 8 and keeps the first frame apart.
constexpr int64_t kFrameStep = 8;
// Of a schedule's steps: below 2 the LTX2 schedule is decided by the last bit of a rounding, above
// the limit a step no longer changes the picture.
constexpr int64_t kMinSteps = 2;
constexpr int64_t kMaxSteps = 1000;
// An adapter's update at more than twice its trained strength drowns the weights.
constexpr double kMaxLoraStrength = 2.0;

absl::Status Refuse(absl::string_view reason, absl::string_view field, const std::string& value,
                    const std::string& legal, absl::string_view why) {
  return WithDetail(absl::InvalidArgumentError(absl::StrCat(
                        field, " ", value, " is not legal: ", why, "; legal: ", legal)),
                    {std::string(reason), std::string(field), value, legal});
}

absl::Status CheckPrompt(absl::string_view field, absl::string_view prompt,
                         const RequestLimits& limits) {
  const std::string length = absl::StrCat("of ", prompt.size(), " bytes");
  const std::string legal = absl::StrCat("at most ", limits.max_prompt_bytes, " bytes of UTF-8");
  if (static_cast<int64_t>(prompt.size()) > limits.max_prompt_bytes) {
    return Refuse(kReasonPromptLength, field, length, legal, "it is too long");
  }
  if (const auto offset = text::FindInvalidUtf8(prompt); offset.has_value()) {
    return Refuse(kReasonPromptEncoding, field, length, legal,
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
absl::Status CheckSound(int64_t num_frames, const GenerationRequest& request,
                        const RequestLimits& limits) {
  if (request.video_only) return absl::OkStatus();
  const auto has_sound = [&request](int64_t frames) {
    return sampling::AudioLatentFrames(static_cast<double>(frames) / request.frame_rate.value()) >=
           1;
  };
  if (has_sound(num_frames)) return absl::OkStatus();
  int64_t longer = num_frames;
  while (longer <= limits.max_frames && !has_sound(longer)) longer += kFrameStep;
  return Refuse(kReasonFrameLimit, "num_frames", absl::StrCat(num_frames),
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

absl::Status CheckNumber(absl::string_view field, std::optional<double> value, double low,
                         double high, absl::string_view why) {
  if (!value.has_value() || (*value >= low && *value <= high)) return absl::OkStatus();
  return Refuse(kReasonUnknownValue, field, absl::StrCat(*value),
                absl::StrCat("from ", low, " to ", high), why);
}

absl::Status CheckSampling(const GenerationRequest& request) {
  const DType noise_dtype = request.noise_dtype.value_or(DType::kF32);
  if (noise_dtype != DType::kF32 && noise_dtype != DType::kBF16) {
    return Refuse(kReasonUnknownValue, "noise_dtype", std::string(DTypeName(noise_dtype)),
                  "F32, BF16", "noise is drawn in the dtype of a latent");
  }
  const int64_t steps = request.num_inference_steps.value_or(kMinSteps);
  if (steps < kMinSteps || steps > kMaxSteps) {
    return Refuse(kReasonUnknownValue, "num_inference_steps", absl::StrCat(steps),
                  absl::StrCat("from ", kMinSteps, " to ", kMaxSteps),
                  "a schedule has so many steps");
  }
  for (const auto& [field, strength] :
       {std::pair<absl::string_view, std::optional<double>>{
            "distilled_lora_strength_stage_1", request.distilled_lora_strength_stage_1},
        {"distilled_lora_strength_stage_2", request.distilled_lora_strength_stage_2}}) {
    LTX_RETURN_IF_ERROR(CheckNumber(field, strength, 0.0, kMaxLoraStrength,
                                    "a strength is a share of what the adapter was trained to"));
  }
  return absl::OkStatus();
}

absl::Status CheckGuidance(const GenerationRequest& request) {
  constexpr double kAny = std::numeric_limits<double>::max();
  for (const sampling::Modality m : sampling::kModalities) {
    const GuidanceFields& g = request.guidance[m];
    const bool video = m == sampling::Modality::kVideo;
    const auto name = [&](absl::string_view tail) {
      return absl::StrCat(sampling::ModalityName(m), tail);
    };
    for (const auto& [field, scale] :
         {std::pair<std::string, std::optional<double>>{name("_cfg_guidance_scale"), g.cfg_scale},
          {name("_stg_guidance_scale"), g.stg_scale},
          {video ? "a2v_guidance_scale" : "v2a_guidance_scale", g.modality_scale}}) {
      if (scale.has_value() && !(std::abs(*scale) <= kAny)) {
        return Refuse(kReasonUnknownValue, field, absl::StrCat(*scale), "a finite number",
                      "it is none");
      }
    }
    LTX_RETURN_IF_ERROR(CheckNumber(name("_rescale_scale"), g.rescale_scale, 0.0, 1.0,
                                    "it mixes the rescaled prediction with the other one"));
    if (g.skip_step.value_or(0) < 0 || g.skip_step.value_or(0) > kMaxSteps) {
      return Refuse(kReasonUnknownValue, name("_skip_step"), absl::StrCat(*g.skip_step),
                    absl::StrCat("from 0 to ", kMaxSteps), "it counts steps");
    }
    for (const int64_t block : g.stg_blocks.value_or(std::vector<int64_t>())) {
      if (block >= 0) continue;
      return Refuse(kReasonUnknownValue, name("_stg_blocks"), absl::StrCat(block), "from 0 on",
                    "blocks are counted from 0");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckLength(const GenerationRequest& request, const RequestLimits& limits) {
  if (!request.auto_duration.has_value()) {
    LTX_RETURN_IF_ERROR(CheckFrames(request.num_frames, limits));
    return CheckSound(request.num_frames, request, limits);
  }
  LTX_ASSIGN_OR_RETURN(const FrameRange range,
                       AutoDurationRange(*request.auto_duration, request.frame_rate, limits));
  RequestLimits within = limits;
  within.min_frames = range.min_frames;
  return CheckSound(NearestFrameCounts(range.min_frames, within).above.value_or(range.max_frames),
                    request, limits);
}

}  // namespace

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
  return UnknownNameError("noise_generator", name, "torch_cpu, torch_cuda");
}

absl::string_view GuidanceBatchingName(GuidanceBatching batching) {
  switch (batching) {
    case GuidanceBatching::kAuto:
      return "auto";
    case GuidanceBatching::kBatched:
      return "batched";
    case GuidanceBatching::kSequential:
      return "sequential";
  }
  return "unknown";
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

absl::StatusOr<FrameRange> AutoDurationRange(const AutoDuration& duration,
                                             const FrameRate& frame_rate,
                                             const RequestLimits& limits) {
  const double rate = frame_rate.value();
  const double longest = static_cast<double>(limits.max_frames) / rate;
  const double max_seconds =
      duration.max_seconds.value_or(std::min(AutoDuration::kMaxSeconds, longest));
  const auto refuse = [&](absl::string_view bound, double seconds, absl::string_view why) {
    return Refuse(kReasonFrameLimit, absl::StrCat("auto_duration.", bound), absl::StrCat(seconds),
                  absl::StrCat("seconds above 0, minimum below maximum, at most ", longest,
                               ", with a frame count 8k + 1 between them"),
                  why);
  };
  if (!(duration.min_seconds > 0.0)) {
    return refuse("min_seconds", duration.min_seconds, "a length is above 0");
  }
  if (!(max_seconds >= duration.min_seconds)) {
    return refuse("max_seconds", max_seconds, "it is below the minimum");
  }
  if (max_seconds > longest) {
    return refuse("max_seconds", max_seconds,
                  absl::StrCat("this model takes ", limits.max_frames, " frames"));
  }
  FrameRange range;
  range.min_frames = std::max<int64_t>(std::lrint(duration.min_seconds * rate), limits.min_frames);
  range.max_frames = std::min<int64_t>(std::lrint(max_seconds * rate), limits.max_frames);
  // Where the range holds no count of the grid the reference would generate off it.
  RequestLimits within = limits;
  within.min_frames = range.min_frames;
  within.max_frames = range.max_frames;
  const FrameNeighbours legal = NearestFrameCounts(range.max_frames, within);
  if (range.min_frames > range.max_frames || !legal.below.has_value()) {
    return refuse("max_seconds", max_seconds,
                  absl::StrCat("no count of frames 8k + 1 lies between ", range.min_frames, " and ",
                               range.max_frames));
  }
  return range;
}

absl::StatusOr<int64_t> LongestFrames(const GenerationRequest& request,
                                      const RequestLimits& limits) {
  if (!request.auto_duration.has_value()) return request.num_frames;
  LTX_ASSIGN_OR_RETURN(const FrameRange range,
                       AutoDurationRange(*request.auto_duration, request.frame_rate, limits));
  return sampling::SnapFramesDown(range.max_frames);
}

absl::Status ValidateRequest(const GenerationRequest& request, const RequestLimits& limits) {
  LTX_RETURN_IF_ERROR(CheckRecipeFields(request));
  LTX_RETURN_IF_ERROR(CheckPrompt("prompt", request.prompt, limits));
  if (request.negative_prompt.has_value()) {
    LTX_RETURN_IF_ERROR(CheckPrompt("negative_prompt", *request.negative_prompt, limits));
  }
  LTX_RETURN_IF_ERROR(CheckLength(request, limits));
  if (TraitsOf(request.recipe).video) {
    LTX_RETURN_IF_ERROR(CheckSize("height", request.height, request.recipe, limits));
    LTX_RETURN_IF_ERROR(CheckSize("width", request.width, request.recipe, limits));
  }
  LTX_RETURN_IF_ERROR(CheckSampling(request));
  return CheckGuidance(request);
}

}  // namespace ltx::pipeline
