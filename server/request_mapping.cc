#include "server/request_mapping.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "engine/pipeline/error_details.h"
#include "engine/pipeline/recipe.h"
#include "engine/pipeline/request_fields.h"
#include "kernels/status_macros.h"

namespace ltx::server {
namespace {

absl::Status UnknownEnum(absl::string_view field, int value, absl::string_view legal) {
  return pipeline::WithDetail(
      absl::InvalidArgumentError(absl::StrCat(field, ": no meaning for ", value, "; use ", legal)),
      {std::string(pipeline::kReasonUnknownValue), std::string(field), absl::StrCat(value),
       std::string(legal)});
}

absl::Status MapNoise(const v1::GenerateVideoRequest& request,
                      pipeline::GenerationRequest* mapped) {
  switch (request.noise_generator()) {
    case v1::NOISE_GENERATOR_UNSPECIFIED:
      break;
    case v1::NOISE_GENERATOR_TORCH_CPU:
      mapped->noise_generator = pipeline::NoiseGenerator::kTorchCpu;
      break;
    case v1::NOISE_GENERATOR_TORCH_CUDA:
      mapped->noise_generator = pipeline::NoiseGenerator::kTorchCuda;
      break;
    default:
      return UnknownEnum("noise_generator", request.noise_generator(), "torch_cpu or torch_cuda");
  }
  switch (request.noise_dtype()) {
    case v1::NOISE_DTYPE_UNSPECIFIED:
      break;
    case v1::NOISE_DTYPE_FLOAT32:
      mapped->noise_dtype = DType::kF32;
      break;
    case v1::NOISE_DTYPE_BFLOAT16:
      mapped->noise_dtype = DType::kBF16;
      break;
    default:
      return UnknownEnum("noise_dtype", request.noise_dtype(), "float32 or bfloat16");
  }
  return absl::OkStatus();
}

/// Fields that only guided recipes honour; the engine refuses them by name where they do not apply.
absl::Status MapGuidance(const v1::GenerateVideoRequest& request,
                         pipeline::GenerationRequest* mapped) {
  if (request.has_negative_prompt()) mapped->negative_prompt = request.negative_prompt();
  if (request.has_num_inference_steps()) {
    mapped->num_inference_steps = request.num_inference_steps();
  }
  const auto blocks = [](const google::protobuf::RepeatedField<int32_t>& field,
                         std::optional<std::vector<int64_t>>* target) {
    if (!field.empty()) target->emplace(field.begin(), field.end());
  };
  pipeline::GuidanceFields& video = mapped->guidance.video;
  if (request.has_video_cfg_guidance_scale()) video.cfg_scale = request.video_cfg_guidance_scale();
  if (request.has_video_stg_guidance_scale()) video.stg_scale = request.video_stg_guidance_scale();
  if (request.has_video_rescale_scale()) video.rescale_scale = request.video_rescale_scale();
  if (request.has_a2v_guidance_scale()) video.modality_scale = request.a2v_guidance_scale();
  if (request.has_video_skip_step()) video.skip_step = request.video_skip_step();
  blocks(request.video_stg_blocks(), &video.stg_blocks);
  pipeline::GuidanceFields& audio = mapped->guidance.audio;
  if (request.has_audio_cfg_guidance_scale()) audio.cfg_scale = request.audio_cfg_guidance_scale();
  if (request.has_audio_stg_guidance_scale()) audio.stg_scale = request.audio_stg_guidance_scale();
  if (request.has_audio_rescale_scale()) audio.rescale_scale = request.audio_rescale_scale();
  if (request.has_v2a_guidance_scale()) audio.modality_scale = request.v2a_guidance_scale();
  if (request.has_audio_skip_step()) audio.skip_step = request.audio_skip_step();
  blocks(request.audio_stg_blocks(), &audio.stg_blocks);
  switch (request.guidance_batching()) {
    case v1::GUIDANCE_BATCHING_UNSPECIFIED:
      return absl::OkStatus();
    case v1::GUIDANCE_BATCHING_BATCHED:
      mapped->guidance_batching = pipeline::GuidanceBatching::kBatched;
      return absl::OkStatus();
    case v1::GUIDANCE_BATCHING_SEQUENTIAL:
      mapped->guidance_batching = pipeline::GuidanceBatching::kSequential;
      return absl::OkStatus();
    default:
      return UnknownEnum("guidance_batching", request.guidance_batching(), "batched or sequential");
  }
}

/// num_frames or auto_duration.
absl::Status MapLength(const v1::GenerateVideoRequest& request,
                       pipeline::GenerationRequest* mapped) {
  if (request.has_num_frames()) mapped->num_frames = request.num_frames();
  if (!request.has_auto_duration()) return absl::OkStatus();
  if (request.has_num_frames()) {
    return pipeline::WithDetail(
        absl::InvalidArgumentError("auto_duration chooses the length that num_frames sets: give "
                                   "one of them"),
        {std::string(pipeline::kReasonUnsupportedField), "auto_duration", "", "unset"});
  }
  pipeline::AutoDuration& duration = mapped->auto_duration.emplace();
  if (request.auto_duration().has_min_seconds()) {
    duration.min_seconds = request.auto_duration().min_seconds();
  }
  if (request.auto_duration().has_max_seconds()) {
    duration.max_seconds = request.auto_duration().max_seconds();
  }
  return absl::OkStatus();
}

void SetGuidance(const sampling::GuiderParams& settings, v1::GuidanceParameters* wire) {
  wire->set_cfg_scale(settings.cfg_scale);
  wire->set_stg_scale(settings.stg_scale);
  wire->set_rescale_scale(settings.rescale_scale);
  wire->set_modality_scale(settings.modality_scale);
  wire->set_skip_step(static_cast<int32_t>(settings.skip_step));
  const std::vector<int64_t> blocks = settings.stg_blocks.value_or(std::vector<int64_t>());
  wire->mutable_stg_blocks()->Add(blocks.begin(), blocks.end());
}

}  // namespace

absl::StatusOr<pipeline::GenerationRequest> FromWire(const v1::GenerateVideoRequest& request,
                                                     const pipeline::RequestDefaults& defaults) {
  pipeline::Recipe recipe = defaults.recipe;
  if (!request.recipe().empty()) {
    LTX_ASSIGN_OR_RETURN(recipe, pipeline::ParseRecipe(request.recipe()));
  }
  pipeline::GenerationRequest mapped = defaults.For(recipe);
  mapped.prompt = request.prompt();
  if (request.has_width()) mapped.width = request.width();
  if (request.has_height()) mapped.height = request.height();
  if (request.has_frame_rate()) {
    LTX_ASSIGN_OR_RETURN(mapped.frame_rate, pipeline::FrameRate::FromDouble(request.frame_rate()));
  }
  if (request.has_seed()) mapped.seed = static_cast<uint64_t>(request.seed());
  mapped.video_only = request.video_only();
  mapped.enhance_prompt = request.enhance_prompt();
  LTX_RETURN_IF_ERROR(MapLength(request, &mapped));
  LTX_RETURN_IF_ERROR(MapNoise(request, &mapped));
  LTX_RETURN_IF_ERROR(MapGuidance(request, &mapped));
  if (request.has_distilled_lora_strength_stage_1()) {
    mapped.distilled_lora_strength_stage_1 = request.distilled_lora_strength_stage_1();
  }
  if (request.has_distilled_lora_strength_stage_2()) {
    mapped.distilled_lora_strength_stage_2 = request.distilled_lora_strength_stage_2();
  }
  if (request.has_num_generated_keyframes()) {
    mapped.num_generated_keyframes = request.num_generated_keyframes();
  }
  if (!request.conditions().empty()) {
    return pipeline::WithDetail(
        absl::UnimplementedError(absl::StrCat("conditions: recipe ", pipeline::RecipeName(recipe),
                                              " cannot condition on uploaded material yet")),
        {std::string(pipeline::kReasonUnsupportedField), "conditions",
         request.conditions(0).handle(), "none"});
  }
  if (!request.prompt_handle().empty()) {
    return absl::InternalError("prompt_handle has to be resolved before the request is mapped");
  }
  if (request.preview_every_steps() < 0) {
    const std::string value = absl::StrCat(request.preview_every_steps());
    return pipeline::WithDetail(
        absl::InvalidArgumentError(absl::StrCat(
            "preview_every_steps ", value, " is negative; use 0 for no previews, or a step count")),
        {std::string(pipeline::kReasonUnknownValue), "preview_every_steps", value, "0 or more"});
  }
  return mapped;
}

v1::Phase ToWire(pipeline::Phase phase) {
  switch (phase) {
    case pipeline::Phase::kEnhance:
      return v1::PHASE_ENHANCE;
    case pipeline::Phase::kText:
      return v1::PHASE_TEXT;
    case pipeline::Phase::kFuse:
      return v1::PHASE_LORA_FUSION;
    case pipeline::Phase::kStage1:
      return v1::PHASE_STAGE_1;
    case pipeline::Phase::kUpsample:
      return v1::PHASE_UPSAMPLE;
    case pipeline::Phase::kStage2:
      return v1::PHASE_STAGE_2;
    case pipeline::Phase::kVideoDecode:
      return v1::PHASE_VIDEO_DECODE;
    case pipeline::Phase::kAudioDecode:
      return v1::PHASE_AUDIO_DECODE;
  }
  return v1::PHASE_UNSPECIFIED;
}

v1::EffectiveParameters ToWire(const pipeline::EffectiveParameters& parameters) {
  v1::EffectiveParameters wire;
  wire.set_recipe(std::string(pipeline::RecipeName(parameters.recipe)));
  wire.set_width(static_cast<int32_t>(parameters.width));
  wire.set_height(static_cast<int32_t>(parameters.height));
  wire.set_num_frames(static_cast<int32_t>(parameters.num_frames));
  wire.set_frame_rate_numerator(static_cast<int32_t>(parameters.frame_rate.numerator()));
  wire.set_frame_rate_denominator(static_cast<int32_t>(parameters.frame_rate.denominator()));
  wire.set_seed(parameters.seed);
  wire.set_noise_generator(parameters.noise_generator == pipeline::NoiseGenerator::kTorchCpu
                               ? v1::NOISE_GENERATOR_TORCH_CPU
                               : v1::NOISE_GENERATOR_TORCH_CUDA);
  wire.set_noise_dtype(parameters.noise_dtype == DType::kBF16 ? v1::NOISE_DTYPE_BFLOAT16
                                                              : v1::NOISE_DTYPE_FLOAT32);
  wire.set_compute_dtype(absl::AsciiStrToLower(DTypeName(parameters.compute_dtype)));
  for (const pipeline::EffectiveParameters::Stage& stage : parameters.stages) {
    v1::StageParameters* wire_stage = wire.add_stages();
    wire_stage->set_width(static_cast<int32_t>(stage.width));
    wire_stage->set_height(static_cast<int32_t>(stage.height));
    wire_stage->set_sampler(stage.sampler);
    wire_stage->mutable_sigmas()->Add(stage.sigmas.begin(), stage.sigmas.end());
    wire_stage->set_noise_scale(stage.noise_scale);
    wire_stage->set_video_tokens(static_cast<int32_t>(stage.video_tokens));
    wire_stage->set_audio_tokens(static_cast<int32_t>(stage.audio_tokens));
    wire_stage->set_distilled_lora_strength(stage.distilled_lora_strength);
    wire_stage->set_distilled_lora(stage.distilled_lora);
    wire_stage->set_distilled_lora_kept(stage.lora_kept);
  }
  wire.set_video_decode_layout(parameters.video_decode_layout);
  wire.set_parameter_set(parameters.parameter_set);
  wire.set_fused_transformer_bytes(parameters.fused_transformer_bytes);
  wire.set_video_only(!parameters.has_audio);
  if (parameters.guidance.has_value()) {
    wire.set_num_inference_steps(static_cast<int32_t>(parameters.guidance->num_inference_steps));
    wire.set_negative_prompt(parameters.guidance->negative_prompt);
    wire.set_guidance_batched(parameters.guidance->batched);
    if (parameters.has_video) {
      SetGuidance(parameters.guidance->settings.video, wire.mutable_video_guidance());
    }
    if (parameters.has_audio) {
      SetGuidance(parameters.guidance->settings.audio, wire.mutable_audio_guidance());
    }
  }
  if (parameters.enhancement.has_value()) {
    const pipeline::EffectiveParameters::Enhancement& enhancement = *parameters.enhancement;
    wire.set_enhancement_max_tokens(static_cast<int32_t>(enhancement.max_new_tokens));
    wire.set_enhancement_tokens(static_cast<int32_t>(enhancement.tokens));
    wire.set_enhanced_prompt(enhancement.prompt);
  }
  if (parameters.predicted_seconds.has_value()) {
    wire.set_predicted_seconds(*parameters.predicted_seconds);
  }
  return wire;
}

v1::VerifierReport ToWire(const verify::ClipReport& report) {
  v1::VerifierReport wire;
  wire.set_passed(report.passed);
  for (const std::string& failure : report.failures) wire.add_failures(failure);
  wire.set_frames(static_cast<int32_t>(report.num_frames));
  wire.set_distinct_frames(static_cast<int32_t>(report.distinct_frames));
  wire.set_near_black_frames(static_cast<int32_t>(report.near_black_frames));
  wire.set_near_uniform_frames(static_cast<int32_t>(report.near_uniform_frames));
  wire.set_adjacent_mad(report.adjacent_mad);
  wire.set_far_mad(report.far_mad);
  wire.set_adjacent_far_ratio(report.adjacent_far_ratio);
  for (const double rms : report.audio_rms_dbfs) wire.add_audio_rms_dbfs(rms);
  wire.set_audio_envelope_cv(report.audio_envelope_cv);
  wire.set_audio_spectral_crest(report.audio_spectral_crest);
  return wire;
}

void AddMemory(const MemoryLedger::Snapshot& snapshot,
               google::protobuf::RepeatedPtrField<v1::MemoryAmounts>* memory) {
  const auto add = [memory](absl::string_view owner, const MemoryLedger::Amounts& amounts) {
    v1::MemoryAmounts* entry = memory->Add();
    entry->set_owner(std::string(owner));
    entry->set_live_bytes(amounts.live_bytes);
    entry->set_peak_bytes(amounts.peak_bytes);
  };
  add("total", snapshot.total);
  for (int i = 0; i < kMemoryOwnerCount; ++i) {
    add(MemoryOwnerName(static_cast<MemoryOwner>(i)), snapshot.by_owner[i]);
  }
}

}  // namespace ltx::server
