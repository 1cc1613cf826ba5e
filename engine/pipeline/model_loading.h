#ifndef LTX_ENGINE_PIPELINE_MODEL_LOADING_H_
#define LTX_ENGINE_PIPELINE_MODEL_LOADING_H_

#include <memory>

#include "absl/status/statusor.h"
#include "engine/checkpoint/model_set.h"
#include "engine/pipeline/model_parts.h"
#include "kernels/device.h"

namespace ltx::pipeline {

/// Loads the components of a set, which Open() has checked against each other, onto the device.
/// `compute_dtype` is kF32 or kBF16; `tokenizer` is that of another model of the same files, or
/// null. Errors are those of the components' loaders.
absl::StatusOr<std::unique_ptr<ModelParts>> LoadParts(
    Device* device, const checkpoint::ModelSet& files, DType compute_dtype,
    std::shared_ptr<const text::Tokenizer> tokenizer);

}  // namespace ltx::pipeline

#endif  // LTX_ENGINE_PIPELINE_MODEL_LOADING_H_
