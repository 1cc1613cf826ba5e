#include "tests/memory/tiny_model.h"

#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::testing {

TinyModel::TinyModel(const std::string& folder)
    : files_(checkpoint::ModelSet::Open(folder).value()) {
  cpu::CpuDeviceOptions options;
  options.memory = &memory_;
  device_ = cpu::CpuDevice::Create(options).value();
}

absl::Status TinyModel::Load(DType compute_dtype, int64_t fused_cache_bytes) {
  model_.reset();
  pipeline::ModelOptions options;
  options.compute_dtype = compute_dtype;
  options.fused_cache_bytes = fused_cache_bytes;
  LTX_ASSIGN_OR_RETURN(model_, pipeline::Model::Load(device_.get(), files_, options));
  return absl::OkStatus();
}

pipeline::GenerationRequest TinyModel::Request(pipeline::Recipe recipe) const {
  pipeline::GenerationRequest request = model_->DefaultRequest();
  request.recipe = recipe;
  request.prompt = "a red circle moves up, a low hum";
  request.height = 128;
  request.width = 128;
  request.num_frames = 17;
  request.seed = 7;
  return request;
}

absl::StatusOr<TinyModel::Clip> TinyModel::Run(const pipeline::GenerationRequest& request) {
  LTX_ASSIGN_OR_RETURN(const std::unique_ptr<pipeline::GenerationJob> job,
                       pipeline::GenerationJob::Create(model_.get(), request));
  while (!job->done()) LTX_RETURN_IF_ERROR(job->Advance().status());
  const std::vector<pipeline::FinishedFrames> frames = job->TakeFrames();
  LTX_ASSIGN_OR_RETURN(const pipeline::GenerationResult result, job->TakeResult());
  Clip clip;
  for (const pipeline::FinishedFrames& part : frames) {
    LTX_ASSIGN_OR_RETURN(const std::vector<uint8_t> rgb, ToBytes(*device_, part.bytes.rgb));
    clip.frames.insert(clip.frames.end(), rgb.begin(), rgb.end());
  }
  LTX_ASSIGN_OR_RETURN(clip.waveform, ToFloats(*device_, result.waveform));
  return clip;
}

}  // namespace ltx::testing
