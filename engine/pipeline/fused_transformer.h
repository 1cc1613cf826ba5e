#ifndef LTX_ENGINE_PIPELINE_FUSED_TRANSFORMER_H_
#define LTX_ENGINE_PIPELINE_FUSED_TRANSFORMER_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/transformer_config.h"
#include "engine/dit/transformer.h"
#include "engine/lora/lora_file.h"
#include "kernels/device.h"

namespace ltx::pipeline {

/// Where a set's transformer comes from, for loading it again.
struct TransformerSource {
  std::shared_ptr<const checkpoint::SafetensorsFile> file;
  checkpoint::TransformerConfig config;
  DType dtype = DType::kF32;
};

/// The transformer as it is. Errors are those of dit::Transformer::Load.
absl::StatusOr<std::unique_ptr<dit::Transformer>> LoadTransformer(Device* device,
                                                                  const TransformerSource& source);

/// A second transformer with a LoRA fused into its weights while they are loaded. Beside the clean
/// one it takes as many bytes again: a distilled LoRA changes nearly every weight, so that there is
/// nothing to share, and a copy is exact where subtracting an update would leave rounding behind.
/// INVALID_ARGUMENT listing the modules that the transformer lacks.
absl::StatusOr<std::unique_ptr<dit::Transformer>> LoadFusedTransformer(
    Device* device, const TransformerSource& source,
    const std::shared_ptr<const lora::LoraFile>& lora, double strength);

/// Whether the LoRA fits the transformer, by names and shapes alone; errors as above.
absl::Status CheckLora(const TransformerSource& source,
                       const std::shared_ptr<const lora::LoraFile>& lora);

}  // namespace ltx::pipeline

#endif  // LTX_ENGINE_PIPELINE_FUSED_TRANSFORMER_H_
