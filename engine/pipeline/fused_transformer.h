#ifndef LTX_ENGINE_PIPELINE_FUSED_TRANSFORMER_H_
#define LTX_ENGINE_PIPELINE_FUSED_TRANSFORMER_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "engine/checkpoint/linear_pool.h"
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
  /// The clean transformer's linears on its device, for the copies that leave them as they are.
  std::shared_ptr<checkpoint::LinearPool> linears;
};

/// The transformer as it is; its linears go into the source's pool. Errors are those of
/// dit::Transformer::Load.
absl::StatusOr<std::unique_ptr<dit::Transformer>> LoadTransformer(Device* device,
                                                                  const TransformerSource& source);

/// A second transformer with a LoRA fused into its weights while they are loaded. The clean file is
/// its base, so that nothing is ever subtracted, which would leave rounding behind. Linears that
/// the LoRA leaves alone are the pool's; a distilled LoRA changes nearly all, so beside the clean
/// transformer it takes almost as many bytes again. INVALID_ARGUMENT listing the modules that the
/// transformer lacks.
absl::StatusOr<std::unique_ptr<dit::Transformer>> LoadFusedTransformer(
    Device* device, const TransformerSource& source,
    const std::shared_ptr<const lora::LoraFile>& lora, double strength);

/// What LoadFusedTransformer takes of the device beside the clean transformer, worked out from
/// shapes; errors as there.
absl::StatusOr<int64_t> FusedTransformerBytes(const Device& device, const TransformerSource& source,
                                              const std::shared_ptr<const lora::LoraFile>& lora);

}  // namespace ltx::pipeline

#endif  // LTX_ENGINE_PIPELINE_FUSED_TRANSFORMER_H_
