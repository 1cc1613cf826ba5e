#include "server/model_backend.h"

#include <utility>

#include "kernels/status_macros.h"
#include "server/generation_task.h"
#include "server/output_path.h"
#include "server/request_mapping.h"

namespace ltx::server {
absl::StatusOr<GenerationBackend::Prepared> ModelBackend::Prepare(
    const v1::GenerateVideoRequest& request) {
  LTX_ASSIGN_OR_RETURN(pipeline::GenerationRequest mapped,
                       FromWire(request, model_->DefaultRequest()));
  LTX_RETURN_IF_ERROR(model_->Validate(mapped));
  std::string output_path;
  if (!request.output_path().empty()) {
    LTX_ASSIGN_OR_RETURN(
        output_path,
        ResolveOutputPath(request.output_path(), mapped.num_frames == 1, options_.output_roots));
  }
  Prepared prepared;
  prepared.make_task = [model = model_, metrics = metrics_, mapped = std::move(mapped),
                        output_path = std::move(output_path), projection = projection_,
                        preview_every = request.preview_every_steps()](
                           const std::string& job_id, std::shared_ptr<GenerationSink> sink) {
    std::unique_ptr<PreviewMaker> previews;
    if (preview_every > 0) {
      previews = std::make_unique<PreviewMaker>(preview_every, model, projection);
    }
    return std::make_unique<GenerationTask>(job_id, model, mapped, output_path, std::move(sink),
                                            metrics, std::move(previews));
  };
  return prepared;
}

void ModelBackend::Describe(v1::HealthResponse* response) const {
  v1::ModelInfo* model = response->mutable_model();
  model->set_name(model_->name());
  model->set_kind(model_->kind());
  model->set_version(model_->version());
  model->set_path(options_.model_path);
  for (const pipeline::Recipe recipe : model_->recipes()) {
    model->add_recipes(std::string(pipeline::RecipeName(recipe)));
  }
  const pipeline::RequestDefaults& defaults = model_->defaults();
  model->set_default_width(static_cast<int32_t>(defaults.width));
  model->set_default_height(static_cast<int32_t>(defaults.height));
  model->set_default_num_frames(static_cast<int32_t>(defaults.num_frames));
  model->set_default_frame_rate(defaults.frame_rate.value());

  v1::DeviceInfo* device = response->mutable_device();
  device->set_name(model_->device().name());
  device->set_description(model_->device().description());
  device->set_compute_dtype(model_->compute_dtype() == DType::kBF16 ? "bf16" : "f32");
  device->set_threads(model_->device().properties().threads);
  device->set_system_available_bytes(model_->device().SystemAvailableBytes());
  AddMemory(model_->device().ledger().Read(), response->mutable_memory());
}

ServerMetrics::Reading ModelBackend::ReadMetrics() const {
  const text::PromptCache::Stats prompts = model_->prompt_cache_stats();
  ServerMetrics::Reading reading;
  reading.ledger = model_->device().ledger().Read();
  reading.free_bytes = model_->device().SystemAvailableBytes();
  reading.prompt_cache_hits = prompts.hits;
  reading.prompt_cache_misses = prompts.misses;
  return reading;
}

}  // namespace ltx::server
