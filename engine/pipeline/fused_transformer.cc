#include "engine/pipeline/fused_transformer.h"

#include "absl/strings/string_view.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/checkpoint/weight_set.h"
#include "engine/lora/lora_patch.h"
#include "kernels/shape_device.h"
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
  return dit::Transformer::Load(
      source.config, dit::ModelClass::kAudioVideo,
      loader.WithPool(source.linears.get()).WithPatch(patch).Sub(kPrefix));
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

absl::StatusOr<int64_t> FusedTransformerBytes(const Device& device, const TransformerSource& source,
                                              const std::shared_ptr<const lora::LoraFile>& lora) {
  ShapeDevice shapes(&device);
  TransformerSource of_shapes = source;
  of_shapes.linears = std::make_shared<checkpoint::LinearPool>();
  LTX_ASSIGN_OR_RETURN(const auto clean, LoadTransformer(&shapes, of_shapes));
  const int64_t before = shapes.ledger().Read().total.live_bytes;
  // Whatever the strength, the same weights change.
  LTX_ASSIGN_OR_RETURN(const auto fused, LoadFusedTransformer(&shapes, of_shapes, lora, 1.0));
  return shapes.ledger().Read().total.live_bytes - before;
}

}  // namespace ltx::pipeline
