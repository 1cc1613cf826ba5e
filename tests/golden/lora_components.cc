#include "tests/golden/lora_components.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/lora/lora_file.h"
#include "engine/lora/lora_patch.h"
#include "kernels/status_macros.h"
#include "tests/golden/case_params.h"

namespace ltx::golden {
namespace {

constexpr char kPrefix[] = "model.diffusion_model.";

/// The tensors of a case below "in/lora<i>/" as the file that they were. Lives as long as the case.
class LoraInCase final : public checkpoint::SafetensorsFile {
 public:
  LoraInCase(const GoldenCase& golden, size_t index) {
    path_ = absl::StrCat(golden.path(), " lora", index);
    const std::string prefix = absl::StrCat("in/lora", index, "/");
    for (const auto& [name, entry] : golden.file().entries()) {
      if (absl::StartsWith(name, prefix)) entries_.emplace(name.substr(prefix.size()), entry);
    }
  }
};

absl::Status Fuse(const GoldenCase& golden, const GoldenContext& context, GoldenOutputs* outputs) {
  const auto strengths = ParamOr(golden.params(), "strengths", std::vector<double>());
  std::vector<lora::WeightedLora> loras;
  for (size_t i = 0; i < strengths.size(); ++i) {
    lora::WeightedLora lora;
    LTX_ASSIGN_OR_RETURN(lora.file,
                         lora::LoraFile::Parse(std::make_shared<LoraInCase>(golden, i), {}));
    lora.strength = strengths[i];
    loras.push_back(std::move(lora));
  }
  // The reference leaves out what matches nothing, and so do its cases.
  LTX_ASSIGN_OR_RETURN(const auto patch,
                       lora::LoraPatch::Create(std::move(loras), golden.weights(), kPrefix,
                                               lora::LoraPatch::Unmatched::kSkip));
  Device& device = *context.device;
  for (const std::string& name : golden.OutputNames()) {
    const std::string full_name = absl::StrCat(kPrefix, name);
    const checkpoint::SafetensorsFile::Entry* const entry = golden.weights().Find(full_name);
    if (entry == nullptr) {
      return absl::UnimplementedError(absl::StrCat("output ", name, " of lora.fuse"));
    }
    // Fused in the dtype that the weight is stored in.
    checkpoint::WeightLoader loader(&device, &golden.weights(), entry->dtype,
                                    MemoryOwner::kWeightsDit);
    LTX_ASSIGN_OR_RETURN(Tensor weight, loader.Get(full_name, entry->shape));
    if (patch->Changes(full_name)) {
      LTX_ASSIGN_OR_RETURN(weight, patch->Apply(device, full_name, weight));
    }
    LTX_RETURN_IF_ERROR(outputs->Set(device, name, weight));
  }
  return absl::OkStatus();
}

}  // namespace

void RegisterLoraComponents(ComponentRegistry* registry) { registry->emplace("lora.fuse", Fuse); }

}  // namespace ltx::golden
