#include "engine/pipeline/model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/json_text.h"
#include "engine/pipeline/error_details.h"
#include "engine/pipeline/model_loading.h"
#include "engine/pipeline/model_parts.h"
#include "engine/sampling/latent_geometry.h"
#include "kernels/status_macros.h"

namespace ltx::pipeline {

namespace {

constexpr absl::string_view kKindDistilled = "distilled";

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
  LTX_ASSIGN_OR_RETURN(model->parts_, LoadParts(device, files, options.compute_dtype,
                                                 options.tokenizer));
  model->parts_->transformer->set_recording(options.record_forwards);
  model->parts_->prompt_cache =
      std::make_unique<text::PromptCache>(device, options.prompt_cache_bytes);
  LTX_RETURN_IF_ERROR(model->CheckGrid());
  if (model->kind_ == kKindDistilled) {
    if (model->parts_->upsampler != nullptr) model->recipes_.push_back(Recipe::kDistilled);
    model->recipes_.push_back(Recipe::kDistilledOneStage);
  }
  return model;
}

absl::Status Model::Describe(const checkpoint::ModelSet& files, const ModelOptions& options) {
  name_ = files.name;
  kind_ = std::string(checkpoint::ModelKindName(options.kind.value_or(files.kind)));
  version_ = files.model_version;
  defaults_.height = files.defaults.height;
  defaults_.width = files.defaults.width;
  defaults_.num_frames = files.defaults.num_frames;
  LTX_ASSIGN_OR_RETURN(defaults_.frame_rate, FrameRate::FromDouble(files.defaults.frame_rate));
  limits_.min_frames = files.limits.min_frames.value_or(limits_.min_frames);
  limits_.max_frames = files.limits.max_frames.value_or(limits_.max_frames);
  limits_.min_size = files.limits.min_size.value_or(limits_.min_size);
  limits_.max_size = files.limits.max_size.value_or(limits_.max_size);
  return absl::OkStatus();
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

int64_t Model::sample_rate() const { return parts_->vocoder->sample_rate(); }

GenerationRequest Model::DefaultRequest() const {
  GenerationRequest request;
  request.height = defaults_.height;
  request.width = defaults_.width;
  request.num_frames = defaults_.num_frames;
  request.frame_rate = defaults_.frame_rate;
  request.seed = defaults_.seed;
  if (!recipes_.empty()) request.recipe = recipes_.front();
  return request;
}

absl::Status Model::Validate(const GenerationRequest& request) const {
  LTX_RETURN_IF_ERROR(ValidateRequest(request, limits_));
  const std::string recipe(RecipeName(request.recipe));
  if (kind_ != kKindDistilled) {
    return WithDetail(absl::FailedPreconditionError(absl::StrCat(
                          "recipe ", recipe, " needs a distilled model; ", name_, " is ", kind_)),
                      {std::string(kReasonModelKind), "recipe", recipe, ""});
  }
  if (request.recipe == Recipe::kDistilled && parts_->upsampler == nullptr) {
    return WithDetail(absl::FailedPreconditionError(absl::StrCat(
                          "recipe ", recipe, " needs a spatial upsampler; ", name_, " has none")),
                      {std::string(kReasonComponentMissing), "recipe", recipe,
                       std::string(RecipeName(Recipe::kDistilledOneStage))});
  }
  return absl::OkStatus();
}

}  // namespace ltx::pipeline
