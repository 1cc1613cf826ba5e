#include "engine/pipeline/model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/pipeline/error_details.h"
#include "engine/pipeline/guidance_defaults.h"
#include "engine/pipeline/model_loading.h"
#include "engine/pipeline/model_parts.h"
#include "engine/pipeline/parameter_set.h"
#include "engine/sampling/latent_geometry.h"
#include "kernels/status_macros.h"

namespace ltx::pipeline {

namespace {

absl::Status Missing(const RecipeTraits& recipe, const std::string& model, absl::string_view file,
                     absl::string_view what) {
  return WithDetail(absl::FailedPreconditionError(absl::StrCat("recipe ", recipe.name, " needs ",
                                                               what, " (file of kind ", file, "); ",
                                                               model, " has none")),
                    {std::string(kReasonComponentMissing), "recipe", std::string(recipe.name),
                     std::string(file)});
}

}  // namespace

Model::Model() = default;
Model::~Model() = default;

absl::StatusOr<std::unique_ptr<Model>> Model::Load(Device* device,
                                                   const checkpoint::ModelSet& files,
                                                   const ModelOptions& options) {
  if (options.compute_dtype != DType::kF32 && options.compute_dtype != DType::kBF16) {
    return absl::InvalidArgumentError(absl::StrCat(
        "compute_dtype ", DTypeName(options.compute_dtype), " is not legal: F32 or BF16"));
  }
  std::unique_ptr<Model> model(new Model());
  model->device_ = device;
  model->compute_dtype_ = options.compute_dtype;
  model->options_ = options;
  LTX_RETURN_IF_ERROR(model->Describe(files, options));
  LTX_ASSIGN_OR_RETURN(model->parts_,
                       LoadParts(device, files, options.compute_dtype, options.tokenizer));
  model->parts_->transformer->set_recording(options.record_forwards);
  if (FusedCache* const fused = model->fused_cache(); fused != nullptr) {
    fused->set_recording(options.record_forwards);
    fused->Keep(options.fused_cache_bytes);
  }
  model->parts_->prompt_cache =
      std::make_unique<text::PromptCache>(device, options.prompt_cache_bytes);
  LTX_RETURN_IF_ERROR(model->LoadEnhancer());
  LTX_RETURN_IF_ERROR(model->CheckGrid());
  const bool distilled = model->kind_ == checkpoint::ModelKind::kDistilled;
  for (const RecipeTraits& recipe : AllRecipes()) {
    // A distilled model runs the others when asked, but they are not what it is for.
    if (recipe.full_model == distilled || !model->CheckRecipe(recipe).ok()) continue;
    model->recipes_.push_back(recipe.recipe);
  }
  model->defaults_.recipe = model->recipes_.front();
  return model;
}

absl::Status Model::Describe(const checkpoint::ModelSet& files, const ModelOptions& options) {
  name_ = files.name;
  kind_ = options.kind.value_or(files.kind);
  version_ = files.model_version;
  defaults_.version = checkpoint::ParseModelVersionForDefaults(version_);
  defaults_.height = files.defaults.height;
  defaults_.width = files.defaults.width;
  defaults_.num_frames = files.defaults.num_frames;
  if (files.defaults.frame_rate.has_value()) {
    LTX_ASSIGN_OR_RETURN(defaults_.frame_rate, FrameRate::FromDouble(*files.defaults.frame_rate));
  }
  limits_.min_frames = files.limits.min_frames.value_or(limits_.min_frames);
  limits_.max_frames = files.limits.max_frames.value_or(limits_.max_frames);
  limits_.min_size = files.limits.min_size.value_or(limits_.min_size);
  limits_.max_size = files.limits.max_size.value_or(limits_.max_size);
  return absl::OkStatus();
}

absl::Status Model::LoadEnhancer() {
  const text::TextTower& tower = parts_->prompt_encoder->tower();
  if (options_.enhancement_system_prompt.empty() ||
      !text::PromptEnhancer::CheckFamily(tower.config()).ok()) {
    return absl::OkStatus();
  }
  text::PromptEnhancer::Options options;
  options.system_prompt = options_.enhancement_system_prompt;
  LTX_ASSIGN_OR_RETURN(
      parts_->prompt_enhancer,
      text::PromptEnhancer::Create(device_, &tower, parts_->prompt_encoder->shared_tokenizer(),
                                   std::move(options)));
  return absl::OkStatus();
}

absl::Status Model::CheckEnhancement() const {
  if (parts_->prompt_enhancer.has_value()) return absl::OkStatus();
  const absl::Status family =
      text::PromptEnhancer::CheckFamily(parts_->prompt_encoder->tower().config());
  if (!family.ok()) {
    return WithDetail(
        absl::FailedPreconditionError(absl::StrCat("enhance_prompt true cannot be honoured by ",
                                                   name_, ", leave it unset: ", family.message())),
        {std::string(kReasonModelKind), "enhance_prompt", "true", "unset"});
  }
  return WithDetail(
      absl::FailedPreconditionError(
          "enhance_prompt true needs a system prompt, and this server has none: leave it unset, or "
          "name a file with one in its configuration as prompt_enhancement_system_prompt_file"),
      {std::string(kReasonComponentMissing), "enhance_prompt", "true", "unset"});
}

absl::Status Model::CheckGrid() const {
  const video_vae::CompressionFactors vae = parts_->video_decoder->factors();
  const sampling::ScaleFactors grid;
  if (vae.spatial != grid.height || vae.temporal != grid.time) {
    const std::string value = absl::StrCat(vae.temporal, "x", vae.spatial);
    const std::string legal = absl::StrCat(grid.time, "x", grid.height);
    return WithDetail(
        absl::UnimplementedError(absl::StrCat("a video VAE with time and space factors ", value,
                                              " is not supported: the pipelines count in ", legal)),
        {std::string(kReasonComponentMismatch), "video VAE", value, legal});
  }
  if (const auto* const upscaler = parts_->upsampler.get(); upscaler != nullptr) {
    const upsampler::LatentExtents grown = upscaler->OutputExtents({2, 3, 5});
    if (grown.frames != 2 || grown.height != 6 || grown.width != 10) {
      return WithDetail(absl::UnimplementedError(
                            "a spatial upsampler that does not double height and width is not "
                            "supported by the two-stage recipe"),
                        {std::string(kReasonComponentMismatch), "spatial upsampler", "", "x2"});
    }
  }
  return absl::OkStatus();
}

text::PromptCache::Stats Model::prompt_cache_stats() const { return parts_->prompt_cache->stats(); }

absl::StatusOr<bool> Model::Improve() const {
  LTX_ASSIGN_OR_RETURN(const bool improved, device_->Improve());
  if (improved) return true;
  return parts_->transformer->RefreshRecordings();
}

FusedCache* Model::fused_cache() const { return parts_->fused.get(); }

int64_t Model::sample_rate() const { return parts_->vocoder->sample_rate(); }

absl::Status Model::CheckRecipe(const RecipeTraits& recipe) const {
  if (!recipe.full_model && kind_ != checkpoint::ModelKind::kDistilled) {
    return WithDetail(absl::FailedPreconditionError(
                          absl::StrCat("recipe ", recipe.name, " needs a distilled model; ", name_,
                                       " is ", checkpoint::ModelKindName(kind_))),
                      {std::string(kReasonModelKind), "recipe", std::string(recipe.name), ""});
  }
  if (recipe.two_stages() && parts_->upsampler == nullptr) {
    return Missing(recipe, name_, "spatial_upsampler", "a spatial latent upsampler");
  }
  if (recipe.needs_distilled_lora() && parts_->fused == nullptr) {
    return Missing(recipe, name_, "distilled_lora", "the distilled LoRA");
  }
  return absl::OkStatus();
}

absl::Status Model::Validate(const GenerationRequest& request) const {
  LTX_RETURN_IF_ERROR(ValidateRequest(request, limits_));
  const RecipeTraits& recipe = TraitsOf(request.recipe);
  LTX_RETURN_IF_ERROR(CheckRecipe(recipe));
  if (request.enhance_prompt) LTX_RETURN_IF_ERROR(CheckEnhancement());
  if (request.auto_duration.has_value() && !parts_->duration_head.has_value()) {
    return WithDetail(
        absl::FailedPreconditionError(absl::StrCat(
            "auto_duration needs a duration head (file of kind duration_head), which models have "
            "from 2.5 on; ",
            name_, " has none: give num_frames")),
        {std::string(kReasonComponentMissing), "auto_duration", "", "duration_head"});
  }
  if (recipe.guided()) {
    LTX_RETURN_IF_ERROR(ResolveGuidance(request, ParametersFor(recipe, defaults_.version),
                                        parts_->transformer->num_blocks())
                            .status());
  }
  return absl::OkStatus();
}

}  // namespace ltx::pipeline
