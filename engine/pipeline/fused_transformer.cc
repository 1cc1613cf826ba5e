#include "engine/pipeline/fused_transformer.h"

#include "absl/strings/string_view.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/checkpoint/weight_set.h"
#include "engine/lora/lora_patch.h"
#include "kernels/status_macros.h"

namespace ltx::pipeline {
namespace {

constexpr absl::string_view kPrefix = "model.diffusion_model.";

absl::StatusOr<std::unique_ptr<lora::LoraPatch>> MakePatch(
    const std::shared_ptr<const lora::LoraFile>& lora, double strength,
    const checkpoint::WeightSet& weights) {
  return lora::LoraPatch::Create({{lora, strength}}, weights, kPrefix,
                                 lora::LoraPatch::Unmatched::kRefuse);
}

absl::StatusOr<std::unique_ptr<dit::Transformer>> Load(Device* device,
                                                       const TransformerSource& source,
                                                       const checkpoint::WeightSet& weights,
                                                       const checkpoint::WeightPatch* patch) {
  const checkpoint::WeightLoader loader(device, &weights, source.dtype, MemoryOwner::kWeightsDit);
  const checkpoint::WeightLoader patched = patch == nullptr ? loader : loader.WithPatch(patch);
  return dit::Transformer::Load(source.config, dit::ModelClass::kAudioVideo, patched.Sub(kPrefix));
}

}  // namespace

absl::StatusOr<std::unique_ptr<dit::Transformer>> LoadTransformer(Device* device,
                                                                  const TransformerSource& source) {
  checkpoint::WeightSet weights;
  LTX_RETURN_IF_ERROR(weights.Add(source.file));
  return Load(device, source, weights, nullptr);
}

absl::StatusOr<std::unique_ptr<dit::Transformer>> LoadFusedTransformer(
    Device* device, const TransformerSource& source,
    const std::shared_ptr<const lora::LoraFile>& lora, double strength) {
  checkpoint::WeightSet weights;
  LTX_RETURN_IF_ERROR(weights.Add(source.file));
  LTX_ASSIGN_OR_RETURN(const std::unique_ptr<lora::LoraPatch> patch,
                       MakePatch(lora, strength, weights));
  return Load(device, source, weights, patch.get());
}

absl::Status CheckLora(const TransformerSource& source,
                       const std::shared_ptr<const lora::LoraFile>& lora) {
  checkpoint::WeightSet weights;
  LTX_RETURN_IF_ERROR(weights.Add(source.file));
  return MakePatch(lora, 1.0, weights).status();
}

}  // namespace ltx::pipeline
